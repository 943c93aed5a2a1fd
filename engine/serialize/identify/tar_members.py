"""The members of a tar file by its headers, for a file that may lie about all of them.

In: a function that gives the bytes of a part of the file.  Out: the regular files in it, each with its place.  A header
gives a size in octal digits or, with the first bit set, as a number of 95 bits; records in front of it (PAX) may give
a size and a name instead, as Python writes them for what takes 8 GiB and more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

_BLOCK: Final = 512
_MAGIC: Final = (257, b"ustar")
_OCTAL: Final = re.compile(rb"[0-7]{1,12}")
_MOST_RECORDS: Final = 64 << 10
"""Bytes of the records of one member that are read."""
_PAX, _LONG_NAME, _REGULAR = b"x", b"L", (b"0", b"\0", b"7")
MOST_MEMBERS: Final = 1000

Read = Callable[[int, int], bytes]
"""The bytes from an offset on, at most so many."""


class Member(NamedTuple):
    """A regular file in the tar file: its bytes begin at `start`, and may end behind the file's end."""

    name: str
    start: int
    size: int


def is_tar(data: bytes) -> bool:
    """True if a header of a tar file begins here."""
    at, magic = _MAGIC
    return data.startswith(magic, at)


def tar_members(read: Read, most: int = MOST_MEMBERS) -> Iterator[Member]:
    """The regular files in it, up to the first header that is none, or the header after `most`."""
    at, records = 0, dict[str, str]()
    for _ in range(most):
        header = read(at, _BLOCK)
        size = _size(header, records.get("size"))
        if len(header) < _BLOCK or not is_tar(header) or size is None:
            return
        start, kind = at + _BLOCK, header[156:157]
        if kind == _PAX:
            records |= _records(read(start, min(size, _MOST_RECORDS)))
        elif kind == _LONG_NAME:
            records["path"] = _text(read(start, min(size, _MOST_RECORDS)))
        else:
            if kind in _REGULAR:
                yield Member(records.get("path") or _text(header[:100]), start, size)
            records = {}
        at = start + -(-size // _BLOCK) * _BLOCK


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode(errors="replace").removeprefix("./")


def _size(header: bytes, stated: str | None) -> int | None:
    field = header[124:136]
    if stated is not None:
        return int(stated) if re.fullmatch("[0-9]{1,18}", stated) else None
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    return int(digits, 8) if _OCTAL.fullmatch(digits) else None


def _records(data: bytes) -> dict[str, str]:
    """`length key=value` and a line's end, one after the other."""
    lines = re.findall(rb"(?:\A|(?<=\n))[0-9]+ (size|path)=([^\n]*)\n", data)
    return {key.decode(): value.decode(errors="replace").removeprefix("./") for key, value in lines}
