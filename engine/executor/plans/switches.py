"""Settings of a thread that decide how calls run, besides the program: optimisation, listeners, hooks.

In: `optimized_execution(False)`, `listening(listener)`.  Out: `SWITCHES.special`, which is zero while nobody asks for
anything unusual, so that a call reads one attribute; `is_optimizing()` and `tell(event)` for when it is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from engine.lang.locks import lock

Listener = Callable[[Any], object]


class _OfThread(threading.local):
    optimize: bool = True
    is_leaving: bool = False
    hooks: tuple[Callable[[Any], object], ...] = ()


class _Switches:
    """Switches of all threads: `special` counts the blocks in which any is set."""

    __slots__ = ("listeners", "lock", "special")

    def __init__(self) -> None:
        self.special = 0
        self.listeners: tuple[Listener, ...] = ()
        self.lock = lock()


SWITCHES: Final = _Switches()
_THREAD: Final = _OfThread()


def is_optimizing() -> bool:
    """True if this thread may run specialised plans."""
    return _THREAD.optimize and not _THREAD.hooks


def may_optimize() -> bool:
    """The setting of this thread, whatever watches it."""
    return _THREAD.optimize


def hooks_of_thread() -> tuple[Callable[[Any], object], ...]:
    """The hooks called for every instruction that this thread runs (see `watching`)."""
    return _THREAD.hooks


@contextmanager
def watching(hook: Callable[[Any], object]) -> Iterator[None]:
    """While the block runs, the interpreter runs all calls of this thread, with the hook; forks run at once."""
    before, _THREAD.hooks = _THREAD.hooks, (*_THREAD.hooks, hook)
    _count(1)
    try:
        yield
    finally:
        _THREAD.hooks = before
        _count(-1)


def set_optimizing(wanted: bool) -> bool:
    """Have calls of this thread optimized or not, from now on; the setting before."""
    before, _THREAD.optimize = _THREAD.optimize, wanted
    _count(before - wanted)
    return before


@contextmanager
def optimized_execution(wanted: bool) -> Iterator[None]:
    """While the block runs, calls of this thread are optimized or not."""
    before = set_optimizing(wanted)
    try:
        yield
    finally:
        set_optimizing(before)


def is_leaving() -> bool:
    """True if this thread runs what runs once and ends with the process."""
    return _THREAD.is_leaving


@contextmanager
def leaving() -> Iterator[None]:
    """While the block runs, a first call in this thread is taken for the last one, however short the function is."""
    before, _THREAD.is_leaving = _THREAD.is_leaving, True
    try:
        yield
    finally:
        _THREAD.is_leaving = before


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While the block runs, the listener is told what happens to plans, and of the passes that make them."""
    with SWITCHES.lock:
        SWITCHES.listeners = (*SWITCHES.listeners, listener)
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        with SWITCHES.lock:
            SWITCHES.listeners = tuple(each for each in SWITCHES.listeners if each is not listener)


def tell(event: Any) -> None:
    for listener in SWITCHES.listeners:
        listener(event)


def _count(change: int) -> None:
    with SWITCHES.lock:
        SWITCHES.special += change
