"""The format of safetensors: eight bytes of length, a JSON header, the tensors' numbers one behind the other.

In: a path, or arrays by name.  Out: the header, checked against the file, or the file, written in one step.  Numbers
are little-endian; of a dtype that the format has no name for, nothing is written.
"""

from __future__ import annotations

import json
import math
import os
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.aten.values.xp import Array
from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.serialize.container.write import Contents, replace_file
from engine.serialize.pickling.values import DTYPES

LONGEST_HEADER: Final = 100 << 20
_NAMES: Final = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "C64": "complex64",
}  # fmt: skip
"""The format's word for a dtype -> ours."""
_WORDS: Final = {name: word for word, name in _NAMES.items()}
_METADATA: Final = "__metadata__"


class Placed(NamedTuple):
    """A tensor of the file: its bytes begin at `start`, counted from the file's first."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Header:
    tensors: dict[str, Placed]
    metadata: dict[str, str]


def read_header(path: str) -> Header:
    """The contents the header describes.  Raises ArchiveError when header and file do not fit together."""
    total = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else total
        if length > min(total - 8, LONGEST_HEADER):
            raise ArchiveError(f"'{path}' has a header of {length} bytes, which is more than there are")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError):
            raise ArchiveError(f"'{path}' has a header that is no JSON") from None
    if not isinstance(header, dict):
        raise ArchiveError(f"'{path}' has a header that is no table")
    metadata = header.pop(_METADATA, None) or {}
    body = (8 + length, total)
    tensors = {name: _placed(name, entry, body) for name, entry in header.items()}
    at = body[0]
    for name, each in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].size)):
        if each.start < at:
            raise ArchiveError(f"tensor '{name:.80}' overlaps another")
        at = each.start + each.size
    return Header(tensors, {str(k): str(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {})


def _placed(name: str, entry: Any, body: tuple[int, int]) -> Placed:
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        numbers = all(type(n) is int and n >= 0 for n in (*shape, begin, end))
    except (KeyError, TypeError, ValueError):
        raise ArchiveError(f"the header's entry for '{name:.80}' is damaged") from None
    if dtype not in _NAMES:
        raise ArchiveError(f"tensor '{name:.80}' has the unknown dtype {dtype!r:.20}")
    count = 1
    for size in shape if numbers else ():
        count *= size
    if not numbers or len(shape) > 32 or _too_many(shape) or count * DTYPES[_NAMES[dtype]].itemsize != end - begin:
        raise ArchiveError(f"tensor '{name:.80}' has sizes and a place that do not fit each other")
    if body[0] + end > body[1]:
        raise ArchiveError(f"tensor '{name:.80}' lies beyond the end of the file", hints=("the file is cut off",))
    return Placed(_NAMES[dtype], shape, body[0] + begin, end - begin)


def _too_many(shape: Sequence[int]) -> bool:
    """True if no array can have this shape, even an empty one."""
    return math.prod(max(size, 1) for size in shape) >= 1 << 56


def write_safetensors(path: str, arrays: Mapping[str, tuple[str, Array]], metadata: Mapping[str, str]) -> None:
    """Write arrays (name -> dtype's name, numbers) to `path` in one step.  Raises ArchiveError."""
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    # Wider numbers first: so every tensor begins at a multiple of its own width.
    order = sorted(arrays, key=lambda name: -arrays[name][1].itemsize)
    at = 0
    for name in order:
        dtype, array = arrays[name]
        if dtype not in _WORDS:
            raise ArchiveError(f"'{name}' has dtype {dtype}, which safetensors cannot hold", hints=("write to a .npz",))
        header[name] = {"dtype": _WORDS[dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    replace_file(path, _pieces(text, [arrays[name][1] for name in order]))


def _pieces(header: bytes, arrays: list[Array]) -> Iterator[Contents]:
    yield struct.pack("<Q", len(header)) + header
    for array in arrays:
        flat = np.ascontiguousarray(array).reshape(-1)
        if sys.byteorder == "big":
            flat = flat.byteswap()
        if flat.size:
            yield flat.view(np.uint8).data
