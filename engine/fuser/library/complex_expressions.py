"""Expressions of operators over complex elements, as pairs of floats.

In: the text of a row of the operator table (`Op.scalar` or `Op.expression`), and for its names pairs, truth values or
constants.  Out: a pair, or of predicates and magnitudes one number, with the lets that it takes.  Raises `Unsupported`
for what has no expansion: `FUNCTIONS` has those that there are.

Note [Complex functions]
Kernels know floats alone, so a function of complex numbers is written in the parts of its operands.  The formulas are
those of the definition, so that the same elements overflow, become NaN, or are zeros of a sign: products are
contracted as numpy's are, quotients are Smith's, and the rest is the C library's with the cases that Annex G of C
lists.  Functions of f32 are computed in f64, where nothing cancels or overflows that is in range; arguments of f64 are
scaled first.  What the C library makes in many steps of its own (powers, inverses of trigonometry) is left to it, and
so are sums that cancel before they divide (the logistic function near its poles).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import e, inf, log, log2, log10
from typing import Any, Final

from engine.fuser.groups.from_expression import Reader, Unsupported, folded, parsed
from engine.fuser.ir.kernel import BOOL
from engine.fuser.ir.math import Number, select, with_sign_of
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A complex number that is being computed."""

    re: Number
    im: Number

    def each(self, do: Callable[[Number], Number]) -> Pair:
        return Pair(do(self.re), do(self.im))


Operand = Pair | Number | complex | str | None


def element(text: str, operands: Mapping[str, Operand], like: Number) -> Pair | Number:
    """The value of the expression, whose parts are of the type of `like` and whose lets go where its do."""
    found = _Reader(operands, like).read(parsed(text))
    if not isinstance(found, (Pair, Number)):
        raise Unsupported("a constant")
    return found


class _Reader(Reader):
    """Reads an expression as `from_expression` does, but for what functions come to."""

    def __init__(self, operands: Mapping[str, Any], like: Number) -> None:
        super().__init__(operands, like.type)
        self.like = like

    def operand(self, name: str) -> Any:
        return self.operands[name]

    def call(self, name: str, *given: Any) -> Any:
        if not any(isinstance(each, (Pair, Number)) for each in given):
            return folded(name, given)
        if name == "pow":
            return _power(*given)
        if all(isinstance(each, Number) or type(each) in (int, float) for each in given) and name in _REAL:
            return given[0].do(name, *given[1:])
        if name not in FUNCTIONS:
            raise Unsupported(f"{name} of complex numbers")
        return FUNCTIONS[name](*map(self.typed, given))

    def typed(self, value: Any) -> Pair | Number:
        """A constant as a pair; truth values are what they are."""
        if isinstance(value, Number) and value.type != BOOL:
            raise Unsupported("a real number among complex ones")
        if isinstance(value, (Pair, Number)):
            return value
        if not isinstance(value, (int, float, complex)):
            raise Unsupported(f"{value!r} is no number")
        return Pair(self.like.of(complex(value).real), self.like.of(complex(value).imag))


_REAL: Final = frozenset("lt le gt ge eq ne".split())
"""Functions of magnitudes."""

# ------------------------------------------------------------------ arithmetic


def _sum(a: Pair, b: Pair) -> Pair:
    return Pair(a.re + b.re, a.im + b.im)


def _difference(a: Pair, b: Pair) -> Pair:
    return Pair(a.re - b.re, a.im - b.im)


def _product(a: Pair, b: Pair) -> Pair:
    return Pair(a.re.do("muladd", b.re, -(a.im * b.im)), a.re.do("muladd", b.im, a.im * b.re))


