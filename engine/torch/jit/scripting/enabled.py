"""The switch of all compilation: `PYTORCH_JIT=0` in the environment, or `torch.jit._state.disable()`.

In: nothing, or a setting.  Out: where it is off, `torch.jit.script` and `torch.jit.trace` return what they are given:
Python runs it, with its debugger.
"""

from __future__ import annotations

import os
from dataclasses import field
from typing import Final

from engine.lang.records import dataclass

_OFF: Final = frozenset({"0", "OFF", "FALSE", "NO"})


@dataclass(slots=True)
class _Enabled:
    now: bool = field(default_factory=lambda: os.environ.get("PYTORCH_JIT", "1").upper() not in _OFF)


ENABLED: Final = _Enabled()


def enable() -> None:
    """Compile programs."""
    ENABLED.now = True


def disable() -> None:
    """Leave what is to be compiled as it is."""
    ENABLED.now = False
