"""Plans by what they are made for: bounded, and each made once.

In: a key, and how to make its plan.  Out: the plan.  A thread that asks for a plan that another one is making waits for
it; plans of different keys are made at the same time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from engine.lang.locks import lock
from engine.lang.records import dataclass

P = TypeVar("P")


@dataclass(slots=True)
class CacheStatistics:
    """`hits` counts lookups that found a plan, also one that was being made; `evictions` the plans evicted,
    `forgotten` those dropped for another reason."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    forgotten: int = 0

    def __add__(self, other: CacheStatistics) -> CacheStatistics:
        return CacheStatistics(
            self.hits + other.hits, self.misses + other.misses, self.evictions + other.evictions,
            self.forgotten + other.forgotten,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """Of so many plans: `hits` counts the calls that found them, `misses` the calls of groups that no kernel took,
    `failures` those of guards."""

    plans: int = 0
    hits: int = 0
    misses: int = 0
    failures: int = 0

    def __add__(self, other: PlanCounts) -> PlanCounts:
        return PlanCounts(
            self.plans + other.plans, self.hits + other.hits, self.misses + other.misses,
            self.failures + other.failures,
        )  # fmt: skip


class _Pending:
    """A plan that the thread which holds `turn` makes, while others wait for that; the error if it failed."""

    __slots__ = ("error", "turn")

    def __init__(self) -> None:
        self.turn = lock()
        self.error: Exception | None = None


class PlanCache(Generic[P]):
    """At most `bound` plans; the least recently used is evicted.  `on_drop` is called with plans that leave."""

    __slots__ = ("_lock", "_on_drop", "_pending", "_plans", "bound", "statistics")

    def __init__(self, bound: int, on_drop: Callable[[P], object] = lambda plan: None) -> None:
        self.bound = bound
        self._on_drop = on_drop
        self.statistics = CacheStatistics()
        self._plans: OrderedDict[Hashable, P] = OrderedDict()
        self._pending: dict[Hashable, _Pending] = {}
        self._lock = lock()

    def __len__(self) -> int:
        return len(self._plans)

    def has(self, key: Hashable) -> bool:
        return key in self._plans

    def plans(self) -> list[P]:
        """The cached plans, the most recently used last."""
        with self._lock:
            return list(self._plans.values())

    def forget(self, key: Hashable) -> None:
        """Drop the plan of a key, if there is one."""
        with self._lock:
            plan = self._plans.pop(key, None)
            if plan is not None:
                self.statistics.forgotten += 1
                self._on_drop(plan)

    def get(self, key: Hashable, make: Callable[[], P], *, misses: int = 1) -> tuple[P, bool]:
        """The plan, and whether it was there; if not, these `misses` are counted.  Raises what `make` raises, in every
        thread that waits for it."""
        if (plan := self._known(key)) is not None:
            return plan, True
        with self._lock:
            pending = self._pending.setdefault(key, _Pending())
        with pending.turn:  # free where who made it was interrupted, or is not in this process: then it is made here
            if (plan := self._known(key)) is not None:
                return plan, True
            if pending.error is not None:
                raise pending.error
            with self._lock:
                self.statistics.misses += misses
            try:
                plan = make()
                self._keep(key, plan)
            except Exception as error:
                pending.error = error
                raise
            finally:
                self._pending.pop(key, None)
        return plan, False

    def _known(self, key: Hashable) -> P | None:
        """The plan, which counts as used, if it is there."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                self.statistics.hits += 1
            return plan

    def _keep(self, key: Hashable, plan: P) -> None:
        with self._lock:
            self._plans[key] = plan
            if len(self._plans) > self.bound:
                _, plan = self._plans.popitem(last=False)
                self.statistics.evictions += 1
                self._on_drop(plan)
