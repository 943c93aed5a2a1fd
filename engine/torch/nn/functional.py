"""`torch.nn.functional` for eager use.

In: a name.  Out: the function: the same one that programs call, written in TorchScript where it is composed of
operators (then it runs as a compiled function), else the operator itself.
"""

from __future__ import annotations

from typing import Any

from engine.aten.op import names
from engine.lang.errors import did_you_mean
from engine.torch import functions


def __getattr__(name: str) -> Any:
    value = None if name.startswith("__") else functions.find(name, "torch.nn.functional")
    if value is None:
        known = (each.removeprefix("aten::") for each in names())
        hint = "" if name.startswith("__") else "".join(f"; {h}" for h in did_you_mean(name, known))
        raise AttributeError(f"module 'torch.nn.functional' has no attribute '{name}'{hint}")
    globals()[name] = value
    return value
