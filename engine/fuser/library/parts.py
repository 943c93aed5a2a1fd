"""The parts of the library, in the order in which they are built.

In: what writes native code.  Out: `PARTS`.  Each is compiled, put into an image and published by itself, so that what
programs need first is there first.  Symbols that a module defines and does not keep to itself (`internal`) are what the
library offers under their names; those it only declares are of other parts, of this process (`backend/symbols.py`), or
of C libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.fuser.backend import scratch, threads
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A name of small letters, digits and `_`, and the LLVM texts of its modules, made one by one."""

    name: str
    modules: Callable[[], Iterable[str]]


def _runtime() -> Iterator[str]:
    """The functions that kernels call: threads of parallel loops, and memory for what is computed in between."""
    for program in (threads.program(), scratch.program()):
        yield str(program.write())


PARTS: Final[tuple[Part, ...]] = (Part("runtime", _runtime),)
