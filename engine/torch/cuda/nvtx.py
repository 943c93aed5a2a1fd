"""`torch.cuda.nvtx`: named ranges and marks for NVIDIA's profilers.  In: names.  Out: nothing.

Raises OperatorAssertionError without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.torch.cuda.machine import machine


def range_push(msg: str) -> None:
    """Begin a range."""
    machine().cuda.nvtx.RangePush(msg)


def range_pop() -> None:
    """End the innermost range."""
    machine().cuda.nvtx.RangePop()


def mark(msg: str) -> None:
    """Mark the present moment with a name."""
    machine().cuda.nvtx.Mark(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
