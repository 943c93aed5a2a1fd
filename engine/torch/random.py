"""`torch.random`: seeds and states of the default random generator.

In: seeds, states.  Out: the generator, restarted or restored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.aten.devices import philox
from engine.aten.kernels.random import Generator as Generator
from engine.aten.kernels.random import generator
from engine.aten.values.tensor import Tensor
from engine.torch.namespace.missing_names import refuse_unknown_names

default_generator = generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it.  Raises ValueError for a seed of more than 64 bits."""
    number = int(seed)
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError(f"a seed has 64 bits, but {number} has more")
    philox.restart(number)
    return generator().manual_seed(number)


def seed() -> int:
    """Seed the default generator from the clock, and return the seed."""
    return generator().seed()


def initial_seed() -> int:
    return generator().initial_seed()


def get_rng_state() -> Tensor:
    """The generator's state as a tensor of bytes, in the engine's own format."""
    return generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state that `get_rng_state` returned."""
    generator().set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restore the default generator's state at the end of the block."""
    before = generator().state_bytes()
    try:
        yield
    finally:
        if enabled:
            generator().restore(before)


refuse_unknown_names(__name__)
