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
_HALF: Final = np.uint64(32)
_PRECISE: Final = np.uint64((1 << 53) - 1)
"""The bits of a word that a float64 has."""


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
        words = self.words32(2 * count)
        joined: Array = words[::2] << _HALF
        joined |= words[1::2]
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

    def normal(self, shape: tuple[int, ...], d: xp.NumpyDtype, mean: float = 0.0, std: float = 1.0) -> Array:
        """Numbers of a normal distribution, rounded to `d` once they are scaled; from 16 on they come in blocks."""
        count = math.prod(shape)
        if count >= _BLOCK:
            return (self._normal_blocks(count, d) * std + mean).astype(d, copy=False).reshape(shape)
        return (self.normals(count) * std + mean).astype(d).reshape(shape)

    def _normal_blocks(self, count: int, d: xp.NumpyDtype) -> Array:
        """The last block is drawn anew if it is not whole, of half types without what went before."""
        used = xp.FLOAT64 if d.itemsize == 8 else xp.FLOAT32
        whole = count - count % _BLOCK
        values = np.empty(count, used)
        first = whole if d in xp.HALVES else count
        values[:first] = self.uniform((first,), used)
        values[:whole] = _box_muller(values[:whole])
        if whole < count:
            values[count - _BLOCK :] = _box_muller(self.uniform((_BLOCK,), used))
        return values

    def normals(self, count: int) -> Array:
        """Float64 numbers of the standard normal distribution, drawn in pairs; one that is left over comes next."""
        spare = [] if self._spare is None or not count else [self._spare]
        pairs = self.uniform(((count - len(spare) + 1) // 2, 2), xp.FLOAT64)
        radius, angle = np.sqrt(-2.0 * np.log1p(-pairs[:, 1])), 2.0 * np.pi * pairs[:, 0]
        drawn = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
        values = np.concatenate([spare, drawn])
        if count:
            self._spare = float(values[count]) if values.size > count else None
        return values[:count]

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
        if isinstance(p, float):
            return self.chosen(shape, p).astype(np.float64)
        few = p.dtype.itemsize < 8
        return np.asarray(self.uniform(shape, xp.FLOAT32 if few else xp.FLOAT64) < p).astype(np.float64)

    def chosen(self, shape: tuple[int, ...], p: float) -> Array:
        """True with that probability: where `uniform` of float64 would draw less, by the bits that it draws."""
        words = self.words64(math.prod(shape))
        words &= _PRECISE
        return (words < math.ceil(p * (int(_PRECISE) + 1))).reshape(shape)


class Stream:
    """Single numbers of a generator, drawn many at a time; `close` gives back those that nobody took."""

    __slots__ = ("_before", "_count", "_next", "_source", "_values")

    def __init__(self, source: Generator, count: int) -> None:
        """`count` is about the number of uniform numbers that will be taken."""
        self._source, self._count = source, max(count, 16)
        self._draw()

    def _draw(self) -> None:
        self._before, self._next = self._source.state_bytes(), 0
        self._values: list[float] = self._source.uniform((self._count,), xp.FLOAT64).tolist()

    def uniform(self) -> float:
        """A float64 number in [0, 1)."""
        if self._next == len(self._values):
            self._draw()
        self._next += 1
        return self._values[self._next - 1]

    def normal(self) -> float:
        """A float64 number of the standard normal distribution; every other one was made with the one before."""
        source = self._source
        if source._spare is not None:
            value, source._spare = source._spare, None
            return value
        angle, radius = 2.0 * math.pi * self.uniform(), math.sqrt(-2.0 * math.log1p(-self.uniform()))
        source._spare = radius * math.sin(angle)
        return radius * math.cos(angle)

    def close(self) -> None:
        spare = self._source._spare
        self._source.restore(self._before)
        self._source.words64(self._next)
        self._source._spare = spare


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
