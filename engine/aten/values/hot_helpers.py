"""Hot helpers: small functions on the path of every call, each with a slot that machine code may take.

In: Python's definitions, marked with `hot_helper`.  Out: `HOT`, whose slots generated functions and kernels call
through, so that an implementation that takes a slot is used everywhere at once, and can be given back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

_Helper = TypeVar("_Helper", bound=Callable[..., Any])
Tensor = Any
"""An `engine.aten.values.tensor.Tensor`, of a layer above."""


class HotHelpers:
    """The current implementation of each helper; at first Python's definition."""

    __slots__ = ("as_strided", "attach", "form_of", "fresh", "saved", "saved_result", "view", "wrapped")
    as_strided: Callable[[Any, tuple[int, ...], tuple[int, ...]], np.ndarray[Any, Any]]
    attach: Callable[..., Tensor]
    form_of: Callable[[Tensor], tuple[tuple[int, ...], np.dtype[Any]]]
    fresh: Callable[[Any], Tensor]
    saved: Callable[[Tensor], Any]
    saved_result: Callable[[Tensor], Any]
    view: Callable[[Any, Tensor], Tensor]
    wrapped: Callable[..., Tensor]


HOT: Final = HotHelpers()
DEFINITIONS: Final[dict[str, Callable[..., Any]]] = {}
"""Python's definitions, by name."""


def hot_helper(function: _Helper) -> _Helper:
    """Decorates the definition of a helper, which has a slot of its name."""
    DEFINITIONS[function.__name__] = function
    setattr(HOT, function.__name__, function)
    return function


def take(name: str, implementation: Callable[..., Any]) -> None:
    """Let the implementation serve as the helper; it has to do what the definition does."""
    setattr(HOT, name, implementation)


def give_back(name: str) -> None:
    """Let Python's definition serve as the helper again."""
    setattr(HOT, name, DEFINITIONS[name])
