"""Expressions of pointwise operators over long arrays, as loops.

In: the text of an expression over argument names, which of them are arrays.  Out: a `LongRows`: called with the
arguments it gives the result, or None where numpy has to do it step by step: for short arrays, other dtypes and
layouts, functions that loops have not, and until there is machine code.  One pass over memory takes the place of one
for each step.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.stepwise import elementary
from engine.aten.stepwise.language import COMPILER, Loop, like, root
from engine.aten.values.xp import FLOAT64, FLOATS, HALVES, Array, NumpyDtype

LEAST: Final = 16384
"""Elements; what is shorter stays in the cache, and native entries do it."""
_FUNCTIONS: Final[dict[str, Any]] = {
    "exp": elementary.exp, "expm1": elementary.expm1, "log": elementary.log, "sigmoid": elementary.sigmoid,
    "tanh": elementary.tanh, "softplus": elementary.softplus, "maximum": elementary.greater,
    "minimum": elementary.less, "relu": elementary.positive, "sign": elementary.sign, "sqrt": root, "abs": abs,
    "erf": elementary.erf, "erfinv": elementary.erfinv, "log1p": elementary.log1p, "like": like, "range": range,
}  # fmt: skip
"""Functions that loops call by these names."""
_SINGLE: Final = ("exp", "expm1", "log", "log1p", "sigmoid", "tanh", "softplus", "erf", "erfinv")
"""Those that are exact in single precision only."""
REAL: Final = frozenset({*FLOATS, *HALVES})
"""Halves are computed in single precision and rounded once."""


class LongRows:
    """An expression over long arrays."""

    __slots__ = ("arrays", "dtypes", "loop", "names", "text", "weight")

    def __init__(
        self, text: str, names: Sequence[str], arrays: Collection[str], dtypes: Collection[NumpyDtype] = REAL
    ) -> None:
        self.text = text
        curved = [name for name in _SINGLE if f"{name}(" in text]
        is_single = bool(curved)
        self.weight = 1 + 8 * len(curved)
        self.dtypes = frozenset(d for d in dtypes if not (is_single and d is FLOAT64))
        self.names = tuple(names)
        self.arrays = tuple(name in arrays for name in names)
        self.loop: Loop | None = None

    def __call__(self, *args: Any) -> Array | None:
        if COMPILER.request is None or len(args) != len(self.arrays):
            return None
        given: list[Any] = []
        first: Array | None = None
        for arg, is_array in zip(args, self.arrays, strict=True):
            if not is_array:
                if type(arg) not in (int, float):
                    return None
                given.append(float(arg))
                continue
            if type(arg) is not np.ndarray:
                return None
            first = arg if first is None else first
            if arg.dtype is not first.dtype or arg.shape != first.shape:
                return None
            given.append(arg)
        if first is None or first.size < LEAST or first.dtype not in self.dtypes:
            return None
        if not first.flags.c_contiguous and 0 not in first.strides:
            return None
        loop = self.loop
        if loop is None:
            loop = self.loop = _loop_of(self.text, self.names, self.arrays)
        given = [np.ascontiguousarray(each) if type(each) is np.ndarray else each for each in given]
        result = np.empty(first.shape, first.dtype)
        work = result.size * self.weight
        return None if loop.run(work, *given, result, result.size) is None else result


def _loop_of(text: str, names: Sequence[str], arrays: Sequence[bool]) -> Loop:
    """A loop that evaluates the expression for each place."""
    kinds = dict(zip(names, arrays, strict=True))
    value = _Elements(kinds).visit(ast.parse(text, mode="eval")).body
    given = ", ".join(f"{name}: {'Buffer' if kinds[name] else 'float'}" for name in names)
    frame = f"def loop({given}, _result: Buffer, _count: int) -> None:\n for _i in range(_count):\n  _result[_i] = 0"
    tree = ast.parse(frame).body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert isinstance(tree.body[0], ast.For)
    assert isinstance(tree.body[0].body[0], ast.Assign)
    tree.body[0].body[0].value = value
    ast.fix_missing_locations(tree)
    names_known = {**_FUNCTIONS, "Buffer": Any}
    exec(compile(ast.Module([tree], []), f"<{text}>", "exec"), names_known)
    return Loop(names_known["loop"], is_alike=False, tree=tree)


class _Elements(ast.NodeTransformer):
    """Arrays become their elements, numbers what goes with those; choices become conditional expressions."""

    def __init__(self, arrays: dict[str, bool]) -> None:
        self.arrays = arrays
        self.first = next(name for name, is_array in arrays.items() if is_array)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        is_array = self.arrays.get(node.id)
        if is_array is None:
            return node
        spelled = f"{node.id}[_i]" if is_array else f"like({self.first}, {node.id})"
        return ast.parse(spelled, mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.expr:
        args = [self.visit(each) for each in node.args]
        assert isinstance(node.func, ast.Name)
        if node.func.id == "where":
            return ast.IfExp(*args)
        if node.func.id == "square":
            return ast.BinOp(args[0], ast.Mult(), args[0])
        if node.func.id == "neg":
            return ast.UnaryOp(ast.USub(), args[0])
        if node.func.id == "reciprocal":
            return ast.BinOp(ast.Constant(1.0), ast.Div(), args[0])
        return ast.Call(node.func, args, [])
