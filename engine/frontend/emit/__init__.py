"""The emitter: from trees to nodes.

In: the trees of a function.  Out: its graph, with variables as `prim::Load` and `prim::Store`.  `RULES` has the
function that emits each kind of tree.
"""

from __future__ import annotations

from typing import Final

from engine.frontend.emit import (
    assignments,
    branches,
    calls,
    conditions,
    fork,
    literals,
    loops,
    operators,
    statements,
    subscripts,
)  # fmt: skip
from engine.frontend.emit.emitter import Emitter as Emitter
from engine.frontend.emit.emitter import Rules

RULES: Final = Rules(
    expressions={
        "variable": calls.variable,
        ".": calls.select,
        "apply": calls.apply,
        "subscript": subscripts.subscript,
        "const": literals.number,
        "string_literal": literals.string,
        "True": literals.true,
        "False": literals.false,
        "None": literals.none,
        "tuple_literal": literals.tuple_literal,
        "list_literal": literals.list_literal,
        "dict_literal": literals.dict_literal,
        "list_row": literals.list_row,
        "dict_row": literals.dict_row,
        "list_comp": loops.list_comprehension,
        "dict_comp": loops.dict_comprehension,
        "if_expr": operators.ternary,
        **dict.fromkeys(operators.BINARY, operators.binary),
        "%": operators.remainder,
        **dict.fromkeys(operators.UNARY, operators.unary),
        **dict.fromkeys(("and", "or", "not", "is", "isnot"), conditions.condition_value),
    },
    statements={
        "assign": assignments.assign,
        "aug_assign": assignments.augmented,
        "if": branches.if_statement,
        "while": loops.while_statement,
        "for": loops.for_statement,
        "break": loops.break_statement,
        "continue": loops.continue_statement,
        "return": statements.return_statement,
        "raise": statements.raise_statement,
        "assert": statements.assert_statement,
        "delete": statements.delete_statement,
        "with": statements.with_statement,
        "pass": statements.pass_statement,
        "expression_statement": statements.expression_statement,
        "def": fork.closure,
    },
)
"""Kind of tree -> the function that emits it."""
