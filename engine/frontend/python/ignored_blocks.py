"""Blocks that stay in Python: `with torch.jit._IgnoreContextManager(a="inp:int", b="out:List[int]"):`.

In: such a statement.  Out: the call of a Python function that has the block as its body, takes the variables that are
declared as inputs and gives those that are declared as outputs; the function, under the name by which the program calls
it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from engine.frontend.python.expressions import PythonSource
from engine.frontend.python.modifiers import MODIFIER
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Apply, Assign, ExprStmt, TupleLiteral, Var
from engine.lang.errors import NotSupportedError
from engine.lang.python_syntax import parse_python
from engine.lang.source import SourceRange

MANAGER: Final = "_IgnoreContextManager"
BLOCKS: Final = "__torchscript_blocks__"
"""The attribute of a function with those of its blocks that stay in Python, by name."""


def declared(node: ast.With) -> dict[str, str] | None:
    """Variable -> its declaration in the statement; None for any other `with`."""
    call = node.items[0].context_expr
    if len(node.items) != 1 or not isinstance(call, ast.Call) or not _is_manager(call.func):
        return None
    return {
        word.arg: word.value.value
        for word in call.keywords
        if word.arg is not None and isinstance(word.value, ast.Constant) and isinstance(word.value.value, str)
    }


def check_none(place: PythonSource) -> None:
    """Raises NotSupportedError where text other than a function's has such a block."""
    for _, body in place.ignored.values():
        raise NotSupportedError(
            "blocks are left to Python in functions and in methods of modules only",
            place.range(body[0]),
            hints=("write a function for the block, and mark it with @torch.jit.ignore",),
        )


def _is_manager(callee: ast.expr) -> bool:
    return getattr(callee, "attr", getattr(callee, "id", "")) == MANAGER


def call_of(name: str, variables: dict[str, str], range: SourceRange) -> Tree:
    """The statement that calls the function of the block.  Raises NotSupportedError for other declarations."""
    for variable, text in variables.items():
        if text.partition(":")[0] not in ("inp", "out"):
            raise NotSupportedError(
                f"'{variable}' is declared as '{text}'", range, hints=('write "inp:int", or "out:int" for a result',)
            )
    call = Apply.make(range, Var.make(range, name), [Var.make(range, each) for each in _of("inp", variables)], [])
    results: list[Tree] = [Var.make(range, each) for each in _of("out", variables)]
    if not results:
        return ExprStmt.make(range, call)
    target = results[0] if len(results) == 1 else TupleLiteral.make(range, results)
    return Assign.make(range, [target], call, None)


def function_of(
    name: str, variables: dict[str, str], body: list[ast.stmt], scope: dict[str, Any]
) -> Callable[..., Any]:
    """The Python function of a block; its globals are `scope`."""
    given, results = _of("inp", variables), _of("out", variables)
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(each) for each in given], kwonlyargs=[], kw_defaults=[],
                              defaults=[])  # fmt: skip
    result = ast.Tuple([ast.Name(each, ast.Load()) for each in results], ast.Load())
    ends = [ast.Return(result.elts[0] if len(results) == 1 else result)] if results else []
    module = parse_python("def f(): pass")
    definition = module.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.name, definition.args, definition.body = name, arguments, [*body, *ends]
    made: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(module), "<ignored block>", "exec"), scope, made)
    function: Callable[..., Any] = made[name]
    types = [results[each] for each in results]
    whole = "None" if not types else types[0] if len(types) == 1 else f"Tuple[{', '.join(types)}]"
    setattr(function, MODIFIER, "ignore")
    function.__annotations__ = {**given, "return": whole}
    return function


def _of(role: str, variables: dict[str, str]) -> dict[str, str]:
    """The variables of a role, with their types."""
    split = {name: text.partition(":") for name, text in variables.items()}
    return {name: type.strip() for name, (what, _, type) in split.items() if what == role}
