"""Simple library functions as Python functions, without the cost of running a compiled program.

In: the texts of a function written in TorchScript, one for each overload.  Out: a Python function with the same
results.  It exists for texts of conditions, counting loops, calls and arithmetic (like `return relu_(x) if inplace else
relu(x)`), which mean the same in Python, and runs the first overload that declares exactly the types of the arguments;
all other calls, and all errors, are left to the compiled function.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from engine.aten.values.hooks import HOOKS
from engine.aten.values.parameter import Parameter
from engine.aten.values.tensor import Size, Tensor
from engine.lang.python_syntax import parse_python

Find = Callable[[str], Callable[..., Any] | None]
"""The function of a dotted name, `torch._C._nn.relu6`."""


def wrapper(texts: Sequence[str], find: Find, compiled: Callable[..., Any]) -> Callable[..., Any] | None:
    """A Python function of the texts, with the compiled one as its fallback; None if one is beyond the simple ones."""
    found = [_python_function(text, find) for text in texts]
    quick = [each for each in found if each is not None]
    if len(quick) < len(texts):
        return None
    first, others, hooks, left = quick[0], quick[1:], HOOKS, _LEFT

    def call(*args: Any, **kwargs: Any) -> Any:
        if hooks.trace is None:
            try:
                result = first(*args, **kwargs)
                for other in others:
                    if result is not _OTHER:
                        break
                    result = other(*args, **kwargs)
            except Exception:
                result = left
            if result is not left and result is not _OTHER:
                return result
        return compiled(*args, **kwargs)

    call.__name__ = call.__qualname__ = first.__name__
    return call


_LEFT: Final = object()
"""Returned by a Python function that leaves the call to the compiled one."""
_OTHER: Final = object()
"""Returned by one that declares other types than those of the arguments."""


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
    lines = [f"if not ({asked}): return _other"] if types else []
    for argument in arguments:
        if (count := _BROADCASTING.get(ast.unparse(argument.annotation or argument))) is not None:
            lines.append(f"if type({argument.arg}) is int: {argument.arg} = [{argument.arg}] * {count}")
        argument.annotation = None
    function.body, function.returns = [*parse_python("\n".join(lines)).body, *body], None
    environment: dict[str, Any] = {f"_types_{name}": kinds for name, kinds in types.items()}
    environment |= {"_left": _LEFT, "_other": _OTHER, **calls.found}
    code = compile(ast.fix_missing_locations(ast.Module([function], [])), f"<aten::{function.name} wrapper>", "exec")
    exec(code, environment)
    made: Callable[..., Any] = environment[function.name]
    return made


def _inside(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of its statements, but for types of variables, and for errors, which it never raises itself."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.AnnAssign):
            waiting += [node.target, *([node.value] if node.value is not None else [])]
        elif not isinstance(node, ast.Raise):
            waiting += ast.iter_child_nodes(node)


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
        if ast.unparse(function) == "torch.jit.annotate":
            return cast(ast.AST, self.visit(node.args[1]))
        if isinstance(function, ast.Attribute) and getattr(function.value, "id", None) in self._arguments:
            node.args = [self.visit(each) for each in node.args]
        else:
            name, called = f"_call{len(self.found)}", ast.unparse(function)
            self.found[name] = _BUILTINS.get(called) or self._find(called)
            self.is_lost = self.is_lost or self.found[name] is None
            node.func = ast.Name(name, ast.Load())
            node.args = [self.visit(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Return(ast.Name("_left", ast.Load()))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return self.generic_visit(ast.Assign([node.target], node.value or ast.Constant(None)))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.is_lost = self.is_lost or getattr(node.value, "id", None) not in self._arguments or node.attr not in _FACTS
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.is_lost = self.is_lost or node.id not in self._arguments
        return node


_SIMPLE: Final = (
    ast.Return, ast.If, ast.For, ast.Raise, ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Tuple,
    ast.List, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Call, ast.keyword, ast.Attribute, ast.Name,
    ast.Subscript, ast.Constant, ast.IfExp, ast.Compare, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub,
    ast.expr_context, ast.cmpop,
)  # fmt: skip
"""The syntax that simple texts consist of."""
_BUILTINS: Final[Mapping[str, Callable[..., Any]]] = {
    "len": len, "range": range, "int": int, "float": float, "math.floor": math.floor
}  # fmt: skip
_FACTS: Final = frozenset({"dtype", "device", "shape"})
"""Attributes of tensors that simple texts read."""
_TENSORS: Final = frozenset({Tensor, Parameter})
_LISTS: Final = frozenset({list, tuple, Size})
_NO: Final = frozenset({type(None)})
_OPTIONAL: Final = {f"Optional[BroadcastingList{n}[int]]": n for n in (1, 2, 3)}
_BROADCASTING: Final = {f"BroadcastingList{n}[int]": n for n in (1, 2, 3)} | _OPTIONAL
"""Types of lists of ints for which one int may stand."""
_TYPES: Final[dict[str, frozenset[type]]] = {
    "Tensor": _TENSORS, "Optional[Tensor]": _TENSORS | _NO,
    "float": frozenset({float}), "Optional[float]": frozenset({float}) | _NO,
    "int": frozenset({int}), "Optional[int]": frozenset({int}) | _NO,
    "bool": frozenset({bool}), "Optional[bool]": frozenset({bool}) | _NO,
    "number": frozenset({int, float}), "Optional[number]": frozenset({int, float}) | _NO,
    "str": frozenset({str}), "List[int]": _LISTS, "Optional[List[int]]": _LISTS | _NO,
    "List[float]": _LISTS, "Optional[List[float]]": _LISTS | _NO,
    **dict.fromkeys(_BROADCASTING, _LISTS | {int}), **dict.fromkeys(_OPTIONAL, _LISTS | {int} | _NO),
}  # fmt: skip
"""Declared type -> the Python types whose values are of it without conversion."""