def _plain_product(a: Pair, b: Pair) -> Pair:
    return Pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def _quotient(a: Pair, b: Pair) -> Pair:
    """Smith's: of the divisor's parts the lesser is taken in relation to the greater."""
    is_real = abs(b.re).do("ge", abs(b.im))
    greater, lesser = select(is_real, b.re, b.im), select(is_real, b.im, b.re)
    ratio = lesser / greater
    scale = 1.0 / (greater + lesser * ratio)
    first, second = select(is_real, a.re, a.im), select(is_real, a.im, a.re)
    turned = first * ratio
    re = (first + second * ratio) * scale
    im = (select(is_real, second, turned) - select(is_real, turned, second)) * scale
    both_zero = greater.equals(0.0) & is_real
    return Pair(select(both_zero, a.re / abs(b.re), re), select(both_zero, a.im / abs(b.re), im))


def _power(z: Any, exponent: Any) -> Pair:
    """Powers that numpy takes as products, negative ones from 1 on; of zero they are zero or NaN."""
    if not isinstance(z, Pair) or type(exponent) not in (int, float) or exponent not in _PRODUCTS:
        raise Unsupported("a power of complex numbers")
    found, one = z, Pair(z.re.of(1.0), z.re.of(0.0))
    for _ in range(abs(int(exponent)) - 1):
        found = _plain_product(found, z)
    found = found if exponent > 0 else _quotient(one, _plain_product(one, found))
    is_zero = z.re.equals(0.0) & z.im.equals(0.0)
    return found.each(lambda part: select(is_zero, 0.0 if exponent > 0 else float("nan"), part))


_PRODUCTS: Final = (2, 3, -1, -2)

# ------------------------------------------------------------------ magnitudes


def _wide(x: Number) -> Number:
    return x.to("f64") if x.type == "f32" else x


def _as(like: Pair, re: Number, im: Number) -> Pair:
    """A pair of the type of another one."""
    type = like.re.type
    return Pair(re.to(type), im.to(type)) if re.type != type else Pair(re, im)


def _hypotenuse(x: Number, y: Number) -> Number:
    """Of f64: infinite if either is, else NaN if either is."""
    x, y = abs(x), abs(y)
    is_less = x < y
    greater, lesser = select(is_less, y, x), select(is_less, x, y)
    ratio = select(greater.equals(0.0) & lesser.equals(0.0), 0.0, lesser / greater)
    found = greater * (ratio * ratio + 1.0).do("sqrt")
    return select(x.equals(inf) | y.equals(inf), inf, found)


def _magnitude(z: Pair) -> Number:
    """Squares of f32 have their place in f64."""
    if z.re.type == "f64":
        return _hypotenuse(z.re, z.im)
    x, y = abs(_wide(z.re)), abs(_wide(z.im))
    found = (x * x + y * y).do("sqrt").to("f32")
    return select(x.equals(inf) | y.equals(inf), inf, found)


def _direction(z: Pair) -> Pair:
    size = _magnitude(z)
    is_zero = size.equals(0.0)
    found = _quotient(z, Pair(select(is_zero, 1.0, size), size.of(0.0)))
    return found.each(lambda part: select(is_zero, 0.0, part))


# ------------------------------------------------------------------ predicates


def _is_nonzero(z: Pair | Number) -> Number:
    return z.re.do("ne", 0.0) | z.im.do("ne", 0.0) if isinstance(z, Pair) else z


def _equal(a: Pair, b: Pair) -> Number:
    return a.re.equals(b.re) & a.im.equals(b.im)


def _unequal(a: Pair, b: Pair) -> Number:
    return a.re.do("ne", b.re) | a.im.do("ne", b.im)


def _is_finite(x: Number) -> Number:
    return abs(x) < inf


def _chosen(condition: Pair | Number, a: Pair, b: Pair) -> Pair:
    is_chosen = _is_nonzero(condition)
    return Pair(select(is_chosen, a.re, b.re), select(is_chosen, a.im, b.im))


def _logical(name: str) -> Callable[..., Number]:
    return lambda *given: _is_nonzero(given[0]).do(name, *map(_is_nonzero, given[1:]))


# ------------------------------------------------------------------ exponentials and roots


def _turn(angle: Number) -> tuple[Number, Number]:
    """The cosine and the sine."""
    return _wide(angle.do("cos")), select(angle.equals(0.0), _wide(angle), _wide(angle.do("sin")))


