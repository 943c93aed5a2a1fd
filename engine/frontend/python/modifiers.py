"""The marks that `@torch.jit.ignore`, `@torch.jit.unused` and `@torch.jit.export` leave on Python functions."""

from __future__ import annotations

from typing import Any, Final

MODIFIER: Final = "_torchscript_modifier"
"""The attribute of a Python function that has its modifier: "ignore", "unused", "export", …"""
DROPPED: Final = ("unused", "drop")
"""Those of functions that programs raise for instead of calling them; one that a class is to "drop" is not read."""
IGNORED: Final = ("ignore", *DROPPED)


ORIGINAL: Final = "_torchscript_original"
"""The attribute of a function around another one that programs call in its place."""


def modifier_of(function: Any) -> str | None:
    found: str | None = getattr(function, MODIFIER, None)
    return found
