"""Places in memory as sums of indices times steps.

In: an expression over indices.  Out: `Affine`, the step of each index, if it has that form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.fuser.ir.kernel import Apply, Constant, Expression, Name, add, all_expressions, index, multiply
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """`first` plus the sum of each index times its step."""

    first: Expression
    steps: Mapping[str, Expression]


def affine(of: Expression, indices: Sequence[str]) -> Affine | None:
    """The expression in that form; None where it has another."""
    match of:
        case Name(name=name) if name in indices:
            return Affine(index(0), {name: index(1)})
        case Apply(function="add", operands=(a, b)):
            return _sum(affine(a, indices), affine(b, indices))
        case Apply(function="mul", operands=(a, b)):
            return _product(affine(a, indices), affine(b, indices))
    is_free = not any(isinstance(each, Name) and each.name in indices for each in all_expressions(of))
    return Affine(of, {}) if is_free else None


def _sum(a: Affine | None, b: Affine | None) -> Affine | None:
    if a is None or b is None:
        return None
    names = dict.fromkeys((*a.steps, *b.steps))
    zero = index(0)
    steps = {name: add(a.steps.get(name, zero), b.steps.get(name, zero)) for name in names}
    return Affine(add(a.first, b.first), steps)


def _product(a: Affine | None, b: Affine | None) -> Affine | None:
    if a is None or b is None or (a.steps and b.steps):
        return None
    a, b = (a, b) if a.steps else (b, a)
    return Affine(multiply(a.first, b.first), {name: multiply(step, b.first) for name, step in a.steps.items()})


# ------------------------------------------------------------------ products of sizes


def is_same_product(a: Expression, b: Expression) -> bool:
    """True if both are products of the same factors, in any order."""
    return _monomial(a) == _monomial(b)


def _monomial(of: Expression) -> tuple[int, tuple[str, ...]]:
    """A product in a form that can be compared."""
    number, names = 1, []
    for each in _factors(of):
        if isinstance(each, Constant):
            number *= int(each.value)
        else:
            names.append(each.name if isinstance(each, Name) else repr(each))
    return (number, tuple(sorted(names))) if number else (0, ())


def _factors(of: Expression) -> Iterator[Expression]:
    if isinstance(of, Apply) and of.function == "mul":
        for each in of.operands:
            yield from _factors(each)
    else:
        yield of
