"""`torch.cuda`: the streams of random numbers of GPUs.  In: seeds, states.  Out: restarted or restored streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.aten.devices import philox
from engine.aten.devices.philox import Philox
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.torch.cuda.machine import is_there, machine, number_of


def _generator(device: Any = None) -> Philox:
    return philox.of_device(scalars.device("cuda", number_of(None if device == "cuda" else device)))


def _all() -> list[Philox]:
    return [_generator(index) for index in range(machine().count())] if is_there() else []


def manual_seed(seed: int) -> None:
    """Seed the stream of the current device; no effect without a GPU."""
    if is_there():
        _generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the streams of all devices."""
    for each in _all():
        each.manual_seed(int(seed))


def seed() -> None:
    """Seed the stream of the current device from the clock."""
    if is_there():
        _generator().seed()


def seed_all() -> None:
    """Seed the streams of all devices from the clock."""
    for each in _all():
        each.seed()


def initial_seed() -> int:
    """The seed of the current device's stream.  Raises OperatorError without a GPU."""
    return _generator().initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a device's stream as bytes in the engine's own format.  Raises OperatorError without a GPU."""
    return Tensor(np.frombuffer(_generator(device).state_bytes(), np.uint8).copy())


def get_rng_state_all() -> list[Tensor]:
    return [get_rng_state(index) for index in range(len(_all()))]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Restore a state that `get_rng_state` returned."""
    _generator(device).restore(new_state.cpu().array.tobytes())


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
