"""The names of Python that a text may use: those that are seen where it is compiled."""

from __future__ import annotations

import builtins
import inspect
from typing import Any


def names_seen(frames_up: int = 0) -> dict[str, Any]:
    """The names that are seen in the code that calls this, or `frames_up` calls further out."""
    frame = inspect.currentframe()
    for _ in range(frames_up + 1):
        frame = frame.f_back if frame is not None else None
    return {} if frame is None else {**vars(builtins), **frame.f_globals, **frame.f_locals}
