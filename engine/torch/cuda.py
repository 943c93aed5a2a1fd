"""`torch.cuda`: there is no GPU to be asked for.  In: questions.  Out: no."""

from __future__ import annotations

from typing import Any

from engine.lang.errors import OperatorError


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_bf16_supported() -> bool:
    return False


def device_count() -> int:
    return 0


def current_device() -> int:
    """Raises OperatorError: there is none."""
    raise OperatorError("No CUDA GPUs are available", hints=("torch.cuda.is_available() is False",))


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


manual_seed_all = manual_seed


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


def empty_cache() -> None:
    """Nothing to empty."""
