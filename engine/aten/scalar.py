"""Pointwise operators: an expression, and the dtype rule around it.

In: an entry with a `scalar` body and its `dtype` rule.  Out: a kernel over arrays.  Rules:

    promote   compute and answer in the common dtype of the operands (the default)
    float     the same, with whole numbers made the default float first
    bool      compute in the common dtype, answer in bool
    self      compute and answer in self's dtype

A rule may name its operands, `promote: self, other`; unnamed, they are every tensor and every Scalar
that is not keyword-only.  Half types are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.aten import xp
from engine.aten.expression import array_code, compile_expression
from engine.aten.pointwise import FUNCTIONS
from engine.aten.promotion import fit, result_type, to_float, wide
from engine.lang.errors import OperatorError, SchemaError
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import BOOL, NUMBER, OptionalType, TensorType

if TYPE_CHECKING:
    from engine.aten.op import Op

Rule = Callable[[tuple[Any, ...]], tuple[xp.NumpyDtype, xp.NumpyDtype]]


def scalar_kernel(op: Op) -> Callable[..., Any]:
    """The operator's expression as a kernel over arrays, in all dtypes."""
    assert op.scalar is not None
    schema = op.schema
    names = [a.name for a in schema.arguments]
    arrays = [a.name for a in schema.arguments if is_tensor(a)]
    slow = _any_dtype(compile_expression(op.scalar, names, arrays), dtype_rule(op), check_alpha="alpha" in names)
    if ":" in str(op.dtype) or not isinstance(schema.arguments[0].type, TensorType):
        return slow
    return _floats_first(op.scalar, schema, slow)


def _floats_first(expression: str, schema: FunctionSchema, slow: Callable[..., Any]) -> Callable[..., Any]:
    """No conversion where the tensors are all float32 or all float64 and the numbers real, else `slow`."""
    names = [a.name for a in schema.arguments]
    tensors = [a.name for a in schema.arguments if is_tensor(a)]
    numbers = [name for name in names if name not in tensors]
    alike = [f"{name}.dtype is d" for name in tensors[1:]] + [f"type({name}) in real" for name in numbers]
    units = {a.name: 1 for a in schema.arguments if a.kwarg_only and a.default == 1}
    lines = [
        f"def kernel({', '.join(names)}):",
        f"    d = {tensors[0]}.dtype",
        f"    if {' and '.join(['(d is f32 or d is f64)', *alike])}:",
        f"        return {array_code(expression, tensors)}",
        f"    return slow({', '.join(names)})",
    ]
    if units:
        is_unit = " and ".join(f"{name} == 1" for name in units)
        lines.insert(3, f"        if {is_unit}: return {array_code(expression, tensors, units)}")
    environment: dict[str, Any] = {
        **FUNCTIONS,
        "f32": xp.FLOAT32,
        "f64": xp.FLOAT64,
        "real": (int, float),
        "slow": slow,
    }
    exec(compile("\n".join(lines), f"<scalar {expression}>", "exec"), environment)
    kernel: Callable[..., Any] = environment["kernel"]
    return kernel


def dtype_rule(op: Op) -> Rule:
    """(dtype to compute in, dtype of the result) of the operands."""
    assert op.dtype is None or isinstance(op.dtype, str)
    kind, _, listed = (op.dtype or "promote").partition(":")
    chosen = [name.strip() for name in listed.split(",") if name.strip()] or _operands(op.schema)
    places = [i for i, a in enumerate(op.schema.arguments) if a.name in chosen]
    if kind == "self":
        places = places[:1]
    if kind not in ("promote", "float", "bool", "self"):
        raise SchemaError(f"{op.qualified_name}: there is no dtype rule '{kind}'")

    def rule(args: tuple[Any, ...]) -> tuple[xp.NumpyDtype, xp.NumpyDtype]:
        common = result_type(args[i] for i in places)
        if kind == "float":
            common = to_float(common)
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
    def kernel(*args: Any) -> Any:
        used, answer = rule(args)
        if check_alpha:
            _check_alpha(answer, args[-1])
        values = [_converted(arg, used) for arg in args]
        result = compute(*values)
        if any(result is value for value in values):
            result = np.array(result)
        return result if result.dtype is answer else result.astype(answer)

    return kernel


def _converted(value: Any, d: xp.NumpyDtype) -> Any:
    if isinstance(value, np.ndarray):
        return value if value.dtype is d else value.astype(d)
    return value if value is None or isinstance(value, str) else fit(value, d)


def _check_alpha(answer: xp.NumpyDtype, alpha: Any) -> None:
    if answer.kind in "iub" and isinstance(alpha, (float, complex)):
        raise OperatorError("For integral input tensors, argument alpha must not be a floating point number.")
    if answer.kind != "b" and isinstance(alpha, bool):
        raise OperatorError("Boolean alpha only supported for Boolean results.")
