"""Settings of profiling: whether new plans are made from profiles, and how many, each with guards of which sizes.

In: nothing.  Out: `PROFILING`, which all threads share.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice, repeat
from typing import Final, Literal

from engine.lang.records import dataclass

Specialisation = Literal["STATIC", "DYNAMIC"]
FusionStrategy = Sequence[tuple[Specialisation, int]]
Guards = Literal["bailouts", "groups"]
"""bailouts: of values between operators, each with the rest of the program behind it; groups: of what goes into fusion
groups, each with the group's nodes behind it."""
GuardedSizes = Literal["latest", "constant", "none"]
"""latest: the sizes of the runs since the plan before was dropped; constant: those that were the same in all runs;
none: no size, but ranks and dtypes."""


@dataclass(slots=True)
class ProfilingSettings:
    """`runs`: a plan is made after so many profiled runs.  `failures`: a guard that has failed so often has the program
    profiled once more, for a plan anew.  `strategy`: so many plans of each kind, one after the other; then the plan has
    no guards.  `guards`: where plans check what they were made from; with `fuses_at_once`, groups that do so are
    formed, and have their kernels, with the first call of the plan, as in the compile mode "eager"."""

    is_enabled: bool = False
    runs: int = 1
    failures: int = 2
    strategy: FusionStrategy = (("STATIC", 2), ("DYNAMIC", 10))
    guards: Guards = "bailouts"
    fuses_at_once: bool = False

    @property
    def guards_groups(self) -> bool:
        """True if plans are made from profiles, and fusion groups guard themselves."""
        return self.is_enabled and self.guards == "groups"

    @property
    def depth(self) -> int:
        """The number of plans with guards that are made for one kind of arguments."""
        return sum(depth for _, depth in self.strategy)

    def guarded_sizes(self, number: int) -> GuardedSizes | None:
        """The sizes that the plan of this number, from 0 on, guards; None where there is no such plan.

        Which sizes vary is known from the static plans before; without any, a dynamic plan leaves all of them open.
        """
        kinds = chain.from_iterable(repeat(kind, depth) for kind, depth in self.strategy)
        first = [*islice(kinds, number + 1)]
        if len(first) <= number:
            return None
        return "latest" if first[-1] == "STATIC" else "constant" if "STATIC" in first else "none"


PROFILING: Final = ProfilingSettings()