_LARGE: Final = 700.0
"""Exponents up to which exponentials of f64 are finite."""


def _split(x: Number, part: Number) -> tuple[Number, Number]:
    """As much of the number as has an exponential, and the exponential of the rest, which products have last; what
    comes of an f32 part is all."""
    if part.type == "f32":
        return x, x.of(1.0)
    is_large = x > _LARGE
    return select(is_large, _LARGE, x), select(is_large, x - _LARGE, 0.0).do("exp")


def _exponential(z: Pair) -> Pair:
    cosine, sine = _turn(z.im)
    x, rest = _split(_wide(z.re), z.re)
    is_finite = _is_finite(z.im)
    cosine = select(is_finite | _is_finite(z.re) | z.re.do("ne", z.re), cosine, 1.0)
    sine = select(is_finite | z.re.do("ne", -inf), sine, with_sign_of(_wide(z.im), cosine.of(1.0)))
    size = x.do("exp")
    im = select(z.im.equals(0.0), _wide(z.im), size * sine * rest)
    return _as(z, size * cosine * rest, im)


def _times(factor: float, function: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """A function of a multiple, or a multiple of a function."""
    return lambda z: function(z.each(lambda part: part * factor))


def _logarithm(z: Pair) -> Pair:
    x, y = _wide(z.re), _wide(z.im)
    a, b = abs(x), abs(y)
    is_less = a < b
    greater, lesser = select(is_less, b, a), select(is_less, a, b)
    ratio = lesser / greater
    far = greater.do("log") + (ratio * ratio).do("log1p") * 0.5
    near = ((greater - 1.0) * (greater + 1.0) + lesser * lesser).do("log1p") * 0.5
    found = select((greater > 0.5) & (greater < 2.0), near, far)
    found = select(greater.equals(0.0) & lesser.equals(0.0), -inf, found)
    found = select(a.equals(inf) | b.equals(inf), inf, found)
    return _as(z, found, _wide(z.im.do("atan2", z.re)))


def _logarithm_to(base: float) -> Callable[[Pair], Pair]:
    return lambda z: _logarithm(z).each(lambda part: part * base)


def _logarithm_of_more(z: Pair) -> Pair:
    """Of f32: numpy's takes the logarithm of a magnitude about 1, of which the last place of f64 is the C library's."""
    if z.re.type == "f64":
        raise Unsupported("a last place that decides")
    more = z.re + 1.0
    return Pair(_magnitude(Pair(more, z.im)).do("log"), z.im.do("atan2", more))


def _root(z: Pair) -> Pair:
    x, y = _wide(z.re), _wide(z.im)
    a, b = abs(x), abs(y)
    is_large, is_small = (a > 1e300) | (b > 1e300), (a < 1e-290) & (b < 1e-290)
    scale = select(is_large, 2.0**-4, select(is_small, 2.0**200, x.of(1.0)))
    back = select(is_large, 4.0, select(is_small, 2.0**-100, x.of(1.0)))
    half = (_hypotenuse(x * scale, y * scale) + a * scale) * 0.5
    size = half.do("sqrt")
    other = select(size.equals(0.0), 0.0, b * scale * 0.5 / size)
    is_left = x < 0.0
    re, im = select(is_left, other, size) * back, select(is_left, size, other) * back
    # infinite parts, as in Annex G
    is_across, is_right = b.equals(inf), x.equals(inf)
    is_nan = y.do("ne", y)
    re = select(is_across | is_right, inf, select(x.equals(-inf), select(is_nan, y, x.of(0.0)), re))
    im = select(is_across | x.equals(-inf), inf, select(is_right, select(is_nan, y, x.of(0.0)), im))
    return _as(z, re, with_sign_of(y, im))


# ------------------------------------------------------------------ hyperbolic functions, and those of angles


def _across(do: Callable[[Pair], Pair], z: Pair) -> Pair:
    """A function of i z, less the factor i."""
    found = do(Pair(-z.im, z.re))
    return Pair(found.im, -found.re)


def _hyperbolic_sine(z: Pair) -> Pair:
    x, (cosine, sine) = _wide(z.re), _turn(z.im)
    is_angle = _is_finite(z.im)
    cosine = select(is_angle | x.do("ne", 0.0), cosine, 1.0)
    size, rest = _split(abs(x), z.re)
    re = with_sign_of(x, size).do("sinh") * cosine * rest
    im = select(z.im.equals(0.0), _wide(z.im), size.do("cosh") * sine * rest)
    return _as(z, select(is_angle | abs(x).do("ne", inf), re, inf), im)


def _sine(z: Pair) -> Pair:
    found = _across(_hyperbolic_sine, z)
    return Pair(found.re, select(_is_finite(z.re) | abs(z.im).do("ne", inf), found.im, inf))


def _hyperbolic_cosine(z: Pair) -> Pair:
    x, (cosine, sine) = _wide(z.re), _turn(z.im)
    cosine = select(_is_finite(z.im) | abs(x).do("ne", inf), cosine, 1.0)
    size, rest = _split(abs(x), z.re)
    im = with_sign_of(x, size).do("sinh") * sine * rest
    im = select(z.im.equals(0.0), select(x.do("ne", x), 1.0, with_sign_of(x, x.of(1.0))) * _wide(z.im), im)
    im = select(x.equals(0.0) & _is_finite(z.im).do("bitnot"), 0.0, im)
    return _as(z, size.do("cosh") * cosine * rest, im)


def _hyperbolic_tangent(z: Pair) -> Pair:
    """sinh cosh / (sinh^2 + cos^2), sin cos / (...); far from zero the sign, and what is left of the angle's."""
    x, (cosine, sine) = _wide(z.re), _turn(z.im)
    size, far = abs(x), abs(x) > 22.0
    near = select(far, 1.0, x)
    sinh, cosh = near.do("sinh"), near.do("cosh")
    divisor = sinh * sinh + cosine * cosine
    re = select(far, with_sign_of(x, x.of(1.0)), sinh * cosh / divisor)
    turned = sine * cosine
    im = select(far, turned * 4.0 * (size * -2.0).do("exp"), turned / divisor)
    # infinite parts, as in Annex G
    is_angle = _is_finite(z.im)
    re = select(is_angle | size.equals(inf), re, select(x.equals(0.0), x, float("nan")))
    im = select(is_angle | size.do("ne", inf), im, with_sign_of(_wide(z.im), x.of(0.0)))
    return _as(z, re, select(z.im.equals(0.0), _wide(z.im), im))


FUNCTIONS: Final[Mapping[str, Callable[..., Pair | Number]]] = {
    "add": _sum, "sub": _difference, "mul": _product, "div": _quotient,
    "neg": lambda z: z.each(lambda part: -part), "square": lambda z: _product(z, z), "abs": _magnitude,
    "conj": lambda z: Pair(z.re, -z.im), "angle": lambda z: z.im.do("atan2", z.re), "sgn": _direction, "where": _chosen,
    "eq": _equal, "ne": _unequal,
    "isfinite": lambda z: _is_finite(z.re) & _is_finite(z.im),
    "isinf": lambda z: abs(z.re).equals(inf) | abs(z.im).equals(inf),
    "logical_not": _logical("bitnot"), "logical_and": _logical("bitand"), "logical_or": _logical("bitor"),
    "logical_xor": _logical("bitxor"),
    "exp": _exponential, "exp2": _times(log(2), _exponential), "sqrt": _root,
    "log": _logarithm, "log2": _logarithm_to(log2(e)), "log10": _logarithm_to(log10(e)), "log1p": _logarithm_of_more,
    "sinh": _hyperbolic_sine, "cosh": _hyperbolic_cosine, "tanh": _hyperbolic_tangent,
    "sin": _sine, "tan": lambda z: _across(_hyperbolic_tangent, z),
    "cos": lambda z: _hyperbolic_cosine(Pair(-z.im, z.re)),
}  # fmt: skip
"""The functions of expressions, in the parts of their operands."""
