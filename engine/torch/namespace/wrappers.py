"""Simple library functions as Python functions, without the cost of running a compiled program.

In: the text of a function written in TorchScript.  Out: a Python function with the same results.  It exists for texts
of conditions, calls and arithmetic (like `return relu_(x) if inplace else relu(x)`), which mean the same in Python, and
runs for arguments of exactly the declared types; all other calls, and all errors, are left to the compiled function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final

from engine.aten.values.hooks import HOOKS
from engine.aten.values.parameter import Parameter
from engine.aten.values.tensor import Size, Tensor
from engine.lang.python_syntax import parse_python

Find = Callable[[str], Callable[..., Any] | None]
"""The function of a dotted name, `torch._C._nn.relu6`."""


def wrapper(text: str, find: Find, compiled: Callable[..., Any]) -> Callable[..., Any] | None:
    """A Python function of the text, with the compiled one as its fallback; None for a text beyond the simple ones."""
    quick, hooks, left = _python_function(text, find), HOOKS, _LEFT
    if quick is None:
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        if hooks.trace is None:
            try:
                result = quick(*args, **kwargs)
            except Exception:
                result = left
            if result is not left:
                return result
        return compiled(*args, **kwargs)

    call.__name__ = call.__qualname__ = quick.__name__
    return call


_LEFT: Final = object()
"""Returned by a Python function that leaves the call to the compiled one."""


def _python_function(text: str, find: Find) -> Callable[..., Any] | None:
    """The text as a Python function that first checks the types of its arguments."""
    (function,) = parse_python(text).body
    if not isinstance(function, ast.FunctionDef) or not all(isinstance(node, _SIMPLE) for node in _inside(function)):
        return None
    arguments = function.args.args
    types = {argument.arg: _TYPES.get(ast.unparse(argument.annotation or argument)) for argument in arguments}
    assigned = {n.id for n in _inside(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    calls = _Calls(find, types.keys() | assigned)
    body = [calls.visit(statement) for statement in function.body]
    if calls.is_lost or None in types.values():
        return None
    asked = " and ".join(f"type({name}) in _types_{name}" for name in types)
    guard = parse_python(f"if not ({asked}): return _left").body if types else []
    for argument in arguments:
        argument.annotation = None
    function.body, function.returns = [*guard, *body], None
    environment: dict[str, Any] = {f"_types_{name}": kinds for name, kinds in types.items()}
    environment |= {"_left": _LEFT, **calls.found}
    code = compile(ast.fix_missing_locations(ast.Module([function], [])), f"<aten::{function.name} wrapper>", "exec")
    exec(code, environment)
    made: Callable[..., Any] = environment[function.name]
    return made


def _inside(function: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from ast.walk(statement)


class _Calls(ast.NodeTransformer):
    """Replaces dotted names by the functions that they name.  (The visitor protocol is that of `ast`.)

    `is_lost` is True if a name was not found, or names something else.
    """

    def __init__(self, find: Find, arguments: Any) -> None:
        self.found: dict[str, Any] = {}
        self.is_lost = False
        self._find, self._arguments = find, arguments

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Attribute) and getattr(function.value, "id", None) in self._arguments:
            node.args = [self.visit(each) for each in node.args]
        else:
            name = f"_call{len(self.found)}"
            self.found[name] = self._find(ast.unparse(function))
            self.is_lost = self.is_lost or self.found[name] is None
            node.func = ast.Name(name, ast.Load())
            node.args = [self.visit(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Return(ast.Name("_left", ast.Load()))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.is_lost = True
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.is_lost = self.is_lost or node.id not in self._arguments
        return node


_SIMPLE: Final = (
    ast.Return, ast.If, ast.Raise, ast.Assert, ast.Assign, ast.Expr, ast.Tuple, ast.List, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.Call, ast.keyword, ast.Attribute, ast.Name, ast.Constant, ast.IfExp, ast.Compare,
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.expr_context, ast.cmpop,
)  # fmt: skip
"""The syntax that simple texts consist of."""
_TENSORS: Final = frozenset({Tensor, Parameter})
_INTS: Final = frozenset({list, tuple, Size})
_NO: Final = frozenset({type(None)})
_TYPES: Final[dict[str, frozenset[type]]] = {
    "Tensor": _TENSORS, "Optional[Tensor]": _TENSORS | _NO,
    "float": frozenset({float}), "Optional[float]": frozenset({float}) | _NO,
    "int": frozenset({int}), "Optional[int]": frozenset({int}) | _NO,
    "bool": frozenset({bool}), "Optional[bool]": frozenset({bool}) | _NO,
    "str": frozenset({str}), "List[int]": _INTS,
}  # fmt: skip
"""Declared type -> the Python types whose values are of it without conversion."""
