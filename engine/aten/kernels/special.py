"""Special functions that numpy lacks, on arrays.

In: arrays (or numpy scalars) of a floating point type.  Out: the same type.  Computed in float64; the
relative error stays below 1e-13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.aten.kernels.blocks import in_blocks
from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from numpy.polynomial import chebyshev
else:
    chebyshev = deferred("numpy.polynomial.chebyshev")

_ERF: Final = (
    1.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.02686617064512984, 0.0052239776254232985,
    -0.000854832702193483, 0.00012055332902888736, -1.4925647567519332e-05, 1.6462045441468418e-06,
    -1.6364642158167616e-07, 1.4792401209404813e-08, -1.216456005728345e-09, 8.709045129053106e-11,
    -4.230945824295338e-12,
)  # fmt: skip
"""erf(x) / x on [-1, 1] as a polynomial in x squared, lowest power first (a Chebyshev fit)."""

_ERFCX: Final = (
    0.43645785270860443, 0.1777755652901985, 0.025368743291011922, 0.0018983124584793524, -9.114875514287452e-05,
    -3.4231442012492544e-05, -3.903404131897508e-07, 6.552494911610632e-07, 2.149171538250765e-08,
    -1.5768292104476402e-08, -3.873736119152261e-10, 4.5596712034182414e-10, -5.621369195784427e-12,
    -1.4319276921351855e-11, 1.0678851881773378e-12, 4.289570647906368e-13, -7.003483760469629e-14,
    -1.7611087671330422e-14, 1.3809979377231403e-14, -1.0704661942455536e-14,
)  # fmt: skip
"""exp(x*x) * erfc(x) / t for x >= 1 as a Chebyshev series in 3t - 1, where t = 1 / (1 + x/2)."""


_ONE: Final = np.float32(1)
ERF_SINGLE_END: Final = np.float32(3.93)
"""From here on erf is 1 in float32, and the quotient below not less."""
ERF_SINGLE_ABOVE: Final = tuple(map(np.float32, (
    1.1283791065216064, 0.19008290767669678, 0.05270601436495781, 0.003751931944862008, 0.00028461008332669735,
    2.052930540230591e-06,
)))  # fmt: skip
ERF_SINGLE_BELOW: Final = tuple(map(np.float32, (
    1.0, 0.501789391040802, 0.11397549510002136, 0.014941561967134476, 0.0011592959053814411, 3.810714042629115e-05,
)))  # fmt: skip
"""erf(x) / x on [-3.92, 3.92] as a quotient of polynomials in x squared, lowest power first (a least-squares fit)."""


def erf(x: Any) -> Any:
    if type(x) is np.ndarray and x.dtype == np.float32:
        return in_blocks(_erf_of_singles, x) if x.ndim else _erf_of_singles(x.reshape(1)).reshape(())
    wide = np.asarray(x, np.float64)
    size = np.abs(wide)
    far = np.copysign(1.0 - _erfc_far(np.maximum(size, 1.0)), wide)
    return np.where(size <= 1.0, _erf_near(np.clip(wide, -1.0, 1.0)), far).astype(x.dtype)


def _erf_of_singles(x: Any) -> Any:
    """In float32, where the relative error stays below 5e-7."""
    inside = np.clip(x, -ERF_SINGLE_END, ERF_SINGLE_END)
    square = inside * inside
    above, below = _polynomial(ERF_SINGLE_ABOVE, square), _polynomial(ERF_SINGLE_BELOW, square)
    np.multiply(above, inside, above)
    np.divide(above, below, above)
    return np.clip(above, -_ONE, _ONE, above)


def _polynomial(coefficients: tuple[Any, ...], x: Any) -> Any:
    total = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        np.add(total, coefficient, total)
        np.multiply(total, x, total)
    return np.add(total, coefficients[0], total)


def erfc(x: Any) -> Any:
    wide = np.asarray(x, np.float64)
    size = np.abs(wide)
    far = _erfc_far(np.maximum(size, 1.0))
    far = np.where(wide < 0, 2.0 - far, far)
    return np.where(size <= 1.0, 1.0 - _erf_near(np.clip(wide, -1.0, 1.0)), far).astype(x.dtype)


def _erf_near(x: Any) -> Any:
    square = x * x
    total = np.full_like(x, _ERF[-1])
    for coefficient in reversed(_ERF[:-1]):
        total = total * square + coefficient
    return x * total


def _erfc_far(x: Any) -> Any:
    t = 1.0 / (1.0 + 0.5 * x)
    return np.exp(-x * x) * t * chebyshev.chebval(3.0 * t - 1.0, _ERFCX)


def erfcx(x: Any) -> Any:
    """exp(x*x) * erfc(x), without overflow for large x."""
    wide = np.asarray(x, np.float64)
    t = 1.0 / (1.0 + 0.5 * np.maximum(wide, 1.0))
    far = t * chebyshev.chebval(3.0 * t - 1.0, _ERFCX)
    near = np.exp(wide * wide) * erfc(np.minimum(wide, 1.0))
    return np.where(np.isnan(wide), wide, np.where(wide >= 1.0, far, near)).astype(x.dtype)


def erfcinv(q: Any) -> Any:
    """The inverse of erfc for q in (0, 1], by Newton's method on its logarithm."""
    logarithm = np.log(q)
    z = np.sqrt(np.maximum(-logarithm - 0.5 * np.log(np.maximum(-logarithm, 1.0) * np.pi), 0.0))
    for _ in range(8):
        scaled = erfcx(z)
        z = z + (np.log(scaled) - z * z - logarithm) * scaled * (0.5 * np.sqrt(np.pi))
    return z


def erfinv(y: Any) -> Any:
    wide = np.asarray(y, np.float64)
    size = np.abs(wide)
    inside = np.where(size < 1, size, 0.5)
    z = np.where(inside < 0.5, inside, erfcinv(np.maximum(1 - inside, 1e-300)))
    small = inside < 0.5
    for _ in range(6):
        step = (erf(z) - inside) * np.exp(z * z) * (0.5 * np.sqrt(np.pi))
        z = np.where(small, z - step, z)
    z = np.where(size == 1, np.inf, np.where(size < 1, z, np.nan))
    return np.copysign(z, wide).astype(y.dtype)


def ndtri(p: Any) -> Any:
    """The inverse of the normal distribution's cumulative function."""
    wide = np.asarray(p, np.float64)
    tail = np.minimum(wide, 1 - wide)
    inside = (tail > 0) & (tail <= 0.5)
    z = np.sqrt(2.0) * erfcinv(np.where(inside, 2 * tail, 1.0))
    z = np.where(wide < 0.5, -z, z)
    z = np.where(wide == 0, -np.inf, np.where(wide == 1, np.inf, np.where(inside, z, np.nan)))
    return z.astype(p.dtype)


def log_ndtr(x: Any) -> Any:
    """The logarithm of the normal distribution's cumulative function."""
    wide = np.asarray(x, np.float64)
    z = wide * np.sqrt(0.5)
    left = np.log(erfcx(np.maximum(-z, 0.0)) / 2) - z * z
    return np.where(wide < -1, left, np.log1p(-erfc(np.maximum(z, -1.0)) / 2)).astype(x.dtype)
