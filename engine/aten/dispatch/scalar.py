"""Pointwise operators: an expression, and the dtype rule around it.

In: an entry with a `scalar` body and its `dtype` rule.  Out: a kernel over arrays.  Rules:

    promote   compute and answer in the common dtype of the operands (the default)
    float     the same, with whole numbers made the default float first
    number    the same, with bool made int64 first
    bool      compute in the common dtype, answer in bool
    self      compute and answer in self's dtype, which holds all numbers

A rule may name its operands, `promote: self, other`; unnamed, they are every tensor and every Scalar
that is not keyword-only.  Half types are computed in float32 and rounded once; operands are rounded to them first
(`Op.keeps`).  Numbers that are no operands must have a place in the dtype.
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
from engine.aten.values.promotion import DEFAULTS, converted, operand, result_type, to_float, wide
from engine.lang.errors import OperatorError, SchemaError
from engine.lang.python_syntax import parse_python_expression
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import BOOL, FLOAT, NUMBER, OptionalType, TensorType, Type, unwrap_optional

Rule = Callable[[tuple[Any, ...]], tuple[xp.NumpyDtype, xp.NumpyDtype]]
Conversion = Callable[[Any, xp.NumpyDtype], Any]
"""A function that brings an argument to the dtype in which a common one is computed."""


@dataclass(frozen=True, slots=True)
class PointwiseKernels:
    """The expression of an operator as kernels over arrays, which are written when asked for; `quick` is the text for
    the common case."""

    text: str
    names: Sequence[str]
    arrays: Sequence[str]
    rule: Rule
    conversions: Sequence[Conversion]
    quick: QuickCode | None

    @property
    def general(self) -> Callable[..., Any]:
        """A kernel that looks at the dtypes in every call."""
        compute = compile_expression(self.text, self.names, self.arrays)
        return _any_dtype(
            compute, self.rule, self.conversions, self.names[-1] == "alpha" and _checked_operand in self.conversions
        )


def pointwise_kernels(op: Op) -> PointwiseKernels:
    """The kernels of an operator with an expression."""
    assert op.scalar is not None
    arguments, text = op.schema.arguments, op.scalar
    names, arrays = [a.name for a in arguments], [a.name for a in arguments if is_tensor(a)]
    return PointwiseKernels(text, names, arrays, dtype_rule(op), conversions(op), _quick_code(op, text))


@dataclass(frozen=True, slots=True)
class QuickCode:
    """The expression where nothing has to be converted: the tensors all float32 or all float64 and the numbers real."""

    expression: str
    tensors: tuple[str, ...]
    numbers: tuple[str, ...]
    units: Mapping[str, Any]
    """Numbers that mostly are 1."""
    settings: tuple[str, ...]
    """Numbers that are no operands, and so must have a place in the dtype."""
    is_exact: bool
    """True if it only moves and compares elements, so that numpy warns of nothing (conversions of numbers may)."""
    is_universal: bool
    """True if it calls only universal functions of numpy, which dispatch to other libraries' arrays themselves, and
    compute on the current device."""

    def lines(self, begin: str, otherwise: str, spelled: Mapping[str, str]) -> list[str]:
        """Statements that evaluate it, or else `otherwise`, to what `begin` says; arrays go by the names `spelled`."""
        first, *rest = (spelled.get(name, name) for name in self.tensors)
        alike = [f"{name}.dtype is d" for name in rest] + [f"type({name}) in real" for name in self.numbers]
        alike += [f"({name} == 1 or -3e38 < {name} < 3e38)" for name in self.settings]
        alike += ["not hooks.several" if self.is_universal else "not hooks.devices"]
        quick = begin + array_code(self.expression, self.tensors, None, spelled)
        if self.units:
            is_unit = " and ".join(f"{name} == 1" for name in self.units)
            simpler = array_code(self.expression, self.tensors, self.units, spelled)
            alone = set(self.numbers) <= self.units.keys()  # numbers that meet numbers are rounded to float32 before
            plain = [f"    if {is_unit}: {begin}{simpler}", f"    else: {quick if alone else begin + otherwise}"]
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


def _quick_code(op: Op, text: str) -> QuickCode | None:
    """None for an expression that has to look at the dtypes."""
    arguments, (_, operands) = op.schema.arguments, _kind_and_operands(op)
    if ":" in str(op.dtype) or not isinstance(arguments[0].type, TensorType):
        return None
    tensors = tuple(a.name for a in arguments if is_tensor(a))
    numbers = tuple(a.name for a in arguments if a.name not in tensors)
    units = {a.name: 1 for a in arguments if (a.kwarg_only or a.name == "alpha") and a.default == 1}
    nodes = list(ast.walk(parse_python_expression(array_code(text, tensors))))
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    computes = any(isinstance(n, (ast.BinOp, ast.Compare)) for n in nodes)
    is_universal = all(isinstance(QUICK_ENVIRONMENT.get(name), np.ufunc) for name in called)
    settings = tuple(name for name in numbers if name not in operands)
    is_exact = not (numbers or computes) and called <= EXACT
    return QuickCode(text, tensors, numbers, units, settings, is_exact, is_universal)


def _kind_and_operands(op: Op) -> tuple[str, list[str]]:
    """The dtype rule's name, and the operands whose dtypes decide."""
    assert op.dtype is None or isinstance(op.dtype, str)
    kind, _, listed = (op.dtype or "promote").partition(":")
    if kind not in ("promote", "float", "number", "bool", "self"):
        raise SchemaError(f"{op.qualified_name}: there is no dtype rule '{kind}'")
    chosen = [name.strip() for name in listed.split(",") if name.strip()] or _operands(op.schema)
    return kind, chosen[:1] if kind == "self" else chosen


