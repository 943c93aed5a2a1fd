"""Settings of profiling: whether new plans are made from profiles, and how much failing guards are put up with.

In: nothing.  Out: `PROFILING`, which all threads share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class ProfilingSettings:
    """`runs`: a plan is made after so many profiled runs.  `failures`: a guard that has failed so often has the program
    profiled once more, which makes the sizes that vary unknown.  `rounds`: after so many times of that, the plan is
    made anew without guards."""

    is_enabled: bool = False
    runs: int = 1
    failures: int = 2
    rounds: int = 11


PROFILING: Final = ProfilingSettings()
