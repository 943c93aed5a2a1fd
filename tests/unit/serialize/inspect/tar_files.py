"""Tar files of the first PyTorch, written as it wrote them."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np


class Name:
    """Is pickled as a global name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> str:
        return self.name


class Pickler(pickle._Pickler):  # type: ignore[misc, name-defined]
    def persistent_id(self, value: object) -> str | None:
        return str(value.key) if isinstance(value, Key) else None

    def save_global(self, value: Any, name: str | None = None) -> None:
        self.write(b"ctorch\n" + (name or value.name).encode() + b"\n")

    dispatch: ClassVar = {**pickle._Pickler.dispatch, Name: save_global}


class Key:
    def __init__(self, key: int) -> None:
        self.key = key


def dumped(value: object) -> bytes:
    file = io.BytesIO()
    Pickler(file, 2).dump(value)
    return file.getvalue()


ROWS = np.arange(6, dtype="<f4")
BIG = 1 << 40
STORAGES = b"".join((
    dumped(2), dumped((BIG, "cpu", Name("FloatStorage"))), struct.pack("<q", 6), ROWS.tobytes(),
    dumped((7, "cpu", Name("LongStorage"))), struct.pack("<q", 1), struct.pack("<q", 5), dumped([(8, BIG, 2, 3)]),
))  # fmt: skip


def described(key: int, root: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0) -> bytes:
    numbers = struct.pack(f"<ii{2 * len(size) + 1}q", len(size), 0, *size, *stride, offset)
    return dumped((key, root, Name("FloatTensor"))) + numbers


TENSORS = dumped(3) + described(1, BIG, (2, 3), (3, 1)) + described(2, 7, (1,), (1,)) + described(3, 8, (2,), (1,), 1)
VALUE = {"weight": Key(1), "layers": [Key(2), Key(3)], "epoch": 3}


def members(storages: bytes = STORAGES, tensors: bytes = TENSORS, value: Any = None) -> dict[str, bytes]:
    return {"sys_info": dumped({}), "pickle": dumped(value or VALUE), "tensors": tensors, "storages": storages}


def tarred(contents: dict[str, bytes], format: int = tarfile.USTAR_FORMAT, **facts: Any) -> bytes:
    """A tar file of these; `facts` are those of each member's header, or functions of its bytes that give them."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as tar:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            for fact, said in facts.items():
                setattr(info, fact, said(data) if callable(said) else said)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def saved(path: Path, cut: int = 0, **changes: Any) -> Path:
    data = tarred(members(**changes))
    path.write_bytes(data[: len(data) - cut])
    return path


def headed(data: bytes, name: str, field: slice, said: bytes) -> bytes:
    """The tar file with this in a field of the header of one member, and a checksum that fits."""
    at = next(at for at in range(0, len(data), 512) if data[at : at + 100].rstrip(b"\0") == name.encode())
    header = bytearray(data[at : at + 512])
    header[field] = said.ljust(field.stop - field.start, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return data[:at] + bytes(header) + data[at + 512 :]
