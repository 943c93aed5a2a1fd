"""Special functions.  In: arrays; whole numbers become the default float.  Gradient formulas: see `pointwise`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import bessel, gamma, special
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import no_kernel
from engine.aten.values import xp
from engine.aten.values.promotion import result_type, to_float, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

ALL: Final = "function method inplace out"
OUT: Final = "function out"

# ------------------------------------------------------------------ kernels


def in_double(function: Callable[..., Any], name: str) -> Callable[..., Array]:
    """A kernel that computes in float64, and answers in the operands' dtype."""

    def kernel(*args: Any) -> Array:
        d = to_float(result_type(args))
        if d not in xp.FLOATING:
            raise no_kernel(name, d)
        result = function(*(np.asarray(a).astype(np.float64) for a in args))
        return np.asarray(result).astype(wide(d)).astype(d)

    return kernel


def _x_times(logarithm: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """x * log(y), 0 where x is 0 (unless y is NaN)."""

    def function(x: Array, y: Array) -> Array:
        return np.where(np.isnan(y), np.nan, np.where(x == 0, 0.0, x * logarithm(y)))

    return function


def entr(x: Array) -> Array:
    """-x log x; 0 at 0, minus infinity below."""
    value = -x * np.log(np.where(x > 0, x, 1.0))
    return np.where(np.isnan(x), x, np.where(x > 0, value, np.where(x == 0, 0.0, -np.inf)))


def ndtr(x: Array) -> Array:
    return np.asarray(special.erfc(x * -math.sqrt(0.5)) / 2)


def sinc(self: Array) -> Array:
    d = to_float(self.dtype)
    x = self.astype(xp.COMPLEX128 if d in xp.COMPLEX else np.float64)
    return np.asarray(np.sinc(x)).astype(wide(d)).astype(d)


def logit(self: Array, eps: float | None) -> Array:
    d = to_float(self.dtype)
    x = self.astype(wide(d))
    if eps is not None:
        low, high = (d.type(limit).astype(x.dtype) for limit in (eps, 1 - eps))
        x = np.where(x < low, low, np.where(x > high, high, x))
    return np.asarray(np.log(x / (1 - x))).astype(d)


def polygamma(n: int, self: Array) -> Array:
    if n < 0:
        raise OperatorError("polygamma(n, x) does not support negative n.")
    if n == 1:
        d = to_float(self.dtype)
        return gamma.trigamma(self.astype(wide(d))).astype(d)
    return in_double(lambda x: gamma.polygamma(n, x), "polygamma")(self)


def mvlgamma(self: Array, p: int) -> Array:
    """The logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise OperatorError("p has to be greater than or equal to 1")
    if self.dtype == xp.BOOL:
        raise OperatorError("The input tensor may not be a boolean tensor.")
    check_memory((self.size, p), xp.FLOAT64)
    constant = p * (p - 1) / 4 * math.log(math.pi)

    def function(x: Array) -> Array:
        return np.asarray(sum(gamma.lgamma(x - i / 2) for i in range(p)) + constant)

    return in_double(function, "mvlgamma")(self)


def polygamma_(self: Tensor, n: int) -> Tensor:
    result: Tensor = self.copy_(run("polygamma", n, self.clone()))
    return result


# ------------------------------------------------------------------ entries

_UNARY: Final[dict[str, tuple[Callable[[Array], Any], str, str]]] = {
    # name: (function of float64, variants, gradient)
    "lgamma": (gamma.lgamma, ALL, "grad * digamma(self)"),
    "digamma": (gamma.digamma, ALL, "grad * polygamma(1, self)"),
    "erfinv": (special.erfinv, ALL, "0.886226925452758 * (self.erfinv().pow(2)).exp() * grad"),
    "i0": (lambda x: bessel.modified(0, x), ALL, "grad * special_i1(self)"),
    "special_i0e": (lambda x: bessel.modified(0, x, True), OUT, "grad * (special_i1e(self) - self.sgn() * result)"),
    "special_i1": (lambda x: bessel.modified(1, x), OUT,
                   "grad * (i0(self) - where(self == 0, 0.5, result / where(self == 0, 1.0, self)))"),
    "special_i1e": (lambda x: bessel.modified(1, x, True), OUT,
                    "grad * (special_i0e(self) - where(self == 0, 0.5, "
                    "result * (self.sgn() + 1 / where(self == 0, 1.0, self))))"),
    "special_ndtr": (ndtr, OUT, "grad * 0.3989422804014327 * exp(self * self / -2)"),
    "special_ndtri": (special.ndtri, OUT, "grad * 2.5066282746310002 * (result.square() / 2).exp()"),
    "special_log_ndtr": (special.log_ndtr, OUT,
                         "grad / special_erfcx(self * -0.7071067811865476) * 0.7978845608028654"),
    "special_entr": (entr, OUT, "grad * -(1 + self.log())"),
    "special_erfcx": (special.erfcx, OUT, "(2.0 * self * result - 1.1283791670955126) * grad"),
    "special_bessel_j0": (lambda x: bessel.first_kind(0, x), OUT, ""),
    "special_bessel_j1": (lambda x: bessel.first_kind(1, x), OUT, ""),
}  # fmt: skip
for _name, (_function, _variants, _formula) in _UNARY.items():
    op(f"aten::{_name}(Tensor self) -> Tensor", kernel=in_double(_function, _name), variants=_variants,
       gradient={"self": _formula} if _formula else {}, jit_autocast="full" if _name == "erfinv" else "")  # fmt: skip

_XLOGY: Final = in_double(_x_times(np.log), "xlogy_cpu")
_XLOG1PY: Final = in_double(_x_times(np.log1p), "xlog1py_cpu")
_ZETA: Final = in_double(gamma.zeta, "zeta")
_SELF: Final = "grad * where((self == 0) & (other <= 0), 0.0, log(other))"
_SELF1: Final = "grad * where((self == 0) & (other <= -1), 0.0, log1p(other))"
op("aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor", kernel=_XLOGY,
   variants="function method inplace out:OutTensor",
   gradient={"self": _SELF, "other": "grad * self / other"})  # fmt: skip
op("aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", kernel=_XLOGY,
   variants="function method inplace out:OutScalar_Other",
   gradient={"self": "grad * log(other) if other > 0 else (grad * log(other)).masked_fill(self == 0, 0)"})  # fmt: skip
op("aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", kernel=_XLOGY,
   variants="function out:OutScalar_Self", gradient={"other": "grad * self / other"})  # fmt: skip
op("aten::special_xlog1py(Tensor self, Tensor other) -> Tensor", kernel=_XLOG1PY, variants=OUT,
   gradient={"self": _SELF1, "other": "grad * self / (other + 1)"})  # fmt: skip
op("aten::special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor", kernel=_XLOG1PY, variants=OUT,
   gradient={"self": "grad * log1p(other) if other > -1 else "
                     "(grad * log1p(other)).masked_fill(self == 0, 0)"})  # fmt: skip
op("aten::special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor", kernel=_XLOG1PY, variants=OUT,
   gradient={"other": "grad * self / (other + 1)"})  # fmt: skip
op("aten::special_zeta(Tensor self, Tensor other) -> Tensor", kernel=_ZETA, variants=OUT,
   gradient={"self": "not implemented", "other": "grad * -self * special_zeta(self + 1., other)"})  # fmt: skip
op("aten::special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor", kernel=_ZETA, variants=OUT)
op("aten::special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor", kernel=_ZETA, variants=OUT,
   gradient={"other": "grad * -self * special_zeta(self + 1., other)"})  # fmt: skip
for _name, _gamma, _sign in (("igamma", gamma.igamma, ""), ("igammac", gamma.igammac, "-")):
    op(f"aten::{_name}(Tensor self, Tensor other) -> Tensor", kernel=in_double(_gamma, f"{_name}_cpu"), variants=ALL,
       gradient={"self": "not implemented",
                 "other": f"{_sign}grad * exp((self - 1) * log(other) - other - lgamma(self))"})  # fmt: skip
op("aten::sinc(Tensor self) -> Tensor", kernel=sinc, variants=ALL,
   gradient={"self": "grad * where(self == 0, 0.0, ((self * 3.141592653589793).cos() - result) / self)"})  # fmt: skip
op("aten::logit(Tensor self, float? eps=None) -> Tensor", kernel=logit, variants=ALL,
   gradient={"self": "logit_backward(grad, self, eps)"})  # fmt: skip
op("aten::polygamma(int n, Tensor self) -> Tensor", kernel=polygamma, variants="function method out",
   gradient={"self": "grad * polygamma(n + 1, self)"})  # fmt: skip
op("aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", python=polygamma_, variants="method")
op("aten::mvlgamma(Tensor self, int p) -> Tensor", kernel=mvlgamma, variants=ALL,
   gradient={"self": "grad * digamma(self.unsqueeze(-1) - arange(p, device=self.device) / 2).sum([-1])"})  # fmt: skip


# ------------------------------------------------------------------ layouts

describe(
    "digamma erfinv i0 lgamma logit sinc special_bessel_j0 special_bessel_j1 special_entr special_erfcx "
    "special_i0e special_i1 special_i1e special_log_ndtr special_ndtri special_xlog1py special_zeta "
    "igamma igammac xlogy polygamma",
    layout="operands",
)
describe("mvlgamma", layout="contiguous")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("polygamma", refuses=no_code("c", "polygamma_kernel"))
describe("logit", refuses=no_code("c", "logit_cpu"))
describe("special_bessel_j0", refuses=no_code("h", "bessel_j0_cpu"))
describe("special_bessel_j1", refuses=no_code("h", "bessel_j1_cpu"))
describe("special_erfcx", refuses=no_code("h", "erfcx_cpu"))
describe("special_log_ndtr", refuses=no_code("h", "log_ndtr_cpu"))
describe("special_ndtri", refuses=no_code("h", "ndtri_cpu"))
describe("igamma", refuses=no_code("bi", "igamma_cpu", common=True))
describe("igammac", refuses=no_code("bi", "igammac_cpu", common=True))
describe("special_zeta", refuses=no_code("h", "zeta_cpu", common=True))
