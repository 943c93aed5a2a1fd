"""The first calls of a function, from Python or another function: how long they took, and what ran.

In: the time of each, and the plan that it ran.  Out: `CallClass`es, for who wants to know why a program was slow at
first.  Calls after the last mark are not counted, and cost nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import Any, Final

from engine.executor.plans.plan import ExecutionPlan
from engine.lang.locks import lock
from engine.lang.records import dataclass

MARKS: Final = (1, 10, 100)
"""The numbers of calls that the first ones are told apart by."""
INTERPRETER: Final = "the interpreter"
PLAN: Final = "the plan"
KERNELS: Final = "the plan with kernels"


@dataclass(slots=True)
class CallClass:
    """The calls from the one before on until that number: their seconds, how many of them each thing ran, and the
    seconds that one of them took to get the plan, which another process had made if it `was_kept`."""

    until: int
    seconds: float = 0.0
    ran: Counter[str] = field(default_factory=Counter)
    plan_seconds: float = 0.0
    was_kept: bool = False

    @property
    def calls(self) -> int:
        return self.ran.total()


@dataclass(slots=True)
class EarlyCalls:
    """The classes so far.  `plan` is the one that ran last."""

    number: int = 0
    classes: list[CallClass] = field(default_factory=list)
    _known: int = 0
    """The identity of the plan that ran last, where that was one."""
    _lock: Any = field(default_factory=lock)

    def note(self, nanoseconds: int, plan: ExecutionPlan | None) -> bool:
        """Take the next call; True if that was the last one that is told of."""
        with self._lock:
            if self.number < MARKS[-1]:
                self._take(nanoseconds, plan)
            return self.number >= MARKS[-1]

    def _take(self, nanoseconds: int, plan: ExecutionPlan | None) -> None:
        self.number += 1
        if not self.classes or self.number > self.classes[-1].until:
            self.classes.append(CallClass(next(mark for mark in MARKS if mark >= self.number)))
        now = self.classes[-1]
        now.seconds += nanoseconds / 1e9
        now.ran[_kind(plan)] += 1
        if plan is not None and not plan.stands_in and id(plan) != self._known:
            self._known = id(plan)
            now.plan_seconds, now.was_kept = plan.history.seconds, plan.history.origin is not None

    def so_far(self) -> tuple[CallClass, ...]:
        """The classes as they are now, which later calls leave as they are."""
        with self._lock:
            return tuple(replace(each, ran=Counter(each.ran)) for each in self.classes)


def _kind(plan: ExecutionPlan | None) -> str:
    if plan is None or plan.entry is None:
        return INTERPRETER
    has_kernels = plan.fusion is not None and any(each.kernels for each in plan.fusion.groups)
    return KERNELS if has_kernels else PLAN
