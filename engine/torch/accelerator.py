"""`torch.accelerator`: there is none."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """The device of the accelerator: None."""
    return None


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""
