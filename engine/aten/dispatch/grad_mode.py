"""The grad mode of each thread: a switch for recording operators.

In: nothing, or the wanted position.  Out: contexts that set the switch and put it back, which also decorate
functions.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from engine.aten.values.hooks import HOOKS

Result = TypeVar("Result")


class _Mode(threading.local):
    enabled: bool = True
    inference: bool = False
    packing: Any = None
    """The hooks that keep tensors for backward passes, if a program has its own; see `saving`."""
    checks_nan: bool = False
    """Backward passes look for NaN in what each step gives."""


MODE: Final = _Mode()


def enable(wanted: bool) -> None:
    """Put the switch of this thread into that position."""
    me = threading.get_ident()
    MODE.enabled = wanted
    _TELL[wanted](me)


_TELL: Final = HOOKS.paused.add, HOOKS.paused.discard


def _in_child() -> None:
    """Forget the switches of threads that a forked process does not have."""
    HOOKS.paused.intersection_update({threading.get_ident()})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def with_recording(wanted: bool, function: Callable[..., Result], *args: Any) -> Result:
    """The result of a call with the switch in that position.

    Native functions alone put it back: no interrupt comes before that.  See Note [Interrupts] in `locks.py`.
    """
    before, me = MODE.enabled, threading.get_ident()
    try:
        if before is not wanted:
            enable(wanted)
        return function(*args)
    finally:
        MODE.enabled = before
        _TELL[before](me)


def is_grad_enabled() -> bool:
    """True if this thread records operators."""
    return MODE.enabled


def is_inference_mode_enabled() -> bool:
    return MODE.inference


def restore(before: tuple[bool, bool]) -> None:
    """Put both switches of this thread back: that of recording and that of inference."""
    enable(before[0])
    MODE.inference = before[1]


class _Switch:
    """A context that holds the switch in one position; each use keeps what it found."""

    _enabled: bool
    _before: list[bool]

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before = []

    def __enter__(self) -> Self:
        self._before.append(before := MODE.enabled)
        me = threading.get_ident()
        try:
            if before is not self._enabled:
                enable(self._enabled)
        except BaseException:
            MODE.enabled = before
            _TELL[before](me)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if (before := self._before[-1]) is not MODE.enabled:
            enable(before)
        del self._before[-1:]

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run with the switch in this position."""

        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return switched


class _Decorator(_Switch):
    """A switch that takes no arguments; `@no_grad` works like `@no_grad()`."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = object.__new__(cls)
        made._before = []
        return made if function is None else made(function)

    __init__ = object.__init__


class no_grad(_Decorator):
    """Nothing is recorded inside."""

    _enabled = False


class enable_grad(_Decorator):
    """Operators are recorded inside, also within `no_grad`."""

    _enabled = True


class set_grad_enabled(_Switch):
    """Sets the switch at once; as a context it puts it back at the end."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._before.append(MODE.enabled)
        enable(mode)

    def __enter__(self) -> Self:
        enable(self._enabled)
        return self

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        enable(self._before.pop())
        return _Switch(self._enabled)(function)


class inference_mode(_Switch):
    """Nothing is recorded inside, and `is_inference_mode_enabled()` says so."""

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        made = super().__new__(cls)
        if not callable(mode):
            return made
        made.__init__()  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)
        self._mode = mode
        self._modes: list[bool] = []

    def __enter__(self) -> Self:
        self._modes.append(MODE.inference)
        self._before.append(MODE.enabled)
        MODE.inference = self._mode
        if self._mode:
            enable(False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        MODE.inference = self._modes.pop()
        super().__exit__(kind, error, _)


class set_detect_anomaly:
    """Backward passes refuse NaN: works at once, and as a context puts back what was.

    `check_nan=False` leaves NaN alone.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = MODE.checks_nan
        MODE.checks_nan = mode and check_nan

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        MODE.checks_nan = self._before


class detect_anomaly(set_detect_anomaly):
    """The same, from where the block begins."""

    def __init__(self, check_nan: bool = True) -> None:
        self._wanted = check_nan

    def __enter__(self) -> None:
        super().__init__(True, self._wanted)