def dtype_rule(op: Op) -> Rule:
    """(common dtype, dtype of the result) of the operands."""
    kind, chosen = _kind_and_operands(op)
    places = [i for i, a in enumerate(op.schema.arguments) if a.name in chosen]

    def rule(args: tuple[Any, ...]) -> tuple[xp.NumpyDtype, xp.NumpyDtype]:
        common = result_type(args[i] for i in places)
        if kind == "float":
            common = to_float(common)
        if kind == "number" and common == xp.BOOL:
            common = xp.INT64
        return common, xp.BOOL if kind == "bool" else common

    return rule


def conversions(op: Op) -> list[Conversion]:
    """The function for each argument that brings it to the dtype of the computation; see the module's top."""
    rounds, (_, operands) = rounded_names(op), _kind_and_operands(op)

    def conversion(a: Argument) -> Conversion:
        if a.name in rounds:
            return operand if a.name in operands else _checked_operand
        return _kept if a.name == op.keeps else operand if is_tensor(a) else _setting

    return [conversion(a) for a in op.schema.arguments]


def rounded_names(op: Op) -> frozenset[str]:
    """The arguments that are rounded to a half type before it is computed with."""
    kind, chosen = ("promote", _operands(op.schema)) if op.scalar is None else _kind_and_operands(op)
    scales = {"alpha"} if op.dtype is None else set()
    numbers = {a.name for a in op.schema.arguments} if kind == "self" else scales
    return frozenset({*chosen, *numbers} - {op.keeps})


def promoted_names(op: Op) -> frozenset[str]:
    """The operands that are brought to the dtype common to all of them; none where the first one's decides, and of
    operators without an expression."""
    if op.scalar is None:
        return frozenset()
    kind, chosen = _kind_and_operands(op)
    return frozenset(() if kind == "self" else chosen)


def numbers_in_range(op: Op) -> frozenset[str]:
    """The numbers that are refused where the dtype of the computation has no place for them."""
    operands = _operands(op.schema) if op.scalar is None else _kind_and_operands(op)[1]
    numbers = {a.name for a in op.schema.arguments if _number_type(a) in (NUMBER, FLOAT)}
    return frozenset({*(numbers - {*operands}), *op.in_range})


def _number_type(argument: Argument) -> Type:
    return unwrap_optional(argument.type)


def _kept(value: Any, d: xp.NumpyDtype) -> Any:
    return operand(value, d, keeps=True)


def _setting(value: Any, d: xp.NumpyDtype) -> Any:
    """A number that is no operand; None and words stay what they are."""
    return value if value is None or isinstance(value, str) else converted(value, wide(d))


def _checked_operand(value: Any, d: xp.NumpyDtype) -> Any:
    return operand(converted(value, d), d)


def is_tensor(argument: Argument) -> bool:
    type = argument.type
    return isinstance(type, TensorType) or (isinstance(type, OptionalType) and isinstance(type.element, TensorType))


def _operands(schema: FunctionSchema) -> list[str]:
    def counts(a: Argument) -> bool:
        return is_tensor(a) or (_number_type(a) in (NUMBER, BOOL) and not a.kwarg_only and a.name != "alpha")

    return [a.name for a in schema.arguments if counts(a)]


def _any_dtype(
    compute: Callable[..., Any], rule: Rule, conversions: Sequence[Conversion], check_alpha: bool
) -> Callable[..., Any]:
    known: dict[tuple[Any, ...], tuple[xp.NumpyDtype, xp.NumpyDtype]] = {}
    """The rule's dtypes for arguments of these kinds."""

    def kernel(*args: Any) -> Any:
        key = (
            DEFAULTS.floating,
            *[(arg.dtype, arg.ndim > 0) if isinstance(arg, np.ndarray) else type(arg) for arg in args],
        )
        common, answer = known.get(key) or known.setdefault(key, rule(args))
        if check_alpha and type(args[-1]) is not int:
            _check_alpha(answer, args[-1])
        if answer in xp.HALVES and _are_long_and_alike(args):
            return _in_pieces(compute, args, conversions, common)
        values = [convert(arg, common) for convert, arg in zip(conversions, args, strict=True)]
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


def _in_pieces(
    compute: Callable[..., Any], args: tuple[Any, ...], conversions: Sequence[Conversion], d: xp.NumpyDtype
) -> Any:
    """The same for half types, so that what they become in between stays in the processor's cache."""
    flat = [
        arg.reshape(-1) if isinstance(arg, np.ndarray) else convert(arg, d)
        for convert, arg in zip(conversions, args, strict=True)
    ]
    shape = next(arg.shape for arg in args if isinstance(arg, np.ndarray))
    result = np.empty(shape, d)
    out = result.reshape(-1)
    for start in range(0, out.size, BLOCK):
        some = slice(start, start + BLOCK)
        out[some] = compute(*[operand(v[some], d) if isinstance(v, np.ndarray) else v for v in flat])
    return result


def _check_alpha(answer: xp.NumpyDtype, alpha: Any) -> None:
    if answer in xp.INTEGRAL and isinstance(alpha, (float, complex)):
        raise OperatorError("For integral input tensors, argument alpha must not be a floating point number.")
    if answer not in xp.COMPLEX and isinstance(alpha, complex):
        raise OperatorError("For non-complex input tensors, argument alpha must not be a complex number.")
    if answer != xp.BOOL and isinstance(alpha, bool):
        raise OperatorError("Boolean alpha only supported for Boolean results.")
