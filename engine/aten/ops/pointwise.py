"""Pointwise operators of one, two and three tensors.

A gradient formula is an expression over the arguments, `grad` and `result`; its evaluator sums the
outcome down to its argument's shape and casts it to its dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import checks, pointwise, shapes
from engine.aten.kernels.blocks import choose
from engine.aten.kernels.refusals import no_code, unsupported
from engine.aten.kernels.rules import check_mask, no_kernel, ordered_like
from engine.aten.values import xp
from engine.aten.values.promotion import converted, default_dtype, element, operand, result_type, to_float, wide
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorDtypeError, OperatorError

ALL: Final = "function method inplace out"
_OUT: Final = "function method out"

# ------------------------------------------------------------------ one tensor

_FULL: Final = {"jit_autocast": "full"}
_ACTIVATION: Final = {"activation": True}
_UNARY: Final[dict[str, tuple[Any, ...]]] = {
    # name: (expression, dtype rule, gradient, perhaps more facts)
    "neg": ("-self", "promote", "-grad"),
    "sign": ("sign(self)", "promote", "zeros_like(grad)"),
    "exp": ("exp(self)", "float", "grad * result", _FULL),
    "expm1": ("expm1(self)", "float", "grad * (result + 1)", _FULL),
    "exp2": ("exp2(self)", "float", "grad * result * 0.6931471805599453"),
    "log": ("log(self)", "float", "grad / self", _FULL),
    "log2": ("log2(self)", "float", "grad / (self * 0.6931471805599453)", _FULL),
    "log10": ("log10(self)", "float", "grad / (self * 2.302585092994046)", _FULL),
    "log1p": ("log1p(self)", "float", "grad / (self + 1)", _FULL),
    "sqrt": ("sqrt(self)", "float", "grad / (2 * result)"),
    "rsqrt": ("1 / sqrt(self)", "float", "-0.5 * grad * result.pow(3)", _FULL),
    "square": ("square(self)", "number", "grad * 2 * self"),
    "reciprocal": ("1 / self", "float", "-grad * result * result", _FULL),
    "sin": ("sin(self)", "float", "grad * self.cos()"),
    "cos": ("cos(self)", "float", "grad * -self.sin()"),
    "tan": ("tan(self)", "float", "grad * (1 + result.pow(2))", _FULL),
    "asin": ("asin(self)", "float", "grad * (-self * self + 1).rsqrt()", _FULL),
    "acos": ("acos(self)", "float", "grad * -((-self * self + 1).rsqrt())", _FULL),
    "atan": ("atan(self)", "float", "grad / (self * self + 1)"),
    "sinh": ("sinh(self)", "float", "grad * self.cosh()", _FULL),
    "cosh": ("cosh(self)", "float", "grad * self.sinh()", _FULL),
    "tanh": ("tanh(self)", "float", "grad * (1 - result * result)", _ACTIVATION),
    "asinh": ("asinh(self)", "float", "grad * (self.pow(2) + 1).rsqrt()"),
    "acosh": ("acosh(self)", "float", "grad * (self.pow(2) - 1).rsqrt()"),
    "atanh": ("atanh(self)", "float", "grad / (1 - self.pow(2))"),
    "erf": ("erf(self)", "float", "1.1283791670955126 * exp(-(self.pow(2))) * grad"),
    "erfc": ("erfc(self)", "float", "-1.1283791670955126 * exp(-(self.pow(2))) * grad"),
    "sigmoid": ("sigmoid(self)", "float", "grad * (1 - result) * result", _ACTIVATION),
    "floor": ("floor(self)", "promote", "zeros_like(grad)"),
    "ceil": ("ceil(self)", "promote", "zeros_like(grad)"),
    "round": ("round(self)", "promote", "zeros_like(grad)"),
    "trunc": ("trunc(self)", "promote", "zeros_like(grad)"),
    "frac": ("self - trunc(self)", "promote", "grad"),
}


def absolute(self: Array) -> Array:
    if self.dtype == xp.BOOL:
        raise no_kernel("abs_cpu", self.dtype)
    result: Array = np.abs(self)
    return result


def round_decimals(self: Array, decimals: int) -> Array:
    if self.dtype in xp.INTEGERS:
        return self.copy()
    scale = 10.0 ** abs(decimals)
    x = self.astype(wide(self.dtype))
    rounded = np.rint(x * scale) / scale if decimals >= 0 else np.rint(x / scale) * scale
    return np.asarray(rounded).astype(self.dtype)


def bitwise_not(self: Array) -> Any:
    if self.dtype not in xp.INTEGRAL:
        raise no_kernel("bitwise_not_cpu", self.dtype)
    return np.invert(self)


def isinf(self: Array) -> Any:
    return np.isinf(self) if self.dtype not in xp.INTEGRAL else np.zeros(self.shape, np.bool_)


def nan_to_num(self: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    if self.dtype in xp.INTEGRAL:
        return self.copy()
    if self.dtype in xp.COMPLEX:
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (xp.real(self), xp.imag(self))]
        return (parts[0] + 1j * parts[1]).astype(self.dtype)
    limits: Any = xp.limits(self.dtype)
    ends = [float(limits.max) if posinf is None else posinf, float(limits.min) if neginf is None else neginf]
    x = self.astype(wide(self.dtype))
    x = np.where(np.isnan(x), 0.0 if nan is None else nan, x)
    x = np.where(x == np.inf, ends[0], x)
    return np.where(x == -np.inf, ends[1], x).astype(self.dtype)


for _name, (_expression, _dtype, _gradient, *_facts) in _UNARY.items():
    op(f"aten::{_name}(Tensor self) -> Tensor", scalar=_expression, dtype=_dtype, variants=ALL,
       gradient={"self": _gradient}, **(_facts[0] if _facts else {}))  # fmt: skip

op("aten::abs(Tensor self) -> Tensor", kernel=absolute, variants=ALL, layout="operands",
   gradient={"self": "grad * self.sgn()"})  # fmt: skip
op("aten::round.decimals(Tensor self, *, int decimals) -> Tensor", kernel=round_decimals, variants=ALL,
   gradient={"self": "zeros_like(grad)"})  # fmt: skip
op("aten::positive(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self, variants="function method",
   gradient={"self": "grad"})  # fmt: skip
op("aten::isnan(Tensor self) -> Tensor", scalar="self != self", dtype="bool", variants="function method out")
op("aten::isinf(Tensor self) -> Tensor", kernel=isinf, layout="operands", variants="function method out")
op("aten::isfinite(Tensor self) -> Tensor", scalar="isfinite(self)", dtype="bool", variants="function method")
# As in PyTorch, gradients pass by what the in-place forms of these write.
op("aten::logical_not(Tensor self) -> Tensor", scalar="logical_not(self)", dtype="bool", variants=ALL,
   gradient_in_place={"self": "grad"})  # fmt: skip
op("aten::bitwise_not(Tensor self) -> Tensor", kernel=bitwise_not, variants=ALL)
op("aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
   kernel=nan_to_num, variants=ALL, gradient={"self": "grad * isfinite(self)"})  # fmt: skip

# ------------------------------------------------------------------ limits


def clamp(self: Array, low: Any, high: Any) -> Array:
    """Between two limits, either of which may be missing; a limit that is NaN makes NaN."""
    if low is None and high is None:
        raise OperatorError("torch.clamp: At least one of 'min' or 'max' must not be None")
    d = result_type((self, low, high))
    low, high = (converted(v, d) if type(v) in _REAL and d in xp.REAL else v for v in (low, high))
    if self.dtype in xp.FLOATS and type(low) in _LIMITS and type(high) in _LIMITS:
        return np.asarray(_clamped(self, low, high))
    if d in xp.COMPLEX and not (isinstance(low, np.ndarray) ^ isinstance(high, np.ndarray)):
        raise OperatorDtypeError("clamp is not supported for complex types")
    if d == xp.BOOL and (isinstance(low, bool) or isinstance(high, bool)) and (low is None or high is None):
        raise no_kernel("clamp_max_scalar_cpu" if low is None else "clamp_min_scalar_cpu", d)
    if d in xp.COMPLEX or (d == xp.BOOL and low is not None and high is not None):
        raise no_kernel("clamp_cpu" if d == xp.BOOL else "maximum_cpu" if high is None else "minimum_cpu", d)
    result = self.astype(wide(d))
    if low is not None:
        result = np.asarray(np.maximum(result, np.asarray(low).astype(wide(d))))
    if high is not None:
        result = np.asarray(np.minimum(result, np.asarray(high).astype(wide(d))))
    return result.astype(d)


def _clamped(x: Array, low: float | None, high: float | None) -> Any:
    kind = x.dtype.type
    if low is not None:
        x = np.maximum(x, kind(low))
    return x if high is None else np.minimum(x, kind(high))


_REAL: Final = (int, float)
_LIMITS: Final = (*_REAL, type(None))


def clamp_by_numbers(self: Array, low: Any, high: Any) -> Array:
    """The same by numbers, of which complex ones may stand for real ones."""
    if self.dtype in xp.FLOATING:
        low, high = (converted(v, self.dtype) if isinstance(v, complex) else v for v in (low, high))
    return clamp(self, low, high)


def clamp_min(self: Array, min: Any) -> Array:
    return clamp(self, min, None)


def clamp_max(self: Array, max: Any) -> Array:
    return clamp(self, None, max)


op("aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", kernel=clamp_by_numbers, variants=ALL,
   gradient={"self": "_clamp_backward(grad, self, min, max)"}, dtype="floats")  # fmt: skip
op("aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", kernel=clamp, variants=ALL,
   gradient={"self": "_clamp_backward(grad, self, min, max)",
             "min": "_clamp_limit_backward(grad, self, min, max, True)",
             "max": "_clamp_limit_backward(grad, self, min, max, False)"}, dtype="floats")  # fmt: skip
op("aten::clamp_min(Tensor self, Scalar min) -> Tensor", kernel=clamp_min, variants=ALL,
   gradient={"self": "where(self >= min, grad, 0)"})  # fmt: skip
op("aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", kernel=clamp_min, variants=ALL,
   gradient={"self": "where(self >= min, grad, 0)", "min": "where(self < min, grad, 0)"})  # fmt: skip
op("aten::clamp_max(Tensor self, Scalar max) -> Tensor", kernel=clamp_max, variants=ALL,
   gradient={"self": "where(self <= max, grad, 0)"})  # fmt: skip
op("aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", kernel=clamp_max, variants=ALL,
   gradient={"self": "where(self <= max, grad, 0)", "max": "where(self > max, grad, 0)"})  # fmt: skip

# ------------------------------------------------------------------ two tensors

op("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", scalar="self + alpha * other",
   variants="function method inplace out:out", gradient={"self": "grad", "other": "grad * alpha"},
   jit_autocast="widest")  # fmt: skip
op("aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", scalar="self + alpha * other",
   variants=ALL, gradient={"self": "grad"}, jit_autocast="widest")  # fmt: skip
op("aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", scalar="self - alpha * other",
   variants="function method inplace out:out", gradient={"self": "grad", "other": "-grad * alpha"},
   jit_autocast="widest")  # fmt: skip
op("aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", scalar="self - alpha * other",
   variants=ALL, gradient={"self": "grad"}, jit_autocast="widest")  # fmt: skip
op("aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", scalar="other - alpha * self",
   variants="function out", gradient={"self": "-grad * alpha", "other": "grad"})  # fmt: skip
op("aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", scalar="other - alpha * self",
   variants="function out", gradient={"self": "-grad * alpha"})  # fmt: skip
op("aten::_test_serialization_subcmul(Tensor self, Tensor other, Scalar alpha=1) -> Tensor",
   composite="self - other * alpha")  # fmt: skip
op("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", scalar="self * other",
   variants="function method inplace out:out",
   gradient={"self": "grad * other", "other": "grad * self"}, jit_autocast="widest")  # fmt: skip
op("aten::mul.Scalar(Tensor self, Scalar other) -> Tensor", scalar="self * other", variants=ALL,
   gradient={"self": "grad * other"}, jit_autocast="widest")  # fmt: skip
op("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", scalar="self / other", dtype="float",
   variants="function method inplace out:out",
   gradient={"self": "grad / other", "other": "-grad * (self / other / other)"}, jit_autocast="widest")  # fmt: skip
op("aten::div.Scalar(Tensor self, Scalar other) -> Tensor", scalar="self / other", dtype="float", variants=ALL,
   gradient={"self": "grad / other"}, jit_autocast="widest")  # fmt: skip


def divide_mode(self: Array, other: Any, rounding_mode: str | None) -> Array:
    d = result_type((self, other))
    if rounding_mode is None:
        d = to_float(d)
    elif rounding_mode not in _DIVISIONS:
        raise OperatorError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    if d not in xp.REAL and rounding_mode is not None:
        raise no_kernel(f"div_{rounding_mode}_cpu", d)
    if d in xp.HALVES and rounding_mode == "trunc" and np.size(other) != 1:
        quotient = np.asarray(np.divide(*_operands(d, self, other, keeps=True))).astype(d).astype(wide(d))
        whole: Array = np.trunc(quotient)
        return whole.astype(d)
    divide = np.divide if rounding_mode is None else _DIVISIONS[rounding_mode]
    return np.asarray(divide(*_operands(d, self, other, keeps=True))).astype(d)


def _operands(d: xp.NumpyDtype, *values: Any, keeps: bool = False) -> list[Array]:
    """Values as arrays of the dtype that `d` is computed in; the operator may keep the last one as it is."""
    last = len(values) - 1
    return [operand(np.asarray(v), d, keeps and i == last) for i, v in enumerate(values)]


_DIVISIONS: Final[dict[str, Callable[..., Any]]] = {
    "floor": pointwise.floor_divide, "trunc": pointwise.trunc_divide,
}  # fmt: skip


def integral(expression: str, name: str) -> Callable[[Any, Any], Array]:
    """A kernel of two operands that refuses fractions."""
    function = pointwise.FUNCTIONS[expression]

    def kernel(self: Any, other: Any) -> Array:
        d = result_type((self, other))
        if d == xp.BOOL and type(self) is np.ndarray and type(other) is np.ndarray and "shift" not in name:
            return np.asarray(function(self, other))
        if d not in (xp.INTEGERS if "shift" in name else xp.INTEGRAL):
            raise no_kernel(name, d)
        return np.asarray(function(*_operands(d, self, other))).astype(d)

    return kernel


def power(self: Any, exponent: Any) -> Any:
    is_plain = isinstance(self, np.ndarray) and self.dtype in xp.FLOATS
    if is_plain and type(exponent) in (int, float) and exponent in pointwise.POWERS:
        return np.asarray(pointwise.power(self, exponent))
    d = result_type((self, exponent))
    if d in xp.INTEGERS and isinstance(exponent, int) and exponent < 0:
        raise OperatorError("Integers to negative integer powers are not allowed.")
    if d == xp.BOOL and not isinstance(self, np.ndarray) and not self:
        raise no_kernel("pow", d)
    if not isinstance(exponent, np.ndarray) and (d in xp.INTEGERS or d in xp.HALVES):
        exponent = converted(exponent, d)
    base, power = _operands(d, self, exponent)
    if not isinstance(exponent, np.ndarray):
        return ordered_like(np.asarray(pointwise.power(base, power.item())).astype(d), (base,))
    return ordered_like(np.asarray(pointwise.power(base, power)).astype(d), (base, power))


def remainder_scalar_first(self: Any, other: Array) -> Array:
    d = result_type((self, other))
    return np.asarray(pointwise.remainder(*_operands(d, self, other))).astype(d)


_MODE_GRADIENT = "grad / other if rounding_mode is None else zeros_like(grad)"
op("aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", kernel=divide_mode,
   variants="function method inplace out:out_mode",
   gradient={"self": _MODE_GRADIENT,
             "other": "-grad * (self / other / other) if rounding_mode is None else zeros_like(grad)"},
   jit_autocast="widest")  # fmt: skip
op("aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", kernel=divide_mode,
   variants=ALL, gradient={"self": _MODE_GRADIENT}, jit_autocast="widest")  # fmt: skip
op("aten::true_divide.Tensor(Tensor self, Tensor other) -> Tensor", scalar="self / other", dtype="float",
   alias_of="aten::div", variants="function method inplace out:out",
   gradient={"self": "grad / other", "other": "-grad * (self / other / other)"})  # fmt: skip
op("aten::true_divide.Scalar(Tensor self, Scalar other) -> Tensor", scalar="self / other", dtype="float",
   alias_of="aten::div", variants="function method inplace", gradient={"self": "grad / other"})  # fmt: skip
op(
    "aten::floor_divide(Tensor self, Tensor other) -> Tensor",
    scalar="self // other",
    variants="function method inplace:Tensor out",
)
op("aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", scalar="self // other", variants=ALL)
op("aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor", scalar="self % other", variants=ALL,
   gradient={"self": "grad", "other": "-grad * self.div(other, rounding_mode='floor')"})  # fmt: skip
op("aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor", scalar="self % other", variants=ALL,
   gradient={"self": "grad"})  # fmt: skip
op("aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", kernel=remainder_scalar_first,
   variants="function out")  # fmt: skip
op("aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor", scalar="fmod(self, other)", variants=ALL,
   gradient={"self": "grad", "other": "-grad * self.div(other, rounding_mode='trunc')"})  # fmt: skip
op("aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor", scalar="fmod(self, other)", variants=ALL,
   gradient={"self": "grad"})  # fmt: skip
op("aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", kernel=power,
   variants="function method inplace:Tensor out",
   gradient={"self": "where(exponent == 0, zeros_like(grad), grad * (exponent * self.pow(exponent - 1)))",
             "exponent": "grad * where((self == 0) & (exponent >= 0), zeros_like(result), result * self.log())"},
   jit_autocast="full")  # fmt: skip
op("aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", kernel=power,
   variants="function method inplace:Scalar out",
   gradient={"self": "zeros_like(grad) if exponent == 0 else grad * (exponent * self.pow(exponent - 1))"},
   jit_autocast="full")  # fmt: skip
op("aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor", kernel=power, variants="function out",
   gradient={"exponent": "grad * (result * log(self)) if self != 0 else "
                         "grad * where(exponent >= 0, zeros_like(result), result * log(self))"},
   jit_autocast="full")  # fmt: skip
op("aten::atan2(Tensor self, Tensor other) -> Tensor", scalar="atan2(self, other)", dtype="float", variants=ALL,
   gradient={"self": "grad * other * (self * self + other * other).reciprocal().masked_fill("
                     "self * self + other * other == 0, 0)",
             "other": "grad * -self * (self * self + other * other).reciprocal().masked_fill("
                      "self * self + other * other == 0, 0)"}, jit_autocast="widest")  # fmt: skip
for _name, _less in (("maximum", "<"), ("minimum", ">")):
    op(f"aten::{_name}(Tensor self, Tensor other) -> Tensor", scalar=f"{_name}(self, other)",
       variants="function method out",
       gradient={"self": f"where(self {_less} other, 0, where(self == other, grad / 2, grad))",
                 "other": f"where(other {_less} self, 0, where(self == other, grad / 2, grad))"})  # fmt: skip


def _augmented(short: str, of_scalar: str, of_tensor: str) -> None:
    """The operator that `self |= other` is: another one of the same kind, by its overloads for numbers and tensors."""
    for kind, name in (("Scalar", of_scalar), ("Tensor", of_tensor)):
        op(f"aten::__i{short}__.{kind}(Tensor(a!) self, {kind} other) -> Tensor(a!)", variants="method",
           python=lambda self, other, name=name: run(name, self, other))  # fmt: skip


for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _kernel = integral(_name, f"{_name}_cpu")
    op(f"aten::{_name}.Tensor(Tensor self, Tensor other) -> Tensor", kernel=_kernel, variants=ALL)
    op(f"aten::{_name}.Scalar(Tensor self, Scalar other) -> Tensor", kernel=_kernel, variants=ALL)
    op(f"aten::{_name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", kernel=_kernel, variants="function out")
    _dunder = f"__{_name.removeprefix('bitwise_')}__"
    op(f"aten::{_dunder}.Scalar(Tensor self, Scalar other) -> Tensor", kernel=_kernel, variants="function method")
    op(f"aten::{_dunder}.Tensor(Tensor self, Tensor other) -> Tensor", kernel=_kernel, variants="function method")
    _augmented(_dunder.strip("_"), f"{_name}_.Scalar", f"{_name}_.Tensor")
for _name, _short, _message in (("left", "lshift", "lshift_cpu"), ("right", "rshift", "rshift_cpu")):
    _kernel = integral(f"{_name}_shift", _message.replace("_cpu", "_shift_cpu"))
    _full = f"bitwise_{_name}_shift"
    op(f"aten::{_full}.Tensor(Tensor self, Tensor other) -> Tensor", kernel=_kernel, variants=ALL)
    op(f"aten::{_full}.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", kernel=_kernel, variants=ALL)
    op(f"aten::{_full}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", kernel=_kernel, variants="function out")
    op(f"aten::__{_short}__.Scalar(Tensor self, Scalar other) -> Tensor", kernel=_kernel, variants=_OUT)
    op(f"aten::__{_short}__.Tensor(Tensor self, Tensor other) -> Tensor", kernel=_kernel, variants=_OUT)
    _augmented(_short, f"{_full}_.Tensor_Scalar", f"{_full}_.Tensor")
for _name in ("logical_and", "logical_or", "logical_xor"):
    op(f"aten::{_name}(Tensor self, Tensor other) -> Tensor", scalar=f"{_name}(self, other)", dtype="bool",
       variants=ALL, gradient_in_place={"self": "grad"})  # fmt: skip

# ------------------------------------------------------------------ three tensors


def lerp(self: Array, end: Array, weight: Any) -> Array:
    """Between two values, from the nearer one: so that the whole way ends exactly there."""
    used = wide(self.dtype)
    a, b = self.astype(used, copy=False), end.astype(used, copy=False)
    w = xp.cast(weight, used) if isinstance(weight, np.ndarray) else np.asarray(converted(weight, used), used)
    if w.ndim:
        between: Array = choose(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))
    else:
        between = a + w * (b - a) if abs(w) < 0.5 else b - (b - a) * (1 - w)
    return between.astype(self.dtype, copy=False)


op("aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", kernel=lerp, variants=ALL,
   gradient={"self": "grad * (1 - weight)", "end": "grad * weight"})  # fmt: skip
op("aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", kernel=lerp, variants=ALL,
   gradient={"self": "grad * (1 - weight)", "end": "grad * weight", "weight": "grad * (end - self)"})  # fmt: skip
op("aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
   scalar="self + value * (tensor1 * tensor2)", variants=ALL,
   gradient={"self": "grad", "tensor1": "grad * (tensor2 * value)",
             "tensor2": "grad * (tensor1 * value)"}, jit_autocast="widest")  # fmt: skip
op("aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
   scalar="self + value * tensor1 / tensor2", variants=ALL,
   gradient={"self": "grad", "tensor1": "grad * ((zeros_like(tensor2) + value) / tensor2)",
             "tensor2": "-grad * ((value * tensor1) / (tensor2 * tensor2))"}, jit_autocast="widest")  # fmt: skip


def where(condition: Array, self: Any, other: Any) -> Array:
    if condition.dtype != xp.BOOL and condition.dtype != xp.UINT8:
        raise OperatorError(
            "where expected condition to be a boolean tensor, "
            f"but got a tensor with dtype {xp.ir_name(condition.dtype)}"
        )
    if type(self) is type(other) is np.ndarray and self.dtype is other.dtype and condition.dtype is xp.BOOL:
        return np.asarray(choose(condition, self, other))
    d = result_type((self, other))
    values = (v if isinstance(v, np.ndarray) else element(v, d) for v in (self, other))
    return np.where(condition.astype(np.bool_, copy=False), *(np.asarray(v).astype(d) for v in values))


def where_scalars(condition: Array, self: Any, other: Any) -> Array:
    values = [np.asarray(element(v, default_like(v))).astype(default_like(v)) for v in (self, other)]
    return where(condition, *values)


def default_like(value: Any) -> xp.NumpyDtype:
    """The dtype of a Python number as a tensor of its own."""
    return default_dtype() if isinstance(value, float) else result_type((value,))


def nonzero_tuple(condition: Array) -> list[Array]:
    return [np.ascontiguousarray(index) for index in np.nonzero(np.atleast_1d(condition))]


def masked_fill(self: Array, mask: Array, value: Any) -> Array:
    check_mask(mask)
    if isinstance(value, np.ndarray) and value.ndim:
        raise OperatorError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    number = value.item() if isinstance(value, np.ndarray) else value
    return np.asarray(choose(mask, np.asarray(converted(number, self.dtype), self.dtype), self))


_WHERE = {"self": "where(condition, grad, 0)", "other": "where(condition, 0, grad)"}
op("aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", kernel=where,
   variants="function method out",
   gradient=_WHERE, shape=shapes.pointwise, dtype="floats")  # fmt: skip
op("aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", kernel=where, variants="method",
   gradient={"self": _WHERE["self"]}, shape=shapes.pointwise, dtype="floats")  # fmt: skip
op("aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", kernel=where,
   gradient={"other": _WHERE["other"]}, shape=shapes.pointwise, dtype="floats")  # fmt: skip
op("aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", kernel=where_scalars,
   shape=shapes.pointwise, dtype="floats")  # fmt: skip
op("aten::where(Tensor condition) -> Tensor[]", kernel=nonzero_tuple, data_dependent=True)
op("aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", kernel=masked_fill, variants=ALL,
   gradient={"self": "grad.masked_fill(mask, 0)"}, shape=shapes.pointwise, dtype="same",
   layout="contiguous")  # fmt: skip
op("aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", kernel=masked_fill, variants=ALL,
   gradient={"self": "grad.masked_fill(mask, 0)", "value": "where(mask, grad, 0).sum()"},
   shape=shapes.pointwise, dtype="same", layout="contiguous")  # fmt: skip


# ------------------------------------------------------------------ layouts

describe(
    "nan_to_num bitwise_and bitwise_or bitwise_xor bitwise_not clamp_min clamp_max clamp "
    "bitwise_left_shift bitwise_right_shift div.Tensor_mode div.Scalar_mode lerp where round.decimals "
    "pow.Tensor_Tensor pow.Tensor_Scalar",
    layout="operands",
)
describe("pow.Scalar", layout="contiguous")
describe("__and__.Tensor __or__.Tensor __xor__.Tensor __lshift__.Tensor __rshift__.Tensor", layout="operands")
describe("rsub.Tensor", layout="operands: other, self")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("ceil", refuses=no_code("b", "ceil_vml_cpu"))
describe("floor", refuses=no_code("b", "floor_vml_cpu"))
describe("trunc", refuses=no_code("b", "trunc_vml_cpu"))
describe("round", refuses=no_code("b", "round_vml_cpu"))
describe("erf", refuses=no_code("c", "erf_vml_cpu"))
describe("erfc", refuses=no_code("c", "erfc_vml_cpu"))
describe("frac", refuses=no_code("bic", "frac_cpu"))
describe("addcmul", refuses=no_code("b", "addcmul_cpu_out", common=True))
describe("atan2", refuses=no_code("c", "atan2_cpu", common=True))
describe("floor_divide", refuses=no_code("bc", "div_floor_cpu", common=True))
describe("bitwise_left_shift __lshift__", refuses=no_code("bfc", "lshift_cpu", common=True))
describe("bitwise_right_shift __rshift__", refuses=no_code("bfc", "rshift_cpu", common=True))
describe("bitwise_and __and__", refuses=no_code("fc", "bitwise_and_cpu", common=True))
describe("bitwise_or __or__", refuses=no_code("fc", "bitwise_or_cpu", common=True))
describe("bitwise_xor __xor__", refuses=no_code("fc", "bitwise_xor_cpu", common=True))
describe("ceil", refuses=unsupported("c", "ceil is not supported for complex inputs", error=OperatorDtypeError))
describe("floor", refuses=unsupported("c", "floor is not supported for complex inputs", error=OperatorDtypeError))
describe("trunc", refuses=unsupported("c", "trunc is not supported for complex inputs", error=OperatorDtypeError))
describe("round", refuses=unsupported("c", "round is not supported for complex inputs", error=OperatorDtypeError))
describe(
    "sign",
    refuses=unsupported(
        "c",
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
        error=OperatorDtypeError,
    ),
)
describe("positive", refuses=unsupported("b", "The `+` operator, on a bool tensor is not supported."))
describe("maximum", refuses=unsupported("c", "maximum not implemented for complex tensors.", common=True))
describe("minimum", refuses=unsupported("c", "minimum not implemented for complex tensors.", common=True))
describe("fmod.Tensor fmod.Scalar", refuses=no_code("bc", "fmod_cpu", common=True))
describe(
    "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor",
    refuses=no_code("bc", "remainder_cpu", common=True),
)
describe("lerp.Scalar", refuses=no_code("bi", "lerp_kernel_scalar", common=True))
describe("lerp.Tensor", refuses=no_code("bi", "lerp_kernel_tensor", common=True))
describe("pow.Tensor_Tensor", refuses=no_code("b", "pow", common=True))
describe("sub.Tensor sub.Scalar rsub", check=checks.no_bool_difference)
describe("neg", check=checks.no_bool_negation)
describe("lerp", check=checks.same_dtypes)
describe("addcdiv", check=checks.no_whole_quotient)
describe("abs_", check=checks.not_in_place)
describe("round.decimals", check=checks.whole_as_it_is)
describe(
    "__lshift__.Scalar_out __lshift__.Tensor_out __rshift__.Scalar_out __rshift__.Tensor_out "
    "add.Scalar_out bitwise_and.Scalar_Tensor_out bitwise_left_shift.Scalar_Tensor_out "
    "bitwise_or.Scalar_Tensor_out bitwise_right_shift.Scalar_Tensor_out bitwise_xor.Scalar_Tensor_out "
    "div.Scalar_mode_out div.Scalar_out floor_divide.Scalar_out isinf.out isnan.out "
    "masked_fill.Scalar_out masked_fill.Tensor_out mul.Scalar_out remainder.Scalar_Tensor_out "
    "rsub.Scalar_out rsub.Tensor_out sub.Scalar_out",
    out_check=out_checks.check_same,
)
describe(
    "bitwise_not.out ceil.out clamp.out clamp_max.out clamp_min.out floor.out frac.out lerp.Tensor_out "
    "neg.out round.decimals_out round.out sign.out trunc.out",
    out_check=out_checks.check_found,
)
describe("where.self_out", out_check=out_checks.only_same("Expected out type to be {wanted} but got {given}"))
describe(
    "nan_to_num.out",
    out_check=out_checks.only_same("nan_to_num: dtype of out: {given} should be same as input: {wanted}"),
)
describe("abs.out", out_check=out_checks.check_size_of)
describe("masked_fill_", writes_again=True)

describe("mul div true_divide floor_divide", keeps="other")
describe("mul_ div_ true_divide_ floor_divide_", keeps="other")

# ------------------------------------------------------------------ kernels as expressions

describe("abs", expression="abs(self)")
describe("isinf", expression="isinf(self)")
describe("bitwise_not", expression="bitwise_not(self)")
describe("clamp", expression="(self if max is None else minimum(self, max)) if min is None else "
                             "(maximum(self, min) if max is None else minimum(maximum(self, min), max))")  # fmt: skip
describe("clamp_min", expression="maximum(self, min)")
describe("clamp_max", expression="minimum(self, max)")
describe("pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar", expression="pow(self, exponent)")
describe("clamp", in_range=("min", "max"))
describe("clamp_min", in_range=("min",))
describe("clamp_max", in_range=("max",))
describe("pow.Tensor_Scalar", in_range=("exponent",))
describe("lerp.Scalar", in_range=("weight",))
describe("lerp", expression="where(abs(weight) < 0.5, self + weight * (end - self), "
                            "end - (end - self) * (1 - weight))")  # fmt: skip
describe("div.Tensor_mode div.Scalar_mode", expression="self / other if rounding_mode is None else "
                                                       "self // other if rounding_mode == 'floor' else "
                                                       "trunc_divide(self, other)")  # fmt: skip
describe("where.self where.ScalarOther where.ScalarSelf where.Scalar", expression="where(condition, self, other)",
         in_range=("self", "other"))  # fmt: skip
describe("masked_fill.Scalar masked_fill.Tensor", expression="where(mask, value, self)", in_range=("value",))


def _in_place_by_python(short: str, of_scalar: str, of_tensor: str) -> None:
    """The operator that `self |= other` is: another one of the same kind, by its overloads for numbers and tensors."""
    for kind, name in (("Scalar", of_scalar), ("Tensor", of_tensor)):
        op(f"aten::__i{short}__.{kind}(Tensor(a!) self, {kind} other) -> Tensor(a!)", variants="method",
           python=lambda self, other, name=name: run(name, self, other))  # fmt: skip


for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _dunder = f"__{_name.removeprefix('bitwise_')}__"
    _overloads = f"{_name}.Tensor {_name}.Scalar {_name}.Scalar_Tensor {_dunder}.Tensor {_dunder}.Scalar"
    describe(_overloads, expression=f"{_name}(self, other)")
