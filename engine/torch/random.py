"""`torch.random`: seeds and states of the generator that everybody shares.

In: seeds, states.  Out: the same numbers again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from engine.aten.random import Generator as Generator
from engine.aten.random import generator
from engine.aten.tensor import Tensor


def manual_seed(seed: int) -> Generator:
    """Start the stream of the seed."""
    return generator().manual_seed(int(seed))


def seed() -> int:
    """Seed from the clock; the new seed."""
    return generator().seed()


def initial_seed() -> int:
    return generator().initial_seed()


def get_rng_state() -> Tensor:
    """The generator's state as a tensor of bytes, in a form of its own."""
    return Tensor(np.frombuffer(generator().state_bytes(), np.uint8).copy())


def set_rng_state(new_state: Tensor) -> None:
    """Go on where `get_rng_state` was called."""
    generator().restore(new_state.array.tobytes())


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """What is drawn inside is not missed outside."""
    before = generator().state_bytes()
    try:
        yield
    finally:
        if enabled:
            generator().restore(before)
