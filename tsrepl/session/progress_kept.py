"""Progress of loops and branches: the names that an entry has bound, whether it ends or not.

In: the statement of an entry.  Out: the same with a store behind each assignment inside it, into a dictionary that the
entry gets as an argument; and after the run the names in that dictionary, with the static types of their values.  A
`while` loop counts its iterations, too, in a list of one number, since nothing else tells how many there were.

    for i in range(9):          for i in range(9):          while c:          while c:
        x = f(x)          ->        $kept["i"] = i              x = f(x)  ->      $rounds[0] += 1
                                    x = f(x)                                      x = f(x)
                                    $kept["x"] = x                                $kept["x"] = x
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from engine.frontend.syntax.name_uses import names_of
from engine.frontend.syntax.tree import Tree, variables
from engine.frontend.syntax.views import Assign, AugAssign, Const, For, If, StringLiteral, Subscript, Var, While, With
from engine.ir.constants import constant_value, type_of
from engine.ir.graph import Graph, Node
from engine.ir.unit import Function
from engine.lang.source import SourceRange
from engine.lang.types import ANY, INT, STR, DictType, ListType, Type

KEPT: Final = "$kept"
"""The name of the dictionary, which no program can write."""
KEPT_TYPE: Final = DictType(STR, ANY)
ROUNDS: Final = "$rounds"
"""The name of the list that counts."""
ROUNDS_TYPE: Final = ListType(INT)


def keeping(statement: Tree) -> Tree:
    """The statement with its stores and its count; the same tree if it is neither a loop nor a branch."""
    keeps = _storing(statement)
    return _counting(While(keeps)) if statement.kind == While.kind else keeps


def _storing(statement: Tree) -> Tree:
    return _RULES[statement.kind](statement) if statement.kind in _RULES else statement


def loop_counters(statement: Tree) -> list[str]:
    """The names that a loop goes through, which tell its iteration."""
    return [name for target in For(statement).targets for name in variables(target)] if statement.kind == "for" else []


def types_kept(function: Function, values: Mapping[str, Any]) -> dict[str, Type]:
    """The types of the values that were stored, by name."""
    stored: dict[str, set[Type]] = {}
    for node in _stores(function.graph):
        stored.setdefault(constant_value(node.inputs[1]), set()).add(node.inputs[2].type)
    return {name: _only(stored.get(name, set())) or type_of(value) for name, value in values.items()}


def _only(types: set[Type]) -> Type | None:
    return next(iter(types)) if len(types) == 1 else None


def _stores(graph: Graph) -> Iterator[Node]:
    kept = next((each for each in graph.inputs if each.type == KEPT_TYPE and each.debug_name.startswith(KEPT)), None)
    return (use.user for use in (() if kept is None else kept.uses) if use.user.kind == "aten::_set_item")


def _body(statements: Iterable[Tree]) -> list[Tree]:
    return [each for statement in statements for each in (_storing(statement), *_stores_behind(statement))]


def _stores_behind(statement: Tree) -> list[Tree]:
    if statement.kind in _RULES:
        return []  # its own statements have theirs
    return _store(names_of([statement]).assigned, statement.range)


def _store(names: Iterable[str], range: SourceRange) -> list[Tree]:
    return [Assign.make(range, [_item(name, range)], Var.make(range, name), None) for name in names]


def _item(name: str, range: SourceRange) -> Tree:
    return Subscript.make(range, Var.make(range, KEPT), [StringLiteral.make(range, name)])


def _for(tree: Tree) -> Tree:
    loop = For(tree)
    counters = _store(loop_counters(tree), tree.child(0).range)
    return For.make(tree.range, loop.targets, loop.iterables, [*counters, *_body(loop.body)])


def _while(tree: Tree) -> Tree:
    return While.make(tree.range, While(tree).condition, _body(While(tree).body))


def _counting(loop: While) -> Tree:
    """The loop, which counts its iterations as they begin."""
    range = loop.condition.range
    count = Subscript.make(range, Var.make(range, ROUNDS), [Const.make(range, "0")])
    step = AugAssign.make(range, count, "+", Const.make(range, "1"))
    return While.make(loop.tree.range, loop.condition, [step, *loop.body])


def _if(tree: Tree) -> Tree:
    branches = If(tree)
    return If.make(tree.range, branches.condition, _body(branches.true_branch), _body(branches.false_branch))


def _with(tree: Tree) -> Tree:
    return With.make(tree.range, tree.child(0).trees, _body(With(tree).body))


_RULES: Final = {For.kind: _for, While.kind: _while, If.kind: _if, With.kind: _with}
