"""`torch.fft`: Fourier transforms.  In: a name.  Out: the operator `aten::fft_name`."""

from __future__ import annotations

from typing import Any

from engine.torch.namespace import functions


def __getattr__(name: str) -> Any:
    value = functions.attribute(name, "torch.fft")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(functions.known("torch.fft"))
