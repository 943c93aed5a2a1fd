"""Settings of Python's interpreter that compiling changes for a while.

In: nothing.  Out: five contexts.  Inside `deep_recursion()` functions that call themselves once a level of a program's
nesting do not run out of Python's stack.  How deep a program may nest is `MAX_NESTING` (brackets and blocks) and
`MAX_HEIGHT` (levels of a tree, chains such as `a + b + c` included); deeper ones are refused before anything recurses
over them; so are a statement of more than `MAX_WORDS` tokens, a text of more than `MAX_TEXT_WORDS` and a function of
more than `MAX_PARAMETERS`, before anything of them is compiled (decision 21).

Inside `collecting_rarely()` (a decorator, too) the garbage collector runs after tens of thousands of new objects, not
after hundreds.  Trees, graphs and plans are objects that stay: traversing all of them again and again took a sixth of
the time of a first call.  Garbage is found all the same, only later.

Inside `loading()` it does not run, and never looks through what was made there: modules stay as long as the process.
numpy, if it is imported there, has one thread for its products and linear algebra until somebody asks for more.
Inside `importing()`, for programs that have objects of their own, it does not run either; what is there afterwards
counts as old, so that no run over new objects, which a first call would wait for, looks through all modules.

A thread inside `yielding()` gives the interpreter lock to others as soon as they have waited for `PATIENCE`, not for
Python's five milliseconds: a program that leaves the lock for each of its kernels waited as long after each of them.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from engine.lang.deferred import deferred
from engine.lang.errors import ArgumentError

if TYPE_CHECKING:
    from engine.lang import locks
else:
    locks = deferred("engine.lang.locks")

MAX_NESTING: Final = 400
MAX_HEIGHT: Final = 600
WORDS_VARIABLE: Final = "TSREPL_MAX_WORDS"


def words_of(setting: str) -> int:
    """The limit that the variable sets, 131,072 without one.  Raises ArgumentError for anything but digits."""
    if setting and not setting.isdecimal():
        raise ArgumentError(f"{WORDS_VARIABLE} is a number of words, and not {setting!r}")
    return int(setting or 1 << 17)


MAX_WORDS: Final = words_of(os.environ.get(WORDS_VARIABLE, ""))
"""The maximal number of tokens in one statement; a list or dict of plain literals counts as one token."""
MAX_TEXT_WORDS: Final = 8 * MAX_WORDS
"""The maximal number of tokens in one text: a record of an archive, a program that is compiled at once."""
MAX_PARAMETERS: Final = 1 << 13
"""The maximal number of parameters of one function."""
MAX_BLOCKS: Final = 240
"""The maximal nesting of blocks in a graph; recursion over graphs takes up to three Python frames for each."""
_FRAMES: Final = 15_000
"""Python frames that a tree of `MAX_HEIGHT` may take, many for each level."""


class _Block:
    """A block that asks for a setting, for as long as its frame is there."""

    __slots__ = ("__weakref__",)


class _Raised:
    """A setting of the process that is another one while threads are in blocks that ask for it.

    The first block changes it and the last one puts it back, unless somebody else has changed it meanwhile.  `wanted`
    gives the setting for the one that was there.  In a child there is no block but those of the thread that forked.
    A block that an error kept from putting it back ends with its frame, and whoever comes next puts it back.
    """

    def __init__(self, read: Callable[[], Any], write: Callable[..., object], wanted: Callable[[Any], Any]) -> None:
        self._read, self._write, self._wanted = read, write, wanted
        self._locks: dict[str, Any] = {}
        """The lock, made with the first block: a prompt that waits for its first entry has none."""
        self._blocks: dict[ref[_Block], int] = {}
        """The blocks, and their threads."""
        self._change: tuple[Any, Any] | None = None
        """The setting before, and the one that was made of it once it is made."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block with that setting.  See Note [Interrupts] in `locks.py` for what stands here so plainly."""
        own = self._locks.get("own") or self._locks.setdefault("own", locks.lock())
        block = _Block()
        key = ref(block)
        try:
            with own:
                self._end_if_last()
                self._blocks[key] = threading.get_ident()
                if self._change is None:
                    before = self._read()
                    wanted = self._wanted(before)
                    self._change = before, None
                    self._set(wanted)
                    self._change = before, self._read()
            yield
        finally:
            self._blocks.pop(key, None)
            with own:
                self._end_if_last()

    def _end_if_last(self) -> None:
        """Put the setting back if no block is left."""
        for key in [*self._blocks]:
            if key() is None:
                self._blocks.pop(key, None)
        if not self._blocks and self._change is not None:
            before, made = self._change
            if made is None or self._read() == made:
                self._set(before)
            self._change = None

    def _set(self, setting: Any) -> None:
        self._write(*setting) if type(setting) is tuple else self._write(setting)

    def _in_child(self) -> None:
        me = threading.get_ident()
        self._blocks = {key: thread for key, thread in self._blocks.items() if thread == me}
        self._end_if_last()


_RECURSION: Final = _Raised(sys.getrecursionlimit, sys.setrecursionlimit, lambda before: max(before, _FRAMES))


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit until the last of these blocks ends, in any thread."""
    with _RECURSION.held():
        yield


OBJECTS: Final = 50_000
"""New objects, less those that were freed, between two runs of the collector."""
RUNS: Final = 100
"""Runs over new objects between two over those that outlived one: trees and graphs outlive many."""


def _rarely(before: tuple[int, ...]) -> tuple[int, ...]:
    first, second, *others = before  # 0 is a collector that is turned off
    return first and max(first, OBJECTS), max(second, RUNS), *others


_COLLECTING: Final = _Raised(gc.get_threshold, gc.set_threshold, _rarely)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Hold the collector back until the last of these blocks ends, in any thread."""
    with _COLLECTING.held():
        yield


@contextmanager
def loading() -> Iterator[None]:
    """Import modules here, where the process begins: all that there is then is taken for what stays."""
    was_on, known = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        with _one_blas_thread():
            yield
    finally:
        if len(sys.modules) > known:
            gc.freeze()
        if was_on:
            gc.enable()


@contextmanager
def importing() -> Iterator[None]:
    """Import modules here, at any time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else the program has put objects aside, and wants them to stay there
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
        if was_on:
            gc.enable()


BLAS_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables of the environment that say how many threads numpy's OpenBLAS has."""


class _Blas:
    """`is_asleep` if numpy's OpenBLAS was begun with one thread; `threads.wake_blas` starts the others."""

    is_asleep: bool = False


BLAS: Final = _Blas()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Let numpy begin with one thread, unless the environment says how many: it would start the others at once, and
    these look for work so eagerly that a machine of two processors took a third longer to import it."""
    if "numpy" in sys.modules or any(name in os.environ for name in BLAS_VARIABLES):
        yield
        return
    os.environ[BLAS_VARIABLES[0]] = "1"
    try:
        yield
    finally:
        del os.environ[BLAS_VARIABLES[0]]
        if "numpy" in sys.modules:
            BLAS.is_asleep = True


PATIENCE: Final = 0.0005
"""Seconds that threads wait for the interpreter lock before they ask for it."""
_SWITCHING: Final = _Raised(sys.getswitchinterval, sys.setswitchinterval, lambda before: min(before, PATIENCE))


@contextmanager
def yielding() -> Iterator[None]:
    """Let other threads have the interpreter lock soon."""
    with _SWITCHING.held():
        yield
