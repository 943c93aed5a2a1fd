"""Random numbers for devices: Philox 4x32-10, which counts instead of remembering.

In: a seed.  Out: a `Generator` with the same stream on every device and machine.  (Salmon, Moraes, Dror, Shaw:
"Parallel random numbers: as easy as 1, 2, 3", 2011.)
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from engine.aten.kernels import random
from engine.aten.kernels.random import DEFAULT_SEED, Generator
from engine.aten.values import libraries
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.errors import OperatorError

_ROUNDS: Final = 10
_FACTORS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_STATE: Final = struct.Struct("<QQd")


def philox(seed: int, first: int, count: int) -> Array:
    """`count` blocks of four words of 32 bits, from block number `first` on: an array of (count, 4) uint64."""
    blocks = np.arange(count, dtype=np.uint64) + np.uint64(first)
    a, b, c, d = blocks & _LOW, blocks >> _HALF, np.zeros_like(blocks), np.zeros_like(blocks)
    low, high = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(_ROUNDS):
        one, two = a * _FACTORS[0], c * _FACTORS[1]
        a, b, c, d = (two >> _HALF) ^ b ^ np.uint64(low), two & _LOW, (one >> _HALF) ^ d ^ np.uint64(high), one & _LOW
        low, high = (low + _STEPS[0]) & 0xFFFFFFFF, (high + _STEPS[1]) & 0xFFFFFFFF
    return np.stack([a, b, c, d], axis=-1)


class Philox(Generator):
    """The generator of a device.  Raises OperatorError where there is no such device."""

    def __init__(self, device: Any) -> None:
        super().__init__(libraries.existing(scalars.device(device)))

    def manual_seed(self, seed: int) -> Generator:
        super().manual_seed(seed)
        self._place = 0
        return self

    def words32(self, count: int) -> Array:
        """Calls begin at whole blocks.  Raises OperatorError while a CUDA graph is captured: its replays draw none."""
        if CAPTURING:
            raise OperatorError("random numbers cannot be drawn while a CUDA graph is captured")
        blocks = -(-count // 4)
        words = philox(self._seed, self._place, blocks).reshape(-1)[:count]
        self._place += blocks
        return words

    def state_bytes(self) -> bytes:
        return _STATE.pack(self._seed & 0xFFFFFFFFFFFFFFFF, self._place, self._spare or 0.0)

    def restore(self, state: bytes) -> None:
        if len(state) != _STATE.size:
            raise ValueError("RNG state is wrong size")
        self._seed, self._place, spare = _STATE.unpack(state)
        self._spare = spare or None


random.OF_DEVICES["cuda"] = Philox

CAPTURING: Final[list[object]] = []
"""The CUDA graphs that are being captured."""
_OF_DEVICE: Final[dict[Any, Philox]] = {}


def of_device(device: Any) -> Philox:
    """The generator that everybody shares on that device."""
    key = str(device)
    found = _OF_DEVICE.get(key)
    if found is None:
        found = _OF_DEVICE[key] = Philox(device)
        found.manual_seed(_SEED[0])
    return found


_SEED: Final = [DEFAULT_SEED]
"""The initial seed of all devices."""


def restart(seed: int) -> None:
    """Restart the streams of all devices, including devices not yet used."""
    _SEED[0] = seed
    for each in _OF_DEVICE.values():
        each.manual_seed(seed)
