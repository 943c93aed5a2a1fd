"""The tiers of plans: what calls run at each time, and what leads from one to the next.

In: a part of a plan that there is a faster way to run, and the compile mode.  Out: the function that calls get.

Note [Tiers]
Before there is a plan, the interpreter runs, in mode "background"; in the others the first call makes the plan.  A plan
begins in the tier that `TIERS` has for the mode, and changes it when the mode changes, when what it waits for was made,
or when that cannot be had:

    tier          what calls run                                     what ends it
    interpreted   the interpreter, from a first call on that has no  `making_takes` is spent: that call makes the plan;
                  long loops (`first_call.py`), and the time that    one that is not `SMALL`, the thread that compiles
                  further ones take adds up                          (`GraphExecutor`); another process made the plan
    off           the plan's own function                            the mode
    counted       the same, and the time that it takes adds up       `WORTH` is spent: the thread that compiles makes it
    first         nothing yet: the first call has it made            that call
    made          groups, kernels                                    the mode

Kernels come into the slots of a plan that is "made" one by one, for what groups are called with (`FusedGroup`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from weakref import WeakSet

from engine.fuser.backend import tiering
from engine.fuser.backend.tiering import Mode
from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from engine.fuser.backend import worker
else:
    worker = deferred("engine.fuser.backend.worker")

Run = Callable[..., Any]
Tier = Literal["off", "counted", "first", "made"]

TIERS: Final[Mapping[tuple[Mode, bool], Tier]] = {
    ("off", False): "off", ("eager", False): "first", ("background", False): "counted",
    ("off", True): "off", ("eager", True): "made", ("background", True): "made",
}  # fmt: skip
"""The tier by the mode, and by whether what makes calls faster is there.  See Note [Tiers]."""
_PLAN: Final = 6_000_000
"""Nanoseconds that making a plan takes, whatever it is made of."""
_NODE: Final = 200_000
"""Nanoseconds more for each node."""
SMALL: Final = 300
"""Nodes up to which a call makes the plan itself, and this process the groups unless the worker is there: that takes
less time than another process takes to start."""
WORTH: Final = 20_000_000
"""Nanoseconds: what takes so long altogether is compiled, which takes a few times as long."""


def making_takes(nodes: float) -> float:
    """Nanoseconds until there is a plan of so many nodes.

    The interpreter runs for as long before: whoever ends sooner never pays for a plan, and whoever goes on pays twice
    at most for what he could not know.
    """
    return _PLAN + _NODE * min(nodes, SMALL)


class Follower(Protocol):
    """A part that is told of changes."""

    def follow_mode(self) -> None:
        """The compile mode has changed."""


class Tiered:
    """A part of a plan on its way through the tiers.  `entry` gives the plan's function, `enter_by` sets it alone."""

    __slots__ = ("tier",)
    entry: Callable[[], Run]
    enter_by: Callable[[Run], None]
    tier: Tier
    prepares = True
    """True where the first call does not count, as it prepares what later ones use."""

    # -- parts say

    @property
    def mode(self) -> Mode:
        """The compile mode, as this part takes it."""
        return tiering.mode()

    @property
    def is_made(self) -> bool:
        """True once there is something to run in place of the plan's own function."""
        raise NotImplementedError

    def make(self) -> None:
        """Make that; no other thread compiles meanwhile."""
        raise NotImplementedError

    def run_plainly(self) -> None:
        """Let calls run the plan's own function."""
        raise NotImplementedError

    def run_by(self, wrapped: Callable[[Run], Run]) -> None:
        """Let calls run that function in this form."""
        raise NotImplementedError

    def run_made(self) -> None:
        """Let calls run what was made; no other thread compiles meanwhile."""
        raise NotImplementedError

    # -- the way through the tiers

    def start(self) -> None:
        """Begin in the tier that the mode asks for, also where that changes meanwhile."""
        installed = None
        while installed != (mode := self.mode):
            self.install_for(mode)
            installed = mode

    def install_for(self, mode: Mode) -> None:
        """Enter the tier for this mode.  See Note [Tiers]."""
        self.tier = TIERS[mode, self.is_made]
        if self.tier == "off":
            self.run_plainly()
        elif self.tier == "first":
            self.run_by(lambda run: self._first)
        elif self.tier == "counted":
            self.run_by(self._counted)
        else:
            with tiering.compiling():
                self.run_made()

    def form(self) -> None:
        """Make what makes calls faster, unless it is there, and let calls run what the mode asks for."""
        with tiering.compiling():
            if not self.is_made and self.mode != "off":
                self.make()
            self.start()

    def _first(self, *args: Any) -> Any:
        """The first call, where all is made before anything runs."""
        self.form()
        return self.entry()(*args)

    def _counted(self, run: Run) -> Run:
        """The function, until so much time was spent in it that compiling pays; then that is done beside, once."""
        first, once = iter((None,) * self.prepares), iter((None,))
        spent = 0

        def counted(*args: Any) -> Any:
            nonlocal spent
            for _ in first:
                return run(*args)
            start = time.perf_counter_ns()
            result = run(*args)
            spent += time.perf_counter_ns() - start
            if spent > WORTH:
                for _ in once:
                    worker.in_background(self.form)
            return result

        return counted

    # -- changes of the mode

    def follow_mode(self) -> None:
        """Let the next call start anew: a plan that is not called again costs nothing."""
        self.enter_by(self._start_and_run)

    def catch_up(self) -> None:
        """Start anew now, if the next call would."""
        if self.entry() == self._start_and_run:
            self.start()

    def _start_and_run(self, *args: Any) -> Any:
        self.start()
        return self.entry()(*args)


FOLLOWERS: Final[WeakSet[Follower]] = WeakSet()
"""Those that are told when the mode changes; who is ready for that adds itself."""


def _follow_mode() -> None:
    for each in [*FOLLOWERS]:
        each.follow_mode()


tiering.when_mode_changes(_follow_mode)
