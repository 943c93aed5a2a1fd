"""Random numbers, the same stream for the same seed as PyTorch gives on the CPU.

A `Generator` is a Mersenne Twister of 32-bit words.  Floats use the low bits of a word (float32 and
halves) or of two (float64); normal numbers come from pairs of uniforms (Box-Muller), in blocks of 16.
In: shapes and parameters.  Out: float64 or float32 arrays.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, SupportsIndex

import numpy as np

from engine.aten.stepwise.scattering import swap_each
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.errors import OperatorError

DEFAULT_SEED: Final = 67280421310721
_BLOCK: Final = 16
_STATE: Final = struct.Struct("<QQd")
_MASK: Final = 0xFFFFFFFFFFFFFFFF


class Generator:
    """A source of random numbers with a seed."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        return object.__new__(OF_DEVICES.get(scalars.device(device).type, cls))

    def __init__(self, device: Any = "cpu") -> None:
        self.device = scalars.device(device)
        self.manual_seed(DEFAULT_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from `seed`.  Raises OperatorError unless it is an integer."""
        if not isinstance(seed, SupportsIndex):
            raise OperatorError(f"a seed is an integer, not a {type(seed).__name__}")
        seed = seed.__index__()
        self._seed = seed
        self._source: Any = None
        self._spare: float | None = None
        return self

    @property
    def _bits(self) -> Any:
        """The source of bits, made with the first number: loading it takes a while."""
        if self._source is None:
            source = np.random.MT19937()
            source._legacy_seeding(self._seed & 0xFFFFFFFF)
            self._source = source
        return self._source

    def seed(self) -> int:
        """Seed from the clock; the new seed."""
        self.manual_seed(time.time_ns() & 0x7FFFFFFFFFFFFFFF)
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def state_bytes(self) -> bytes:
        """The complete state of the generator, for `restore`."""
        inner = self._bits.state["state"]
        spare = math.nan if self._spare is None else self._spare
        key: bytes = inner["key"].astype("<u4").tobytes()
        return _STATE.pack(self._seed & _MASK, inner["pos"], spare) + key

    def restore(self, state: bytes) -> None:
        """Go on where `state_bytes` was called.  Raises ValueError for other bytes."""
        if len(state) != _STATE.size + 4 * 624:
            raise ValueError("RNG state is wrong size")
        self._seed, position, spare = _STATE.unpack_from(state)
        key = np.frombuffer(state, "<u4", offset=_STATE.size).astype(np.uint32)
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        self._spare = None if math.isnan(spare) else spare

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes, in the engine's own format."""
        return Tensor(np.frombuffer(self.state_bytes(), np.uint8).copy())

    def set_state(self, new_state: Tensor) -> None:
        """Restore a state that `get_state` returned."""
        self.restore(new_state.array.tobytes())

    def words32(self, count: int) -> Array:
        raw: Array = self._bits.random_raw(count)
        return raw.astype(np.uint64, copy=False)

    def words64(self, count: int) -> Array:
        pairs = self.words32(2 * count).reshape(count, 2)
        joined: Array = (pairs[:, 0] << np.uint64(32)) | pairs[:, 1]
        return joined

    def uniform(self, shape: tuple[int, ...], d: xp.NumpyDtype) -> Array:
        """Numbers in [0, 1), as many bits of them as `d` holds."""
        count = math.prod(shape)
        bits = {8: 53, 4: 24}.get(d.itemsize, 11 if d == xp.FLOAT16 else 8)
        words = self.words64(count) if bits == 53 else self.words32(count)
        kept = words & np.uint64((1 << bits) - 1)
        if d is xp.FLOAT32:  # 24 bits are exact
            few = kept.astype(np.float32)
            few *= np.float32(2.0**-24)
            return few.reshape(shape)
        return (kept.astype(np.float64) / float(1 << bits)).astype(d).reshape(shape)

    def normal(self, shape: tuple[int, ...], d: xp.NumpyDtype) -> Array:
        """Numbers of the standard normal distribution."""
        count = math.prod(shape)
        if count >= _BLOCK:
            return self._normal_blocks(count, d).reshape(shape)
        return np.array([self._one_normal() for _ in range(count)], np.float64).astype(d).reshape(shape)

    def _normal_blocks(self, count: int, d: xp.NumpyDtype) -> Array:
        used = np.dtype(np.float64) if d.itemsize == 8 else np.dtype(np.float32)
        values = self.uniform((count,), used)
        whole = count - count % _BLOCK
        values[:whole] = _box_muller(values[:whole])
        if whole < count:
            values[count - _BLOCK :] = _box_muller(self.uniform((_BLOCK,), used))
        return values.astype(d)

    def _one_normal(self) -> float:
        if self._spare is not None:
            value, self._spare = self._spare, None
            return value
        first, second = self.uniform((2,), xp.FLOAT64)
        radius = float(np.sqrt(-2.0 * np.log1p(-second)))
        self._spare = radius * float(np.sin(2.0 * np.pi * first))
        return radius * float(np.cos(2.0 * np.pi * first))

    def integers(self, shape: tuple[int, ...], low: int, high: int) -> Array:
        """Whole numbers in [low, high)."""
        count, span = int(np.prod(shape)), high - low
        words = self.words64(count) if span >= 1 << 32 else self.words32(count)
        return ((words % np.uint64(span)).astype(np.int64) + low).reshape(shape)

    def permutation(self, count: int) -> Array:
        """The numbers below `count` in random order."""
        words = self.words32(max(count - 1, 0))
        numbers: Array = np.arange(count, dtype=np.int64)
        if swap_each.run(8 * count, numbers, words.view(np.int64), count) is not None:
            return numbers
        order = list(range(count))
        steps = words % np.arange(count, 1, -1, dtype=np.uint64)
        for i, step in enumerate(steps.tolist()):
            order[i], order[i + step] = order[i + step], order[i]
        return np.array(order, np.int64)

    def bernoulli(self, shape: tuple[int, ...], p: Any) -> Array:
        """1.0 with probability `p` (a number or an array that broadcasts to the shape), else 0.0.

        Beside probabilities of fewer bits than a float64 has, the numbers drawn are those of a float32, as PyTorch's.
        """
        few = isinstance(p, np.ndarray) and p.dtype.itemsize < 8
        return np.asarray(self.uniform(shape, xp.FLOAT32 if few else xp.FLOAT64) < p).astype(np.float64)


OF_DEVICES: Final[dict[str, type[Generator]]] = {}
"""Device type -> the class of its generators, where that is another one."""


def _box_muller(uniform: Array) -> Array:
    """Normal numbers from uniform ones, block by block: the first half gives radii, the second angles."""
    blocks = uniform.reshape(-1, 2, _BLOCK // 2)
    radius = np.sqrt(-2.0 * np.log1p(-blocks[:, 0]))
    angle = 2.0 * np.pi * blocks[:, 1]
    drawn = np.empty_like(blocks)
    np.multiply(radius, np.cos(angle), drawn[:, 0])
    np.multiply(radius, np.sin(angle), drawn[:, 1])
    return drawn.reshape(-1)


_default: Final = Generator()


def generator(given: Generator | None = None) -> Generator:
    """The generator to use: the given one, or the one everybody shares."""
    return (_CHOSEN.get() or _default) if given is None else given


_CHOSEN: Final[ContextVar[Generator | None]] = ContextVar("generator", default=None)


@contextmanager
def shared(chosen: Generator) -> Iterator[None]:
    """While this lasts, this generator is the one that everybody shares."""
    token = _CHOSEN.set(chosen)
    try:
        yield
    finally:
        _CHOSEN.reset(token)
