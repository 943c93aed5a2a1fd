"""Locks that a forked process can go on with.

In: nothing.  Out: locks and conditions of the engine, which are all made here, and `callers`, by which a mark that
somebody left is told from one of work that is under way.

Note [Locks and forks]
A child has one thread, the one that forked.  What other threads held would stay taken in it for good, so all locks but
those of that thread are made anew in the child.  What a lock guards may then be half done: who made it is gone.
So whatever is shared is made aside and published by one assignment, or somebody can tell that its maker is gone.
Modules that others were importing are imported again.

Note [Interrupts]
Python delivers Ctrl-C when a function written in Python begins and when a call of another one returns.  So `with lock:`
is safe, since the lock's methods are native: they are left with the lock taken and in the block, or not at all.  What
must be undone when a block ends is written inline, in a `finally`, with assignments and calls of native functions, and
never relied on: where an interrupt comes first, whoever comes next finds the mark, and that nobody is at work.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any
from weakref import WeakSet

_made: WeakSet[Any] = WeakSet()


def lock() -> Any:
    """A lock that its thread may take again (`RLock`), free in a child unless the thread that forked has it."""
    made = threading.RLock()
    _made.add(made)
    return made


def condition() -> threading.Condition:
    """A condition with such a lock."""
    return threading.Condition(lock())


def is_mine(lock: Any) -> bool:
    """True while this thread holds the lock."""
    owned: bool = lock._is_owned()
    return owned


def is_taken(lock: Any) -> bool:
    """True while another thread holds the lock."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def callers(frame: FrameType | None) -> Iterator[FrameType]:
    """The frame, the one that called it, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _in_child() -> None:
    """Free what threads held that are not in this process.  See Note [Locks and forks]."""
    for each in tuple(_made):
        if not each._is_owned():
            each._at_fork_reinit()
    _forget_imports()


def _forget_imports() -> None:
    """Let modules of the engine that other threads were importing be imported anew: Python keeps a lock for each, which
    nobody would ever free."""
    known: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})  # type: ignore[attr-defined]
    for name, found in tuple(known.items()):
        owner = getattr(found(), "owner", None)
        if name.partition(".")[0] in ("engine", "tsrepl") and owner not in (None, threading.get_ident()):
            sys.modules.pop(name, None)
            known.pop(name, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
