"""Pointwise operators: an expression, and the dtype rule around it.

In: an entry with a `scalar` body and its `dtype` rule.  Out: a kernel over arrays.  Rules:

    promote   compute and answer in the common dtype of the operands (the default)
    float     the same, with whole numbers made the default float first
    number    the same, with bool made int64 first
    bool      compute in the common dtype, answer in bool
    self      compute and answer in self's dtype

A rule may name its operands, `promote: self, other`; unnamed, they are every tensor and every Scalar
that is not keyword-only.  Half types are computed in float32 and rounded once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.kernels.blocks import BLOCK
from engine.aten.kernels.expression import array_code, compile_expression
from engine.aten.kernels.pointwise import EXACT, FUNCTIONS, OF_FLOATS
from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.promotion import DEFAULTS, fit, result_type, to_float, wide
from engine.lang.errors import OperatorError, SchemaError
from engine.lang.generated import define
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import BOOL, NUMBER, OptionalType, TensorType

Rule = Callable[[tuple[Any, ...]], tuple[xp.NumpyDtype, xp.NumpyDtype]]


@dataclass(frozen=True, slots=True)
class PointwiseKernels:
    """The expression of an operator as kernels over arrays, which are written when asked for; `quick` is the text for
    the common case."""

    text: str
    names: Sequence[str]
    arrays: Sequence[str]
    rule: Rule
    quick: QuickCode | None

    @property
    def general(self) -> Callable[..., Any]:
        """A kernel that looks at the dtypes in every call."""
        compute = compile_expression(self.text, self.names, self.arrays)
        return _any_dtype(compute, self.rule, "alpha" in self.names)

    @property
    def kernel(self) -> Callable[..., Any]:
        """A kernel that looks for the common case first."""
        if self.quick is None:
            return self.general
        lines = self.quick.lines("return ", f"general({', '.join(self.names)})", {})
        environment: dict[str, Any] = {**QUICK_ENVIRONMENT, "general": self.general}
        return define("kernel", self.names, lines, environment, f"<scalar {self.text}>")


def pointwise_kernels(op: Op) -> PointwiseKernels:
    """The kernels of an operator with an expression."""
    assert op.scalar is not None
    arguments, text = op.schema.arguments, op.scalar
    names, arrays = [a.name for a in arguments], [a.name for a in arguments if is_tensor(a)]
    return PointwiseKernels(text, names, arrays, dtype_rule(op), _quick_code(arguments, text, str(op.dtype)))


@dataclass(frozen=True, slots=True)
class QuickCode:
    """The expression where nothing has to be converted: the tensors all float32 or all float64 and the numbers real."""

    expression: str
    tensors: tuple[str, ...]
    numbers: tuple[str, ...]
    units: Mapping[str, Any]
    """Numbers that mostly are 1."""
    is_exact: bool
    """True if it only moves and compares elements, so that numpy warns of nothing (conversions of numbers may)."""
    is_universal: bool
    """True if it calls only universal functions of numpy, which dispatch to other libraries' arrays themselves, and
    compute on the current device."""

    def lines(self, begin: str, otherwise: str, spelled: Mapping[str, str]) -> list[str]:
        """Statements that evaluate it, or else `otherwise`, to what `begin` says; arrays go by the names `spelled`."""
        first, *rest = (spelled.get(name, name) for name in self.tensors)
        alike = [f"{name}.dtype is d" for name in rest] + [f"type({name}) in real" for name in self.numbers]
        alike += ["not hooks.several" if self.is_universal else "not hooks.devices"]
        quick = begin + array_code(self.expression, self.tensors, None, spelled)
        if self.units:
            is_unit = " and ".join(f"{name} == 1" for name in self.units)
            simpler = array_code(self.expression, self.tensors, self.units, spelled)
            plain = [f"    if {is_unit}: {begin}{simpler}", f"    else: {quick}"]
        else:
            plain = [f"    {quick}"]
        return [
            f"d = {first}.dtype",
            f"if {' and '.join(['(d is f32 or d is f64)', *alike])}:",
            *plain,
            f"else: {begin}{otherwise}",
        ]

    def ufunc(self, spelled: Mapping[str, str]) -> tuple[str, str] | None:
        """The function and its arguments, where with units at 1 the expression is one call of a numpy function."""
        code = array_code(self.expression, self.tensors, self.units, spelled)
        name, _, rest = code.partition("(")
        is_one_call = rest.endswith(")") and "(" not in rest
        return (name, rest[:-1]) if is_one_call and isinstance(QUICK_ENVIRONMENT.get(name), np.ufunc) else None


QUICK_ENVIRONMENT: Final[dict[str, Any]] = {
    **FUNCTIONS, **OF_FLOATS, "f32": xp.FLOAT32, "f64": xp.FLOAT64, "real": frozenset({int, float}),
    "hooks": HOOKS,
}  # fmt: skip
"""The names in `QuickCode`."""


def _quick_code(arguments: Sequence[Argument], text: str, dtype: str) -> QuickCode | None:
    """None for an expression that has to look at the dtypes."""
    if ":" in dtype or not isinstance(arguments[0].type, TensorType):
        return None
    tensors = tuple(a.name for a in arguments if is_tensor(a))
    numbers = tuple(a.name for a in arguments if a.name not in tensors)
    units = {a.name: 1 for a in arguments if a.kwarg_only and a.default == 1}
    nodes = list(ast.walk(ast.parse(array_code(text, tensors), mode="eval")))
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    computes = any(isinstance(n, (ast.BinOp, ast.Compare)) for n in nodes)
    is_universal = all(isinstance(QUICK_ENVIRONMENT.get(name), np.ufunc) for name in called)
    return QuickCode(text, tensors, numbers, units, not (numbers or computes) and called <= EXACT, is_universal)


def dtype_rule(op: Op) -> Rule:
    """(dtype to compute in, dtype of the result) of the operands."""
    assert op.dtype is None or isinstance(op.dtype, str)
    kind, _, listed = (op.dtype or "promote").partition(":")
    chosen = [name.strip() for name in listed.split(",") if name.strip()] or _operands(op.schema)
    places = [i for i, a in enumerate(op.schema.arguments) if a.name in chosen]
    if kind == "self":
        places = places[:1]
    if kind not in ("promote", "float", "number", "bool", "self"):
        raise SchemaError(f"{op.qualified_name}: there is no dtype rule '{kind}'")

    def rule(args: tuple[Any, ...]) -> tuple[xp.NumpyDtype, xp.NumpyDtype]:
        common = result_type(args[i] for i in places)
        if kind == "float":
            common = to_float(common)
        if kind == "number" and common.kind == "b":
            common = xp.INT64
        return wide(common), xp.BOOL if kind == "bool" else common

    return rule


def is_tensor(argument: Argument) -> bool:
    type = argument.type
    return isinstance(type, TensorType) or (isinstance(type, OptionalType) and isinstance(type.element, TensorType))


def _operands(schema: FunctionSchema) -> list[str]:
    def counts(a: Argument) -> bool:
        type = a.type.element if isinstance(a.type, OptionalType) else a.type
        return is_tensor(a) or (type in (NUMBER, BOOL) and not a.kwarg_only and a.name != "alpha")

    return [a.name for a in schema.arguments if counts(a)]


def _any_dtype(compute: Callable[..., Any], rule: Rule, check_alpha: bool) -> Callable[..., Any]:
    known: dict[tuple[Any, ...], tuple[xp.NumpyDtype, xp.NumpyDtype]] = {}
    """The rule's dtypes for arguments of these kinds."""

    def kernel(*args: Any) -> Any:
        key = (
            DEFAULTS.floating,
            *[(arg.dtype, arg.ndim > 0) if isinstance(arg, np.ndarray) else type(arg) for arg in args],
        )
        used, answer = known.get(key) or known.setdefault(key, rule(args))
        if check_alpha and type(args[-1]) is not int:
            _check_alpha(answer, args[-1])
        if answer in xp.HALVES and _are_long_and_alike(args):
            return _in_pieces(compute, args, used, answer)
        values = [_converted(arg, used) for arg in args]
        result = compute(*values)
        for value in values:
            if result is value:
                result = np.array(result)
        return result if result.dtype is answer else result.astype(answer)

    return kernel


