"""Dtypes that operators have no code for, and the errors that say so.

In: letters of the kinds of dtype refused: b(ool), i(ntegers), n(arrow integers, all but int64), s(igned ones),
f(loating point, half types included), h(alf types), c(omplex); and the words of the error.  Out: a `Refusal` for the
rows of operators.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.aten.kernels.rules import no_kernel
from engine.aten.values import xp
from engine.lang.errors import OperatorError
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Kinds of dtype that are refused, of the first operand or (`common`) of the common dtype, with the error."""

    kinds: str
    common: bool
    error: Callable[[xp.NumpyDtype], OperatorError]
    empty: bool = True
    """True if operands without elements are refused, too."""

    @property
    def dtypes(self) -> frozenset[xp.NumpyDtype]:
        return frozenset(d for d in xp.TO_NUMPY.values() if set(kinds_of(d)) & set(self.kinds))


def no_code(kinds: str, kernel: str, *, common: bool = False, empty: bool = True) -> Refusal:
    """The refusal in the words of a missing kernel of that name."""
    return Refusal(kinds, common, lambda d: no_kernel(kernel, d), empty)


def unsupported(
    kinds: str, message: str, *, common: bool = False, error: type[OperatorError] = OperatorError
) -> Refusal:
    """The refusal in words of its own."""
    return Refusal(kinds, common, lambda d: error(message))


def kinds_of(d: xp.NumpyDtype) -> str:
    """The letters of a dtype: b, i and what else is true of an integer, f or fh, or c."""
    of_integers = ("n" if d != xp.INT64 else "") + ("s" if d in xp.SIGNED_INTEGERS else "")
    return xp.category(d)[0] + (of_integers if d in xp.INTEGERS else "h" if d in xp.HALVES else "")
