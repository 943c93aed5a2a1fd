"""`torch.nn.functional` for eager use.

In: a name.  Out: the function: the same one that programs call, written in TorchScript where it is composed of
operators (then it runs as a compiled function), else the operator itself.
"""

from __future__ import annotations

from typing import Any

from engine.torch import functions


def __getattr__(name: str) -> Any:
    value = functions.attribute(name, "torch.nn.functional")
    globals()[name] = value
    return value
