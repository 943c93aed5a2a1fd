"""Less common pointwise operators: angle conversion, parts of complex numbers, neighbouring floats.

In: arrays.  Out: arrays, or views of complex numbers' memory.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import cast, run, widened
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels import checks, pointwise
from engine.aten.kernels.random import Generator, generator
from engine.aten.kernels.refusals import no_code, unsupported
from engine.aten.kernels.rules import no_kernel, wrap_dim
from engine.aten.values import xp
from engine.aten.values.promotion import operand, result_type, to_float, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorDtypeError, OperatorError

ALL: Final = "function method inplace out"
OUT: Final = "function method out"

# ------------------------------------------------------------------ pairs of numbers


def binary(
    function: Callable[..., Any],
    name: str,
    dtypes: frozenset[xp.NumpyDtype] = xp.REAL | {xp.BOOL},
    floats: bool = False,
) -> Callable[[Any, Any], Array]:
    """A kernel of two operands in their common dtype, which must be one of `dtypes`; halves through float32."""

    def kernel(self: Any, other: Any) -> Array:
        d = result_type((self, other))
        if d not in dtypes:
            raise no_kernel(name, d)
        a, b = (operand(np.asarray(v), d) for v in (self, other))
        return np.asarray(function(a, b)).astype(d, copy=False)

    return kernel


def log_add_exp(a: Array, b: Array) -> Array:
    if a.dtype not in xp.COMPLEX:
        return np.asarray(np.logaddexp(a, b))
    swapped = a.real > b.real
    low, high = np.where(swapped, b, a), np.where(swapped, a, b)
    endless = ~np.isfinite(low.real) & (low.real == high.real)
    apart = np.log(1 + np.exp(np.where(endless, 0, low - high))) + high
    return np.where(endless, np.where(low.real < 0, low, np.log(np.exp(low) + np.exp(high))), apart)


def log_add_exp2(a: Array, b: Array) -> Array:
    return np.asarray(np.logaddexp2(a, b))


def heaviside(self: Array, values: Array) -> Array:
    if self.dtype != values.dtype:
        raise OperatorError("heaviside is not yet implemented for tensors with different dtypes.")
    if self.dtype in xp.COMPLEX:
        raise OperatorError("heaviside is not yet implemented for complex tensors.")
    zero = self == 0
    return np.where(zero, values, np.asarray(self > 0).astype(self.dtype))


def copysign(self: Array, other: Any) -> Array:
    d = to_float(result_type((self, other)))
    a, b = (operand(np.asarray(v), d) for v in (self, other))
    return np.asarray(np.copysign(a, b)).astype(d)


def nextafter(self: Array, other: Array) -> Array:
    d = result_type((self, other))
    if d not in xp.FLOATING:
        raise no_kernel("nextafter_cpu", d)
    return np.asarray(np.nextafter(self.astype(d), other.astype(d)))


def ldexp(self: Tensor, other: Tensor) -> Tensor:
    """self * 2**other."""
    power: Tensor = run("pow.Scalar", 2.0, other)
    return self * power


def frexp(self: Array) -> tuple[Array, Array]:
    if self.dtype not in xp.FLOATING:
        raise OperatorError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(self.astype(wide(self.dtype), copy=False))
    return np.asarray(mantissa).astype(self.dtype), np.asarray(exponent).astype(np.int32)


def float_power(self: Any, exponent: Any) -> Tensor:
    """The power in double precision."""
    given = [v.array if isinstance(v, Tensor) else v for v in (self, exponent)]
    d = xp.COMPLEX128 if result_type(given) in xp.COMPLEX else xp.FLOAT64
    base, power = (cast(v, d) if isinstance(v, Tensor) else d.type(v).item() for v in (self, exponent))
    kinds = {(True, True): "Tensor_Tensor", (True, False): "Tensor_Scalar", (False, True): "Scalar"}
    result: Tensor = run(f"pow.{kinds[isinstance(base, Tensor), isinstance(power, Tensor)]}", base, power)
    return result


def gcd(a: Array, b: Array) -> Array:
    return np.asarray(np.gcd(a, b))


def lcm(a: Array, b: Array) -> Array:
    return np.asarray(np.lcm(a, b))


for _name, _function, _gradient in (
    ("logaddexp", log_add_exp, ("grad / (1 + exp(other - self))", "grad / (1 + exp(self - other))")),
    ("logaddexp2", log_add_exp2, ("grad / (1 + pow(2, other - self))", "grad / (1 + pow(2, self - other))")),
    ("fmax", np.fmax, ("grad.masked_fill((self >= other).logical_or_(other.isnan()).logical_not_(), 0)",
                       "grad.masked_fill((self >= other).logical_or_(other.isnan()), 0)")),
    ("fmin", np.fmin, ("grad.masked_fill((self <= other).logical_or_(other.isnan()).logical_not_(), 0)",
                       "grad.masked_fill((self <= other).logical_or_(other.isnan()), 0)")),
):  # fmt: skip
    _dtypes = {"logaddexp": xp.INEXACT, "logaddexp2": xp.FLOATING}.get(_name, xp.REAL | {xp.BOOL})
    op(f"aten::{_name}(Tensor self, Tensor other) -> Tensor", variants=OUT,
       kernel=binary(_function, f"{_name}_cpu", _dtypes),
       gradient=dict(zip(("self", "other"), _gradient, strict=True)))  # fmt: skip
op("aten::hypot(Tensor self, Tensor other) -> Tensor", kernel=binary(np.hypot, "hypot_cpu", xp.FLOATING), variants=ALL,
   gradient={"self": "grad * (self / result)", "other": "grad * (other / result)"})  # fmt: skip
op("aten::heaviside(Tensor self, Tensor values) -> Tensor", kernel=heaviside, variants=ALL)
_COPYSIGN: Final = "where(self == 0, zeros_like(grad), grad * (result / self))"
op("aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor", kernel=copysign,
   variants="function method inplace out:out", gradient={"self": _COPYSIGN, "other": "zeros_like(other)"})  # fmt: skip
op("aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor", kernel=copysign, variants=ALL,
   gradient={"self": _COPYSIGN})  # fmt: skip
op("aten::nextafter(Tensor self, Tensor other) -> Tensor", kernel=nextafter, variants=ALL,
   gradient={"self": "where(self == other, 0, grad)", "other": "zeros_like(grad)"})  # fmt: skip
_LDEXP: Final = op("aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor", python=ldexp,
                   variants="function method out:out")  # fmt: skip
op("aten::ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)", functional=_LDEXP, variants="method")
out_form(op("aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", kernel=frexp,
            variants="function method", gradient={"self": "grad / exponent.exp2()"}),
         "Tensor_out", "mantissa exponent")  # fmt: skip
op("aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", python=float_power,
   variants="function method inplace:Tensor out")  # fmt: skip
op("aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", python=float_power,
   variants="function method inplace:Scalar out")  # fmt: skip
op("aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", python=float_power, variants="function out")
op("aten::gcd(Tensor self, Tensor other) -> Tensor", kernel=binary(gcd, "gcd_cpu", xp.INTEGERS), variants=ALL)
op("aten::lcm(Tensor self, Tensor other) -> Tensor", kernel=binary(lcm, "lcm_cpu", xp.INTEGERS), variants=ALL)


def add_relu(self: Array, other: Any, alpha: Any) -> Array:
    d = result_type((self, other))
    total = self.astype(wide(d)) + alpha * np.asarray(other).astype(wide(d))
    return np.asarray(np.maximum(total, 0)).astype(d)


op("aten::_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", kernel=add_relu,
   variants="function inplace out:out")  # fmt: skip
op("aten::_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", kernel=add_relu,
   variants="function inplace out")  # fmt: skip

# ------------------------------------------------------------------ one number


def log_cumulative_sum(self: Array, dim: int) -> Array:
    """The logarithm of the running sum of exponentials."""
    if self.dtype not in xp.FLOATING and self.dtype not in xp.COMPLEX:
        raise no_kernel("logcumsumexp_out_cpu", self.dtype)
    axis = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return self.copy()
    if self.dtype in xp.COMPLEX:
        rows = np.moveaxis(self, axis, 0)
        summed = list(itertools.accumulate(rows, log_add_exp))
        return np.moveaxis(np.stack(summed), 0, axis) if summed else self.copy()
    return np.asarray(np.logaddexp.accumulate(self.astype(wide(self.dtype)), axis=axis)).astype(self.dtype)


def sgn(self: Array) -> Array:
    if self.dtype not in xp.COMPLEX:
        return xp.cast(np.asarray(pointwise.sign(xp.cast(self, wide(self.dtype)))), self.dtype)
    size = np.abs(self)
    return np.where(size == 0, 0, self / np.where(size == 0, 1, size)).astype(self.dtype)


def signbit(self: Array) -> Array:
    if self.dtype in xp.COMPLEX:
        raise OperatorDtypeError("signbit is not implemented for complex tensors.")
    return np.asarray(np.signbit(self) if self.dtype in xp.FLOATING else self < 0)


def angle(self: Array) -> Array:
    if self.dtype in xp.COMPLEX:
        return np.asarray(np.angle(self.astype(wide(self.dtype), copy=False))).astype(xp.PART_OF[self.dtype])
    d = to_float(self.dtype)
    x = self.astype(wide(d))
    return np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0.0)).astype(d)


def infinite(sign: float, name: str) -> Callable[[Array], Array]:
    def kernel(self: Array) -> Array:
        if self.dtype in xp.COMPLEX:
            raise OperatorError(f"{name} does not support complex inputs.")
        return np.asarray(self == sign) if self.dtype in xp.FLOATING else np.zeros(self.shape, np.bool_)

    return kernel


def isreal(self: Array) -> Array:
    return np.asarray(xp.imag(self) == 0) if self.dtype in xp.COMPLEX else np.ones(self.shape, np.bool_)


def rrelu(self: Tensor, lower: float, upper: float, training: bool, generator_: Generator | None) -> Tensor:
    """Leaky, with a random slope for each element that leaks while training, else with the mean of the two."""
    if not training:
        leaky: Tensor = run("leaky_relu", self, (lower + upper) / 2)
        return leaky
    if self.array.dtype == xp.FLOAT16:
        raise no_kernel("rrelu_with_noise_out_cpu", self.array.dtype)
    with np.errstate(invalid="ignore"):
        slopes, leaks = np.ones(self.array.shape), np.asarray(self.array <= 0)
    slopes[leaks] = generator(generator_).uniform((int(leaks.sum()),), xp.FLOAT64) * (upper - lower) + lower
    d = self.array.dtype
    return cast(widened(self) * Tensor(slopes.astype(wide(d))), d)


op("aten::logcumsumexp(Tensor self, int dim) -> Tensor", kernel=log_cumulative_sum, variants=OUT,
   gradient={"self": "_logcumsumexp_backward(grad, self, result, dim)"}, layout="contiguous")  # fmt: skip
op("aten::deg2rad(Tensor self) -> Tensor", scalar="self * 0.017453292519943295", dtype="float", variants=ALL,
   gradient={"self": "grad * 0.017453292519943295"})  # fmt: skip
op("aten::rad2deg(Tensor self) -> Tensor", scalar="self * 57.29577951308232", dtype="float", variants=ALL,
   gradient={"self": "grad * 57.29577951308232"})  # fmt: skip
op("aten::sgn(Tensor self) -> Tensor", kernel=sgn, variants=ALL, layout="operands",
   gradient={"self": "_sgn_backward(grad, self, self.sgn())"})  # fmt: skip
op("aten::signbit(Tensor self) -> Tensor", kernel=signbit, variants=OUT)
op("aten::angle(Tensor self) -> Tensor", kernel=angle, variants=OUT,
   gradient={"self": "_angle_backward(grad, self)"})  # fmt: skip
op("aten::isposinf(Tensor self) -> Tensor", kernel=infinite(np.inf, "isposinf"), variants=OUT)
op("aten::isneginf(Tensor self) -> Tensor", kernel=infinite(-np.inf, "isneginf"), variants=OUT)
op("aten::isreal(Tensor self) -> Tensor", kernel=isreal, variants="function method")
op("aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", dtype="float: self", variants="function out",
   scalar="where(self > lambd, self - lambd, where(self < 0 - lambd, self + lambd, self * 0))",
   gradient={"self": "softshrink_backward(grad, self, lambd)"})  # fmt: skip
op("aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", dtype="float: self", variants=OUT,
   scalar="where((self >= 0 - lambd) & (self <= lambd), 0, self)",
   gradient={"self": "softshrink_backward(grad, self, lambd)"})  # fmt: skip
op("aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, "
   "Generator? generator=None) -> Tensor", python=rrelu, variants="function inplace",
   nondeterministic=True, activation=True)  # fmt: skip

# ------------------------------------------------------------------ complex numbers


def real(self: Array) -> Array:
    return xp.real(self) if self.dtype in xp.COMPLEX else self


def imag(self: Array) -> Array:
    if self.dtype not in xp.COMPLEX:
        raise OperatorError("imag is not implemented for tensors with non-complex dtypes.")
    return xp.imag(self)


def conj(self: Array) -> Array:
    return np.asarray(np.conj(self)) if self.dtype in xp.COMPLEX else self


def conj_physical(self: Array) -> Array:
    return np.array(np.conj(self) if self.dtype in xp.COMPLEX else self)


def complex_(real: Array, imag: Array) -> Array:
    _check_parts(real, imag, "complex", "Half, Float or Double")
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), xp.COMPLEX_OF[real.dtype])
    xp.real(result)[...], xp.imag(result)[...] = real, imag
    return result


def polar(abs: Array, angle: Array) -> Array:
    _check_parts(abs, angle, "polar", "Half, Float or Double")
    if abs.dtype == xp.FLOAT16:
        raise no_kernel("polar_cpu", abs.dtype)
    return complex_(np.asarray(abs * np.cos(angle)), np.asarray(abs * np.sin(angle)))


def _check_parts(a: Array, b: Array, name: str, kinds: str) -> None:
    if a.dtype not in xp.FLOATING or b.dtype not in xp.FLOATING or xp.BFLOAT16 in (a.dtype, b.dtype):
        raise OperatorError(
            f"Expected both inputs to be {kinds} tensors but got {xp.ir_name(a.dtype)} and {xp.ir_name(b.dtype)}"
        )
    if a.dtype != b.dtype:
        raise OperatorError(
            f"Expected object of scalar type {xp.ir_name(a.dtype)} but got scalar type {xp.ir_name(b.dtype)} "
            "for second argument"
        )


def view_as_real(self: Array) -> Array:
    if self.dtype not in xp.COMPLEX:
        raise OperatorError("view_as_real is only supported for complex tensors")
    return np.asarray(xp.parts(self))


def view_as_complex(self: Array) -> Array:
    if self.dtype not in xp.COMPLEX_OF:
        raise OperatorError(
            f"view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: "
            f"{xp.ir_name(self.dtype)}"
        )
    if self.ndim == 0 or self.shape[-1] != 2:
        raise OperatorError("Tensor must have a last dimension of size 2")
    if self.strides[-1] != self.itemsize:
        raise OperatorError("Tensor must have a last dimension with stride 1")
    return np.asarray(self.view(xp.COMPLEX_OF[self.dtype])[..., 0])


VIEW: Final = "function method"
op("aten::real(Tensor(a) self) -> Tensor(a)", kernel=real, variants=VIEW, gradient={"self": "grad"})
op("aten::imag(Tensor(a) self) -> Tensor(a)", kernel=imag, variants=VIEW,
   gradient={"self": "complex(zeros_like(grad), grad)"})  # fmt: skip
op("aten::conj(Tensor(a) self) -> Tensor(a)", kernel=conj, variants=VIEW, gradient={"self": "grad.conj()"})
op("aten::resolve_conj(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self, variants=VIEW,
   gradient={"self": "grad"})  # fmt: skip
op("aten::resolve_neg(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self, variants=VIEW,
   gradient={"self": "grad"})  # fmt: skip
op("aten::conj_physical(Tensor self) -> Tensor", kernel=conj_physical, variants=ALL,
   gradient={"self": "grad.conj()"})  # fmt: skip
op("aten::complex(Tensor real, Tensor imag) -> Tensor", kernel=complex_, variants="function out",
   gradient={"real": "real(grad)", "imag": "imag(grad)"})  # fmt: skip
op("aten::polar(Tensor abs, Tensor angle) -> Tensor", kernel=polar, variants="function out",
   gradient={"abs": "real(grad.conj() * result.sgn())", "angle": "real(grad.conj() * result * 1j)"},
   autocast="full")  # fmt: skip
op("aten::view_as_real(Tensor(a) self) -> Tensor(a)", kernel=view_as_real,
   gradient={"self": "view_as_complex(grad.contiguous())"})  # fmt: skip
op("aten::view_as_complex(Tensor(a) self) -> Tensor(a)", kernel=view_as_complex,
   gradient={"self": "view_as_real(grad)"}, autocast="full")  # fmt: skip


# ------------------------------------------------------------------ layouts

describe(
    "angle conj_physical isreal copysign.Tensor copysign.Scalar fmax fmin gcd lcm heaviside hypot "
    "logaddexp logaddexp2 nextafter complex polar _add_relu.Tensor",
    layout="operands",
)
describe("rrelu", layout="contiguous")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("hardshrink", refuses=no_code("bic", "hardshrink_cpu"))
describe("softshrink", refuses=no_code("bic", "softshrink_check"))
describe("copysign", refuses=no_code("c", "copysign_cpu", common=True))
describe("logaddexp", refuses=no_code("bi", "logaddexp_cpu", common=True))
describe("logaddexp2", refuses=no_code("bic", "logaddexp2_cpu", common=True))
describe("angle.", expression="angle(self)")
describe("conj conj_physical", expression="conj(self)")
describe("sgn", expression="sgn(self)")
describe("deg2rad", refuses=unsupported("c", "deg2rad is not supported for complex tensors."))
describe("rad2deg", refuses=unsupported("c", "rad2deg is not supported for complex tensors."))
describe("fmax", refuses=unsupported("c", "fmax not implemented for complex tensors.", common=True))
describe("fmin", refuses=unsupported("c", "fmin not implemented for complex tensors.", common=True))
describe("heaviside", refuses=unsupported("c", "heaviside is not yet implemented for complex tensors.", common=True))
describe("float_power_", check=checks.is_double)
describe("rrelu", check=checks.bounds_in_order)
describe("softshrink", check=checks.limit_of_shrinking, checks_numbers=True)
describe("conj_physical.out hardshrink.out sgn.out softshrink.out", out_check=out_checks.check_found)
describe("isposinf.out", out_check=out_checks.no_other_than_bool("isposinf"))
describe("isneginf.out", out_check=out_checks.no_other_than_bool("isneginf"))
describe("signbit.out", out_check=out_checks.no_other_than_bool("signbit"))
describe("logcumsumexp.out", out_check=out_checks.only_same("expected scalar_type {wanted} but found {given}"))
describe(
    "float_power.Tensor_Tensor_out float_power.Tensor_Scalar_out float_power.Scalar_out",
    out_check=out_checks.only_same(
        "the output given to float_power has dtype {given} but the operation's result requires dtype {wanted}"
    ),
)
describe(
    "heaviside.out",
    out_check=out_checks.only_same("heaviside is not yet implemented for tensors with different dtypes."),
)
describe(
    "complex.out polar.out",
    out_check=out_checks.only_same(
        "Expected object of scalar type {wanted} but got scalar type {given} for argument 'out'"
    ),
)
describe(
    "frexp.Tensor_out",
    out_check=out_checks.only_same("torch.frexp() expects mantissa to have dtype {c} but got {c_given}"),
)
describe("ldexp.out", out_check=out_checks.cast_in_words("ldexp"))
