"""Fit the polynomials of `engine/fuser/ir/math.py`; needs mpmath.

In: nothing.  Out: `engine/fuser/ir/math_coefficients.py`, to be redirected there.

Each polynomial interpolates at Chebyshev's points, which is within a bit of the least greatest error.  Those of
`ROUNDED` have the least weighted squares there instead, and coefficients of f32, of which each makes up for the
rounding of those before it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from mpmath import asin, atan, cos, erf, erfc, exp, expm1, log, log1p, matrix, mp, mpf, pi, root, sin, sinh, sqrt
from mpmath import lu_solve as solved

mp.dps = 60
Real = Any
HALF_LOG_2: Final = log(2) / 2 * mpf("1.01")
A_BIT_LESS: Final = HALF_LOG_2 * mpf("0.999")
"""The other end, so that no point is 0, where the quotients are 0 / 0."""
ERFC_CENTRE: Final = 3.75


def odd(function: Callable[[Real], Real], scale: Real = 1) -> Callable[[Real], Real]:
    """(f(x) / x - scale) / x² as a function of x², for an odd function."""
    return lambda s: (function(sqrt(s)) / sqrt(s) - scale) / s


def decay(t: Real) -> Real:
    """erfc(x) · exp(x²) · (1 + 2x) where t = (x - centre) / (x + centre)."""
    x = ERFC_CENTRE * (1 + t) / (1 - t)
    return erfc(x) * exp(x * x) * (1 + 2 * x)


def log_tail(f: Real) -> Real:
    return (log1p(f) - f + f * f / 2) / f**3


def log_of_quotient(s: Real) -> Real:
    """(log((1 + z) / (1 - z)) - 2z) / z³ as a function of z²."""
    z = sqrt(s)
    return (log((1 + z) / (1 - z)) - 2 * z) / z**3


# name: (what it is for, function, from, to, number of coefficients)
FITS: Final[dict[str, tuple[str, Callable[[Real], Real], Real, Real, int]]] = {
    "EXP_F32": ("(exp(r) - 1 - r) / r²", lambda r: (expm1(r) - r) / r**2, -HALF_LOG_2, A_BIT_LESS, 5),
    "EXP_F64": ("(exp(r) - 1 - r) / r²", lambda r: (expm1(r) - r) / r**2, -HALF_LOG_2, A_BIT_LESS, 11),
    "LOG_F32": ("(log(1 + f) - f + f²/2) / f³", log_tail, sqrt(mpf(1) / 2) - 1, sqrt(2) - 1, 9),
    "LOG_F64": ("(log((1 + z) / (1 - z)) - 2z) / z³, of z²", log_of_quotient, 0, mpf("0.0296"), 8),
    "ERF_F32": ("erf(x) / x - 1, of x²", lambda s: erf(sqrt(s)) / sqrt(s) - 1, 0, mpf("1.1875") ** 2, 7),
    "ERF_F64": ("erf(x) / x - 1, of x²", lambda s: erf(sqrt(s)) / sqrt(s) - 1, 0, 1, 14),
    "ROOT_ERFC_F32": ("the fourth root of erfc(x)", lambda x: root(erfc(x), 4), mpf("1.1875"), 4, 8),
    "ERFC": ("erfc(x) exp(x²) (1 + 2x), of (x - 3.75) / (x + 3.75)", decay, -1, mpf("0.77"), 24),
    "ATAN": ("(atan(x) / x - 1) / x², of x²", odd(atan), 0, mpf("0.1717"), 12),
    "ASIN": ("(asin(x) / x - 1) / x², of x²", odd(asin), 0, mpf("0.25"), 14),
    "SINH": ("(sinh(x) / x - 1) / x², of x²", odd(sinh), 0, 1, 8),
    "SIN": ("(sin(x) / x - 1) / x², of x²", odd(sin), 0, mpf("0.62"), 5),
    "COS": ("(cos(x) - 1) / x², of x²", lambda s: (cos(sqrt(s)) - 1) / s, 0, mpf("0.62"), 6),
}
ROUNDED: Final[dict[str, Callable[[Real], Real]]] = {
    "ERF_F32": lambda s: mpf(1),
    "ROOT_ERFC_F32": lambda x: root(erfc(x), 4) ** 3,
}
"""The weights of errors: how much of them the fourth power of the root has."""


def points_between(low: Real, high: Real, count: int) -> list[Real]:
    """Chebyshev's points."""
    return [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def fitted(function: Callable[[Real], Real], low: Real, high: Real, count: int) -> list[float]:
    """The coefficients, from that of the constant term."""
    points = points_between(low, high, count)
    rows = matrix([[point**k for k in range(count)] for point in points])
    return [float(each) for each in solved(rows, matrix([function(point) for point in points]))]


def fitted_in_f32(
    function: Callable[[Real], Real], low: Real, high: Real, count: int, weight: Callable[[Real], Real]
) -> list[float]:
    """The coefficients likewise, each fitted after those before it were rounded."""
    points = points_between(low, high, 4 * count)
    weights = [weight(point) for point in points]
    rest = [function(point) for point in points]
    found = list[float]()
    for first in range(count):
        rows = matrix([[w * p**k for k in range(first, count)] for w, p in zip(weights, points, strict=True)])
        (least, *_) = solved(rows, matrix([w * r for w, r in zip(weights, rest, strict=True)]))
        (rounded,) = struct.unpack("f", struct.pack("f", float(least)))
        found.append(rounded)
        rest = [r - rounded * p**first for r, p in zip(rest, points, strict=True)]
    return found


def coefficients(name: str) -> list[float]:
    """The coefficients of a row of `FITS`."""
    _, function, low, high, count = FITS[name]
    if name in ROUNDED:
        return fitted_in_f32(function, mpf(low), mpf(high), count, ROUNDED[name])
    return fitted(function, mpf(low), mpf(high), count)


def bits_of_two_over_pi(start: int, count: int) -> int:
    """The bits of 2/π with the weights 2**-(start + 1) … 2**-(start + count)."""
    return int((2 / pi) * mpf(2) ** (start + count)) & ((1 << count) - 1)


def main() -> None:
    mp.dps = 120
    print(
        '"""Coefficients of the polynomials of `math`, from that of the constant term; `tools/fit_math.py` writes them.'
    )
    print('\nIn: nothing.  Out: constants.\n"""\n\nfrom __future__ import annotations\n\nfrom typing import Final\n')
    for name, (what, _, low, high, _) in FITS.items():
        print(f"{name}: Final = (")
        print("".join(f"    {each!r},\n" for each in coefficients(name)), end="")
        print(f')\n"""{what}, for {float(low):.4g} to {float(high):.4g}."""')
    parts = [bits_of_two_over_pi(28 * i, 28) * 2.0 ** (-28 * (i + 1)) for i in range(8)]
    print("TWO_OVER_PI: Final = (")
    print("".join(f"    {each!r},\n" for each in parts), end="")
    print(')\n"""2/π in parts of 28 bits, the greatest first."""')


if __name__ == "__main__":
    main()
