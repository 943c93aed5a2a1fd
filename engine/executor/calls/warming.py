"""All that a call compiles, made before somebody waits for it.

In: a function, and a call of it.  Out: a `Warmed`; the library of operators, the function's plan, its groups and their
kernels for such a call are on disk then, as far as they can be kept, and in this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import explain
from engine.executor.plans.plan import ExecutionPlan
from engine.fuser.backend import kernel_cache, tiering
from engine.fuser.backend.machine import MachineError
from engine.fuser.images.objects import ImageError
from engine.fuser.library import building, image_files
from engine.fuser.library.building import Library
from engine.ir.unit import Function
from engine.lang.records import dataclass

MOST_CALLS: Final = 8
"""Calls that are made at most: groups are others where a node turned out to fit in none."""

OFF: Final = "nothing is compiled: the compile mode is off"
NOT_KEPT: Final = (
    "nothing is kept on disk: there is no folder that is yours alone (TSREPL_KERNEL_CACHE=FOLDER names one)"
)
RECORDED: Final = (
    "gradients are recorded: other processes find the kernels, and form the groups anew (inference runs in no_grad)"
)
IN_NO_ARCHIVE: Final = (
    "the program is in no archive: other processes find the kernels, and make the plan anew (torch.jit.save makes one)"
)
IN_HANDS: Final = "somebody has a graph of the program in hand, who may change it: its plans are not kept"


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Files of one kind (`kernel_cache.KINDS`): how many were made, how many found, and the bytes of all."""

    kind: kernel_cache.Kind
    made: int
    found: int
    size: int


@dataclass(frozen=True, slots=True)
class Warmed:
    """The code that calls find from now on.

    `groups` and `kernels` count those of the call's plan; `files` are those that this process made or found on the way,
    which is none for what it had before.  `seconds` are those of the calls, without the `library` (None: there is
    none); `notes` say what cannot be made, or kept, and why.
    """

    mode: tiering.Mode
    groups: int
    kernels: int
    files: tuple[KeptFiles, ...]
    seconds: float
    library: Library | None
    notes: tuple[str, ...]

    def __str__(self) -> str:
        made = sum(each.made for each in self.files), sum(each.found for each in self.files)
        counts = f"{self.groups} groups, {self.kernels} kernels; {made[0]} files made, {made[1]} found"
        return "; ".join((f"{counts} in {self.seconds:.2g} s", *self.notes))


def warm(function: Function, call: Callable[[], object]) -> Warmed:
    """Build the library, and compile all that the call comes to, which is made once, or until groups have kernels.

    What others call meanwhile is compiled at once, too.  Raises what the call raises.
    """
    if tiering.mode() == "off":
        return Warmed("off", 0, 0, (), 0.0, None, (OFF,))
    library, notes = _library()
    start = time.perf_counter()
    with kernel_cache.counting() as uses:
        with _at_once():
            for _ in range(MOST_CALLS):
                known = len(uses.made)
                call()
                if len(uses.made) == known or _is_complete(function):
                    break
        tiering.wait()  # graphs of the archive are being written
    seconds, plan = time.perf_counter() - start, executor_of(function).recent_plan
    groups = [group for explained in explain(function).plans[-1:] for group in explained.groups]
    kernels = sum(len(group.kernels) for group in groups)
    notes += tuple(_limits(function, plan))
    return Warmed(tiering.mode(), len(groups), kernels, files_of(uses), seconds, library, notes)


def _library() -> tuple[Library | None, tuple[str, ...]]:
    """The library, and why there is none."""
    room = image_files.folder()
    if room is None:
        return None, (NOT_KEPT,)
    try:
        return building.built(room), ()
    except (ImageError, MachineError, OSError) as error:
        return None, (f"the library of operators cannot be built: {error}",)


@contextmanager
def _at_once() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    try:
        yield
    finally:
        tiering.set_mode(before)


def _is_complete(function: Function) -> bool:
    """True unless groups wait for another call."""
    plan = executor_of(function).recent_plan
    return plan is None or plan.fusion is None or all(group.kernels for group in plan.fusion.groups)


def _limits(function: Function, plan: ExecutionPlan | None) -> Iterator[str]:
    """The reasons why other processes do not find all of it."""
    program = function.program
    if program is None:
        yield IN_NO_ARCHIVE
    elif not program.key and kernel_cache.directory() is not None:
        yield IN_HANDS
    if plan is None:
        return
    if plan.differentiation is not None:
        yield RECORDED
    if plan.fusion is not None and plan.fusion.unavailable:
        yield plan.fusion.unavailable
    if plan.reason:
        yield f"the interpreter runs the plan: {plan.reason}"


def files_of(uses: kernel_cache.Uses) -> tuple[KeptFiles, ...]:
    """The files by kind, in the order of `KINDS`."""
    return tuple(found for kind in kernel_cache.KINDS if (found := _of_kind(kind, uses.made, uses.found)) is not None)


def _of_kind(kind: kernel_cache.Kind, *uses: Mapping[str, int]) -> KeptFiles | None:
    made, found = ([size for key, size in each.items() if kernel_cache.kind_of(key) == kind] for each in uses)
    return KeptFiles(kind, len(made), len(found), sum(made) + sum(found)) if made or found else None
