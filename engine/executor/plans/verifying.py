"""Entries from disk, compared with the interpreter when they are first used, where somebody wants that.

In: a function that another process made, in part or as a whole, and the code that says what it has to do.  Out: the
same function, whose first call is compared.  `TSREPL_VERIFY=1` in the environment has plans, groups and kernels
compared that this process did not make; without it this costs nothing.

Note [Entries that differ]
Files are guarded by digests, so what differs was made wrong, or is kept under the key of something else.  The caller
gets what the interpreter gave, results as well as what was written; the files are removed, and what they held is made
anew by the usual way.  Of that this process knows who made it, so it is not compared.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from engine.executor.bytecode.code import Code
from engine.executor.plans.history import PlanHistory
from engine.executor.plans.plan_events import KeptRefused
from engine.executor.plans.tiers import Run

_SETTING: Final = "TSREPL_VERIFY"
_COMPARISON: Final = "engine.executor.debugging.comparing"
"""The module whose `compared` runs both, with all that they may write put back in between; a layer above."""
NOT_TAKEN: Final = object()
"""The result of a function that leaves a call to others."""


def is_wanted() -> bool:
    """True if what is taken from disk is to be compared."""
    return os.environ.get(_SETTING, "0") not in ("", "0")


def verified(
    run: Run, meaning: Callable[[], Code], trust: Callable[[], object], refuse: Callable[[str], object],
    otherwise: Run | None = None,
) -> Run:  # fmt: skip
    """`run`, whose first call is compared with the meaning: then either `trust()` is called, or `refuse(difference)`.

    Calls that it does not take (`NOT_TAKEN`) go to `otherwise`.  Arguments behind those of the code are for `run`
    alone.
    """

    def compared(*args: Any) -> Any:
        result, difference = import_module(_COMPARISON).compared(run, meaning(), args)
        if result is NOT_TAKEN and otherwise is not None:
            return otherwise(*args)
        if difference:
            refuse(difference)
        else:
            trust()
        return result

    return compared


def tell(history: PlanHistory, function: str, what: str, difference: str) -> None:
    """Say that an entry was refused, in the plan's history and to the reader."""
    history.tell(KeptRefused(function, what, difference))
    warnings.warn(
        f"{what} of '{function}' that was kept on disk gave other results than the interpreter: {difference}. The "
        "interpreter's are used, the files were removed, and it is made anew. 'tsrepl cache clear' removes all that is "
        "kept; if this comes again, please report it with the program.",
        RuntimeWarning,
        stacklevel=2,
    )
