"""Checks of the dtype of the tensor that a call gives as `out`.

In: the dtype of the result and that of the tensor.  Out: nothing, or OperatorError.  Most operators convert as long as
no kind of number is lost (`promotion.check_cast`); the rows of others name one of these checks.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.aten.kernels.rules import c_name
from engine.aten.values import xp
from engine.aten.values.promotion import can_cast
from engine.lang.errors import OperatorError

Check = Callable[[xp.NumpyDtype, xp.NumpyDtype], None]


def check_same(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
    """Raise OperatorError unless the tensor has the result's dtype."""
    if source != target:
        raise OperatorError(
            f"Expected out tensor to have dtype {c_name(source)}, but got {c_name(target)} instead",
            hints=(f"give a tensor of dtype torch.{xp.FROM_NUMPY[source].name}",),
        )


def check_found(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
    """The same for operators of one tensor, in their words."""
    if source != target:
        raise OperatorError(
            f"Found dtype {xp.ir_name(target)} but expected {xp.ir_name(source)}",
            hints=(f"give a tensor of dtype torch.{xp.FROM_NUMPY[source].name}",),
        )


def check_size_of(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
    """The absolute values of complex numbers may go into a tensor of these, too."""
    if target not in xp.COMPLEX or source in xp.COMPLEX or target.itemsize != 2 * source.itemsize:
        check_found(source, target)


def check_matching(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
    if source != target:
        raise OperatorError(
            f"Expected the dtype for input and out to match, but got {xp.ir_name(source)} for input's dtype and "
            f"{xp.ir_name(target)} for out's dtype."
        )


def only_bool(name: str) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if target not in (xp.BOOL, xp.UINT8):
            raise OperatorError(f"{name} only supports bool tensor for result, got: {xp.ir_name(target)}")

    return check


def no_other_than_bool(name: str) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if target != xp.BOOL:
            raise OperatorError(f"{name} does not support non-boolean outputs.")

    return check


def cast_in_words(words: str, error: type[OperatorError] = OperatorError) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if not can_cast(source, target):
            raise error(f"{words} can't be cast to the desired output type {xp.ir_name(target)}")

    return check


def only_same(words: str) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if source != target:
            raise OperatorError(
                words.format(
                    wanted=xp.ir_name(source), given=xp.ir_name(target), c=c_name(source), c_given=c_name(target)
                )
            )

    return check
