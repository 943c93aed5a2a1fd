"""Flat images: native code as a file that is mapped and run, without llvmlite and without a compiler.

In: an `Image`, or the bytes of one.  Out: its bytes, or the `Image`; raises ImageError for bytes that are none.

A file is a header of `_HEADER` (kind of file, digest of all that follows, numbers), the key (text), names and places of
what the image offers and what it needs, then from the next page on code and constants, and from the next page after
them data.  Nothing in it is an object of Python, and nothing is an address.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from engine.fuser.images.objects import PAGES, ImageError
from engine.lang.records import dataclass

MAGIC: Final = b"tsrepl library 1"
_DIGEST: Final = slice(16, 48)
_HEADER: Final = struct.Struct("<16s32s10I")
_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Image:
    """Code and data that belong at addresses that far apart, `page` being what they begin at multiples of.

    `key` says what the code is for and made of.  `exports` are places by symbol; of `imports`, the address of each
    symbol is added to the word at a place, as is the image's own to the words at `relatives`.  Places count from the
    beginning of the code; `zeros` is the memory behind the data.
    """

    key: str
    page: int
    code: bytes | memoryview
    data: bytes | memoryview
    zeros: int
    exports: Mapping[str, int]
    imports: tuple[tuple[str, int], ...]
    relatives: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def size(self) -> int:
        """Bytes of memory, in whole pages."""
        return _rounded(len(self.code) + len(self.data) + self.zeros, self.page)


def to_bytes(image: Image) -> bytes:
    """The file of an image."""
    names = "\n".join(image.exports), "\n".join(name for name, _ in image.imports)
    texts = [each.encode() for each in (image.key, *names)]
    places = [*image.exports.values(), *(place for _, place in image.imports), *image.relatives.tolist()]
    counts = len(image.exports), len(image.imports), len(image.relatives)
    sizes = len(image.code), len(image.data), image.zeros
    numbers = (image.page, *map(len, texts), *counts, *sizes)
    body = b"".join((struct.pack("<10I", *numbers), *texts, struct.pack(f"<{len(places)}I", *places)))
    padding = bytes(-(_DIGEST.stop + len(body)) % image.page)
    rest = b"".join((body, padding, image.code, image.data))
    return MAGIC + hashlib.sha256(rest).digest() + rest


def from_bytes(file: memoryview) -> tuple[Image, int]:
    """The image in a file, of which code and data are views, and where in it the code is."""
    try:
        return _from_bytes(file)
    except (struct.error, ValueError) as error:
        raise ImageError(f"the image's header makes no sense: {error}") from error


def _from_bytes(file: memoryview) -> tuple[Image, int]:
    if len(file) < _HEADER.size or bytes(file[:16]) != MAGIC:
        raise ImageError("no image of this kind")
    if hashlib.sha256(file[_DIGEST.stop :]).digest() != bytes(file[_DIGEST]):
        raise ImageError("the image is not as it was written")
    _, _, page, *numbers = _HEADER.unpack_from(file)
    lengths, counts, (code, data, zeros) = numbers[:3], numbers[3:6], numbers[6:]
    at = _HEADER.size
    texts = []
    for length in lengths:
        texts.append(bytes(file[at : at + length]).decode())
        at += length
    begin = _rounded(at + 4 * sum(counts), page) if page in PAGES.values() else 0
    if begin == 0 or begin + code + data != len(file) or code % page:
        raise ImageError("the parts of the image are not where they should be")
    places = np.frombuffer(file, "<u4", sum(counts), at).astype(np.int64)
    exported, imported, relatives = np.split(places, np.cumsum(counts)[:2])
    exports = dict(zip(_names(texts[1]), exported.tolist(), strict=True))
    imports = tuple(zip(_names(texts[2]), imported.tolist(), strict=True))
    words = np.concatenate((imported, relatives))
    if (words % _WORD).any() or (words < code).any() or (words + _WORD > code + data).any():
        raise ImageError("the image has addresses outside its data")
    if (exported > code + data + zeros).any():
        raise ImageError("the image offers what is outside it")
    parts = file[begin : begin + code], file[begin + code :]
    return Image(texts[0], page, *parts, zeros, exports, imports, relatives), begin


def _names(text: str) -> list[str]:
    return text.split("\n") if text else []


def _rounded(size: int, page: int) -> int:
    return -(-size // page) * page
