"""Warnings of a trace, with the place in the program.

In: what there is to say.  Out: a TracerWarning, blamed on the innermost line of the program.
"""

from __future__ import annotations

import warnings
from typing import Final

from engine.frontend.tracing.callers import calling_frame, stack_depth

DATAFLOW: Final = (
    "Converting a tensor to {} might cause the trace to be incorrect: the program goes on with a Python value, which "
    "the trace takes for a constant. It might not generalize to other inputs!"
)


class TracerWarning(Warning):
    """The trace may not hold for other inputs than the example."""


def warn(message: str, category: type[Warning] = TracerWarning) -> None:
    """Warn of something at the program's present place."""
    warnings.warn(message, category, stacklevel=stack_depth(calling_frame()))