def _are_long_and_alike(args: tuple[Any, ...]) -> bool:
    """True if all arrays are long, contiguous and of one shape."""
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    first = arrays[0]
    return first.size > BLOCK and all(each.shape == first.shape and each.flags.c_contiguous for each in arrays)


def _in_pieces(compute: Callable[..., Any], args: tuple[Any, ...], used: xp.NumpyDtype, answer: xp.NumpyDtype) -> Any:
    """The same for half types, so that what they become in between stays in the processor's cache."""
    flat = [arg.reshape(-1) if isinstance(arg, np.ndarray) else _converted(arg, used) for arg in args]
    shape = next(arg.shape for arg in args if isinstance(arg, np.ndarray))
    result = np.empty(shape, answer)
    out = result.reshape(-1)
    for start in range(0, out.size, BLOCK):
        some = slice(start, start + BLOCK)
        piece = [v[some].astype(used, copy=False) if isinstance(v, np.ndarray) else v for v in flat]
        out[some] = compute(*piece)
    return result


def _converted(value: Any, d: xp.NumpyDtype) -> Any:
    if isinstance(value, np.ndarray):
        return value if value.dtype is d else value.astype(d)
    if value is None or isinstance(value, str):
        return value
    return d.type(fit(value, d)) if d.kind in "iu" else fit(value, d)


def _check_alpha(answer: xp.NumpyDtype, alpha: Any) -> None:
    if answer.kind in "iub" and isinstance(alpha, (float, complex)):
        raise OperatorError("For integral input tensors, argument alpha must not be a floating point number.")
    if answer.kind != "c" and isinstance(alpha, complex):
        raise OperatorError("For non-complex input tensors, argument alpha must not be a complex number.")
    if answer.kind != "b" and isinstance(alpha, bool):
        raise OperatorError("Boolean alpha only supported for Boolean results.")
