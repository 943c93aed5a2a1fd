"""Hashes of values, equal to those that TorchScript programs see.

In: a value.  Out: a signed 64-bit number.  Strings and floats hash as GNU's C++ library hashes their bytes.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from engine.aten.formatting.values import to_bytes, type_name
from engine.aten.values.arithmetic import wrap
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError
from engine.lang.scalars import DEVICE_TYPES, device

_MASK: Final = 2**64 - 1
_MUL: Final = 0xC6A4A7935BD1E995
_SEED: Final = 0xC70F6907


def hash_value(value: Any) -> int:
    """Raises OperatorError for unhashable values (lists, dicts, complex numbers)."""
    return wrap(_hash(value))


def _hash(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return hash_bytes(to_bytes(value))
    if isinstance(value, float):
        return hash_bytes(struct.pack("<d", value)) if value != 0 else 0
    if isinstance(value, tuple):
        return _hash_tuple(value)
    if isinstance(value, device):
        index = -1 if value.index is None else value.index
        return (DEVICE_TYPES[value.type] << 16 | (index & 0xFF)) & 0xFFFFFFFF
    if isinstance(value, Tensor):
        return id(value)
    raise OperatorError(f"unhashable type: '{type_name(value)}'")


def _hash_tuple(values: tuple[Any, ...]) -> int:
    seed = 0
    for value in values:
        seed ^= (_hash(value) + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & _MASK
        seed &= _MASK
    return seed


def hash_bytes(data: bytes, seed: int = _SEED) -> int:
    """MurmurHash64A of the bytes."""
    h = seed ^ (len(data) * _MUL & _MASK)
    whole = len(data) & ~7
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        h = (h ^ _shift_mix(word * _MUL & _MASK) * _MUL & _MASK) * _MUL & _MASK
    rest = data[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * _MUL & _MASK
    return _shift_mix(_shift_mix(h) * _MUL & _MASK)


def _shift_mix(h: int) -> int:
    return h ^ (h >> 47)
