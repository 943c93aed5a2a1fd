"""`torch.special`: special functions.  In: a name.  Out: the operator `aten::special_name`."""

from __future__ import annotations

from typing import Any

from engine.torch.namespace import functions


def __getattr__(name: str) -> Any:
    value = functions.attribute(name, "torch.special")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(functions.known("torch.special"))
