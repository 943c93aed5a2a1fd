"""The library for GPUs, and the numbers of devices.

In: a device in any of its spellings.  Out: its number; the library.
"""

from __future__ import annotations

from typing import Any

from engine.aten.values import libraries
from engine.aten.values.libraries import Library
from engine.lang import scalars
from engine.lang.errors import OperatorAssertionError, OperatorError, OperatorValueError


def machine() -> Library:
    """The library for GPUs.  Raises OperatorAssertionError without a GPU, with the missing part in its message."""
    try:
        return libraries.library("cuda")
    except OperatorError as error:
        reason = str(error).partition("\n")[0]
        hints = ("torch.cuda.is_available() is False", *error.hints)
        raise OperatorAssertionError(f"No CUDA GPUs are available: {reason}", hints=hints) from error


def is_there() -> bool:
    return libraries.is_there("cuda")


def number_of(device: Any) -> int:
    """The number of a device, given as such, as a text or as a number; None is the current one.

    Raises OperatorValueError for a device that is no GPU, OperatorError for a number out of range.
    """
    library = machine()
    if device is None:
        return library.current()
    found = scalars.device("cuda", device) if isinstance(device, int) else scalars.device(device)
    if found.type != "cuda":
        raise OperatorValueError(f"Expected a cuda device, but got: {found}")
    place = libraries.checked(found)
    assert place is not None and place.index is not None
    return place.index
