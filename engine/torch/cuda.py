"""`torch.cuda`: the NVIDIA GPUs there are.  In: questions, devices, seeds.  Out: answers; without a GPU, mostly no."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from engine.aten import libraries, philox
from engine.aten.libraries import Library
from engine.aten.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import OperatorError


def _library() -> Library:
    """Raises OperatorError where there is no GPU."""
    try:
        return libraries.library("cuda")
    except OperatorError as error:
        raise OperatorError(
            "No CUDA GPUs are available", hints=("torch.cuda.is_available() is False", *error.hints)
        ) from error


def _index(device: Any) -> int:
    """The number of a device, given as such, as a text or as a number; None is the current one."""
    if device is None:
        return _library().current()
    found = device if isinstance(device, int) else scalars.device(device).index
    return _library().current() if found is None else found


def is_available() -> bool:
    return libraries.is_there("cuda")


def is_initialized() -> bool:
    return "cuda" in libraries.loaded()


def is_bf16_supported() -> bool:
    return False


def device_count() -> int:
    return _library().count() if is_available() else 0


def current_device() -> int:
    """Raises OperatorError: there is none."""
    return _library().current()


def get_device_name(device: Any = None) -> str:
    """Raises OperatorError where there is no GPU."""
    return _library().name_of(_index(device))


def synchronize(device: Any = None) -> None:
    """Wait for what the device has been given to do."""
    if is_available():
        with _library().on(_index(device)):
            _library().synchronize()


def empty_cache() -> None:
    """Give back the memory that is held for later."""
    if is_available():
        _library().release()


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors take."""
    return _library().memory()[0] if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes that are held, for tensors there are and for later."""
    return _library().memory()[1] if is_available() else 0


@contextmanager
def device(which: Any) -> Iterator[None]:
    """New tensors on "cuda" are made on this one meanwhile."""
    with _library().on(_index(which)):
        yield


# -- random numbers


def manual_seed(seed: int) -> None:
    """Start the stream of the current device anew."""
    if is_available():
        philox.of_device(scalars.device("cuda", _index(None))).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Start the streams of all devices anew."""
    for index in range(device_count()):
        philox.of_device(scalars.device("cuda", index)).manual_seed(int(seed))


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a device's stream as a tensor of bytes, in a form of its own."""
    state = philox.of_device(scalars.device("cuda", _index(device))).state_bytes()
    return Tensor(np.frombuffer(state, np.uint8).copy())


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Go on where `get_rng_state` was called."""
    philox.of_device(scalars.device("cuda", _index(device))).restore(new_state.array.tobytes())
