"""`torch.backends.cudnn`: cuDNN is never used, not even on a GPU; its switches are stored without effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.torch.namespace.missing_names import refuse_unknown_names

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    return False


def version() -> None:
    return None


def is_acceptable(tensor: object) -> bool:
    """False: cuDNN is never used."""
    return False


@contextmanager
def flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:  # fmt: skip
    """Set the switches for the duration of the block."""
    here = globals()
    wanted = {
        "enabled": enabled, "benchmark": benchmark, "benchmark_limit": benchmark_limit,
        "deterministic": deterministic, "allow_tf32": allow_tf32,
    }  # fmt: skip
    before = {name: here[name] for name in wanted}
    here.update(wanted)
    try:
        yield
    finally:
        here.update(before)


refuse_unknown_names(__name__)
