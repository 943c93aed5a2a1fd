"""Functions of single precision, made of steps that LLVM makes vectors of.

In: a number.  Out: a number, within three units in the last place.  The polynomials are fits with the least greatest
relative error, on the numbers that are left once powers of two are taken out.
"""

from __future__ import annotations

from typing import Any

from engine.aten.stepwise.language import floor, fraction_of, loop, nearest, power_of_two_in, root, times_power_of_two


@loop
def reduced_exp(r: Any) -> Any:
    """exp(r) - 1 for |r| up to half of log(2)."""
    p = ((0.0013950311113148928 * r + 0.008368905633687973) * r + 0.04166620969772339) * r + 0.166665181517601
    return (p * r + 0.5) * r * r + r


@loop
def exp(x: Any) -> Any:
    inside = min(max(x, -104.0), 88.7228)
    n = nearest(inside * 1.4426950408889634)
    r = inside - n * 0.693359375 - n * -0.00021219444170128554  # log(2) in two parts, for n times the first is exact
    half = floor(n * 0.5)  # powers beyond those of numbers, in two steps
    found = times_power_of_two(times_power_of_two(reduced_exp(r) + 1.0, half), n - half)
    found = abs(x) * 3.0e38 if x > 88.7228 else found
    return found if x == x else x


@loop
def expm1(x: Any) -> Any:
    """exp(x) - 1, as exact for small numbers."""
    inside = min(max(x, -87.3), 88.7228)
    n = nearest(inside * 1.4426950408889634)
    r = inside - n * 0.693359375 - n * -0.00021219444170128554
    half = times_power_of_two(r * 0.0 + 1.0, n - 1.0)
    found = (reduced_exp(r) * half + (half - 0.5)) * 2.0
    found = abs(x) * 3.0e38 if x > 88.7228 else found
    found = found if abs(x) > 1e-30 else x
    return found if x == x else x


@loop
def log(x: Any) -> Any:
    """The natural logarithm: NaN for negative numbers, minus infinity for zero; those below 1.2e-38 count as zero."""
    inside = max(x, 1.1754944e-38)
    e, m = power_of_two_in(inside), fraction_of(inside)
    is_low = m < 0.7071067811865476
    t = (m + m if is_low else m) - 1.0
    e = e - 1.0 if is_low else e
    p = (((-0.07628183811903 * t + 0.12758907675743103) * t - 0.13161329925060272) * t + 0.14202207326889038) * t
    p = (((p - 0.16623282432556152) * t + 0.20001205801963806) * t - 0.250008225440979) * t + 0.3333333134651184
    found = p * t * t * t + e * -0.00021219444170128554 - t * t * 0.5 + t + e * 0.693359375
    found = x if x > 3.4028235e38 else found
    found = -1.0 / abs(x * 0.0) if x < 1.1754944e-38 else found
    found = root(x) if x < 0.0 else found
    return found if x == x else x


@loop
def log1p(x: Any) -> Any:
    """log(1 + x), as exact for small numbers; for x from -0.5 on."""
    shifted = 1.0 + x
    lost = shifted - 1.0  # what of x is in the sum
    found = log(shifted) * x / lost
    found = x if lost == 0.0 else found
    return x if x > 3.4028235e38 else found


@loop
def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + exp(-x))


@loop
def tanh(x: Any) -> Any:
    t = expm1(2.0 * min(abs(x), 15.0))
    found = t / (t + 2.0)
    found = -found if x < 0.0 else found
    found = found if abs(x) > 1e-15 else x
    return found if x == x else x


@loop
def positive(x: Any) -> Any:
    return 0.0 if x < 0.0 else x


@loop
def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return positive(x) + log1p(exp(-abs(x)))


@loop
def greater(a: Any, b: Any) -> Any:
    """NaN wins."""
    found = a if a > b else b
    return a if a != a else found


@loop
def less(a: Any, b: Any) -> Any:
    found = a if a < b else b
    return a if a != a else found


@loop
def sign(x: Any) -> Any:
    """0 of NaN."""
    found = 1.0 if x > 0.0 else x * 0.0
    found = -1.0 if x < 0.0 else found
    return found if x == x else 0.0


@loop
def erf(x: Any) -> Any:
    """A quotient of polynomials in x squared; from 3.93 on it is 1."""
    inside = min(max(x, -3.93), 3.93)
    s = inside * inside
    above = ((2.052930540230591e-06 * s + 0.00028461008332669735) * s + 0.003751931944862008) * s
    above = (((above + 0.05270601436495781) * s + 0.19008290767669678) * s + 1.1283791065216064) * inside
    below = ((3.810714042629115e-05 * s + 0.0011592959053814411) * s + 0.014941561967134476) * s
    below = ((below + 0.11397549510002136) * s + 0.501789391040802) * s + 1.0
    found = min(max(above / below, -1.0), 1.0)
    return found if x == x else x


@loop
def erfinv(x: Any) -> Any:
    """The inverse of erf: x times a polynomial in the logarithm of 1 - x squared, or in its root."""
    w = -log((1.0 - x) * (1.0 + x))
    t, s = w - 2.5, root(max(w, 5.0)) - 3.0
    near = ((((-8.793280770191814e-09 * t + 2.3233802437516715e-08) * t + 4.6620132820862636e-07) * t
             - 3.4627189506863942e-06) * t - 4.963487754139351e-06) * t + 0.00021834448853041977  # fmt: skip
    near = (((near * t - 0.001252741669304669) * t - 0.004177386872470379) * t + 0.24664027988910675) * t
    far = (((-0.00014082450070418417 * s + 8.857145439833403e-05) * s + 0.0012427197070792317) * s
           - 0.003659442299976945) * s + 0.005797773599624634  # fmt: skip
    far = (((far * s - 0.007625530939549208) * s + 0.009428942576050758) * s + 1.0016740560531616) * s
    found = ((near + 1.5014094114303589) if w < 5.0 else (far + 2.832977056503296)) * x
    found = x / abs(x * 0.0) if abs(x) == 1.0 else found
    return root(-abs(x)) if abs(x) > 1.0 else found
