"""Loops (`engine.aten.stepwise.language`) as machine code.

In: a `Loop` and the dtypes of its arrays.  Out: a function of addresses and numbers that does the same.  A loop is
compiled once there was so much work for it that it pays, in the thread that makes native entries where that makes no
difference to results; until then, and where there is no LLVM, kernels go the way over numpy.  ctypes lets other threads
run meanwhile.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten.stepwise.language import Entry, Key, Loop
from engine.fuser.backend import machine, tiering
from engine.fuser.groups.from_loop import Unreadable, kernel_of

WORTH: Final = 1 << 20
"""Steps after which a loop is compiled."""
_refused: Final[dict[tuple[str, Key], str]] = {}


def refused() -> dict[tuple[str, Key], str]:
    """Why loops have no machine code for arrays of these dtypes."""
    return dict(_refused)


def entry_for(loop: Loop, kinds: Key, work: int) -> Entry | None:
    """Called where there is none yet: None while it is not worth it, or being compiled."""
    if tiering.mode() == "off":
        return None
    if tiering.mode() == "eager":
        compile_loop(loop, kinds)
        return loop.entries.get(kinds)
    waiting = loop.waiting[kinds] = loop.waiting.get(kinds, 0) + work
    if waiting < WORTH:
        return None
    loop.waiting[kinds] = 0
    if loop.is_alike:
        tiering.in_background(lambda: compile_loop(loop, kinds))
        return None
    compile_loop(loop, kinds)
    return loop.entries.get(kinds)


def compile_loop(loop: Loop, kinds: Key) -> None:
    """Give the loop machine code for such arrays, or note why there is none."""
    if kinds in loop.entries:
        return
    name = loop.function.__name__
    try:
        if any(kind == np.float16 for kind in kinds) and not machine.has_feature("f16c"):
            raise Unreadable("this processor does not convert float16")
        kernel = kernel_of(loop, kinds)
        loop.entries[kinds] = machine.entry_of(kernel, machine.compile_program(machine.program(kernel)))
    except (Unreadable, machine.MachineError, OSError) as error:
        _refused[name, kinds] = str(error)
        loop.entries[kinds] = None
