"""Kinds of files that their first bytes tell: tables of magic numbers, and a few formats that have none.

In: a file's head.  Out: a `Finding`, or None for a file that a rule does not know.
"""

from __future__ import annotations

import bz2
import codecs
import json
import lzma
import re
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from engine.lang.counts import some_of
from engine.serialize.identify.kinds import KINDS, Finding, Head
from engine.serialize.identify.tar_members import is_tar, tar_members

_STARTS: Final[tuple[tuple[int, bytes, Finding], ...]] = (
    (0, b"GGUF", Finding("gguf")),
    (0, b"\x89HDF\r\n\x1a\n", Finding("keras-h5")),
    (0, b"\x93NUMPY", Finding("npy")),
    (4, b"TFL3", Finding("tflite")),
    (4, b"ET12", Finding("executorch")),
    (0, b"lmgg", Finding("ggml")),
    (0, b"tjgg", Finding("ggml")),
    (0, b"fmgg", Finding("ggml")),
    (0, b"ftrt", Finding("tensorrt")),
    (0, b"ptrt", Finding("tensorrt")),
    (0, b"\4\0\0\0\1\0\0\0\3\0\0\0V 1", Finding("torch7")),
    (0, b"7767517\n", Finding("ncnn")),
    (0, b"\xff\xd8\xff", Finding("media", title="a JPEG picture")),
    (0, b"\x89PNG\r\n\x1a\n", Finding("media", title="a PNG picture")),
    (0, b"GIF8", Finding("media", title="a GIF picture")),
    (0, b"%PDF-", Finding("media", title="a PDF document")),
    (0, b"ID3", Finding("media", title="sound (MP3)")),
    (0, b"OggS", Finding("media", title="sound (Ogg)")),
    (0, b"fLaC", Finding("media", title="sound (FLAC)")),
    (8, b"WAVE", Finding("media", title="sound (WAV)")),
    (8, b"WEBP", Finding("media", title="a WebP picture")),
    (4, b"ftyp", Finding("media", title="a film or sound (MP4)")),
    (0, b"\x7fELF", Finding("executable", title="a program or library for Linux (ELF), and no model")),
    (0, b"\xcf\xfa\xed\xfe", Finding("executable", title="a program or library for macOS, and no model")),
    (0, b"MZ\x90\0", Finding("executable", title="a program or library for Windows, and no model")),
)  # fmt: skip
"""Offset of the bytes, the bytes, the finding."""


def _xz_head(data: bytes) -> bytes:
    """Up to 1024 bytes of the contents; the file states the memory it needs, which is limited here."""
    return lzma.LZMADecompressor(memlimit=_MOST_MEMORY).decompress(data, 1024)


_MOST_MEMORY: Final = 256 << 20
_COMPRESSED: Final[tuple[tuple[bytes, str, str, Callable[[bytes], bytes] | None], ...]] = (
    (b"\x1f\x8b", "gzip", "gunzip -c {file} > unpacked.pt", lambda data: zlib.decompressobj(31).decompress(data, 1024)),
    (b"BZh", "bzip2", "bunzip2 -c {file} > unpacked.pt", lambda data: bz2.BZ2Decompressor().decompress(data, 1024)),
    (b"\xfd7zXZ\0", "xz", "xz -dc {file} > unpacked.pt", _xz_head),
    (b"\x5d\0\0", "lzma", "xz --format=lzma -dc {file} > unpacked.pt", _xz_head),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc {file} > unpacked.pt", None),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x {file}", None),
    (b"Rar!\x1a\x07", "rar", "unrar x {file}", None),
)  # fmt: skip
"""First bytes of a compressed file, its format's name, the command that unpacks it, a function to read its start."""

_BOM: Final = b"\xef\xbb\xbf"
_MARKED: Final = ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
                  (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))  # fmt: skip
_POINTER: Final = re.compile(rb"\s*+version https://(git-lfs|hawser)\.github\.com/spec/v")
# Quantifiers are possessive: with backtracking, a few kilobytes of comments would take years.
_HTML: Final = re.compile(
    rb"\s*+(?:<\?xml\b[^>]*+>\s*+)?+(?:<!--(?>.*?-->)\s*+)*+"
    rb"<(?:!doctype\s+html|html|head|body|title|meta|link|style|script|div|center|h1|p|table|iframe)\b"
    rb"|\s*+<!--(?>(?!-->).)*+\Z",
    re.I | re.S,
)
_TITLE: Final = re.compile(rb"<title\b[^>]{0,200}+>([^<]{0,400})", re.I)
_SERVER_ERROR: Final = re.compile(
    rb'\s*(<\?xml[^>]*>\s*)?(<Error>|\{\s*"(error|message|detail)"|Entry not found|Invalid username or password'
    rb"|Repository not found|Access to model|(404|403|401|Not Found|Forbidden|Unauthorized)\b)", re.I,
)  # fmt: skip
_SOURCE: Final = re.compile(r"^(def|class|import|from|@\w|async def) ?\w", re.M)
_PICKLE_TEXT: Final = re.compile(rb"(\(dp\d+\n|\(lp\d+\n|c[\w.]+\n\w+\n(p\d+\n|\())")
"""First bytes of pickles of protocol 0, which is text: a dict, a list, an instance."""
_LONGEST_FACT: Final = 160
_LONGEST_JSON: Final = 16 << 20


def nothing_in_it(head: Head) -> Finding | None:
    if head.size == 0:
        return Finding("empty")
    return Finding("zeros") if not head.data.strip(b"\0") else None


def known_start(head: Head) -> Finding | None:
    found = next((each for at, magic, each in _STARTS if head.data.startswith(magic, at)), None)
    if found is None:
        return None
    if found.kind == "gguf" and len(head.data) >= 8:
        return found._replace(facts=(("version", str(struct.unpack_from("<I", head.data, 4)[0])),))
    return found


def _pointer_facts(data: bytes) -> tuple[tuple[str, str], ...]:
    size = re.search(rb"^size (\d{1,18})\r?$", data, re.M)
    return (("the real file has", f"{int(size[1]):,} bytes"),) if size else ()


def compressed(head: Head) -> Finding | None:
    """The finding for a compressed file, with the kind of its contents where Python can decompress it."""
    row = next((row for row in _COMPRESSED if head.data.startswith(row[0])), None)
    if row is None:
        return None
    _, name, advice, opened = row
    try:
        inside = b"" if opened is None else opened(head.data)
    except (zlib.error, OSError, ValueError, lzma.LZMAError, EOFError, MemoryError):
        inside = b""
    facts = [("format", name)]
    if is_tar(inside):
        return Finding("compressed", (*facts, ("inside", "a tar file")), advice=("unpack it first: tar -xf {file}",))
    begun = Head(head.path, inside, len(inside))
    found = known_start(begun) or told_as_text(begun)
    if inside.startswith(b"PK\3\4"):
        facts.append(("inside", "a zip file, as PyTorch writes"))
    elif found is not None:
        facts.append(("inside", found.title or KINDS[found.kind].title))
    return Finding("compressed", tuple(facts), advice=(f"unpack it first: {advice}",))


def safetensors(head: Head) -> Finding | None:
    """Eight bytes of length, then a JSON header of that length."""
    if len(head.data) < 10 or head.data[8:9] != b"{":
        return None
    (length,) = struct.unpack_from("<Q", head.data)
    if not 2 <= length <= 100 << 20:
        return None
    with open(head.path, "rb") as file:
        file.seek(8)
        text = file.read(length)
    if len(text) < length:
        return _cut("safetensors", f"its header wants {length:,} bytes, and {len(text):,} are there")
    try:
        header = json.loads(text)
        entries = {name: each for name, each in header.items() if name != "__metadata__"}
        end = max((int(each["data_offsets"][1]) for each in entries.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None
    if 8 + length + end > head.size:
        return _cut("safetensors", f"its header speaks of {8 + length + end:,} bytes, and {head.size:,} are there")
    return Finding("safetensors", (("tensors", f"{len(entries):,}"), *_metadata(header.get("__metadata__"))))


def _cut(what: str, damage: str) -> Finding:
    return Finding("truncated", (("damage", damage),), f"a {what} file that is cut off")


def _metadata(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not value:
        return ()
    return (("metadata", clipped(", ".join(f"{key}={each}" for key, each in value.items()))),)


def tar(head: Head) -> Finding | None:
    """A tar file; PyTorch's first format was one with four members of known names."""
    if not is_tar(head.data):
        return None
    with open(head.path, "rb") as file:
        names = [member.name for member in tar_members(partial(_part, file, head.size), _MOST_NAMES)]
    if {"pickle", "storages", "tensors"} <= set(names):
        return Finding("torch-tar", (("members", ", ".join(names)),))
    return Finding("tar", (("members", clipped(", ".join(names))),))


def _part(file: IO[bytes], end: int, start: int, size: int) -> bytes:
    file.seek(min(start, end))
    return file.read(size)


_MOST_NAMES: Final = 40
"""Headers of a tar file that are read to tell whether it is one of PyTorch."""


# -- ONNX: a protobuf message without any magic number

_ONNX_FIELDS: Final = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
"""Field number of ModelProto -> its wire type."""


def onnx(head: Head) -> Finding | None:
    """True if the fields are those of an ONNX ModelProto: an IR version first, then a graph or operator set."""
    if not head.data.startswith(b"\x08"):
        return None
    facts: dict[str, str] = {}
    seen: set[int] = set()
    at, data = 0, head.data
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if _ONNX_FIELDS.get(number) != wire:
            return None
        value, at = _varint(data, at)
        seen.add(number)
        if wire == 0:
            facts |= {"IR version": str(value)} if number == 1 else {}
            continue
        if at + value > head.size:
            return _cut("ONNX", "its graph goes on behind the end of the file") if number == 7 else None
        if number in (2, 3) and value < 100:
            name = "made by" if number == 2 else "its version"
            facts[name] = data[at : at + value].decode(errors="replace")
        at += value
    return Finding("onnx", tuple(facts.items())) if 1 in seen and seen & {7, 8} else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends; one that does not fit is no field that anybody knows."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at
    return 0, len(data)


# -- text


def text(head: Head) -> Finding | None:
    """Text: a web page, a server's answer, a program, or something else."""
    if (found := told_as_text(head)) is not None:
        return found
    data = _plain(head.data)
    try:
        decoded = data.decode()
    except UnicodeDecodeError as error:
        if error.start < len(data) - 4 or head.size <= len(head.data):
            return None
        decoded = data[: error.start].decode()
    if any(ord(c) < 32 and c not in "\t\n\r\f\x1b" for c in decoded):
        return None
    said = clipped(" ".join(decoded.split()))
    if _SERVER_ERROR.match(data) and head.size < 1 << 14:
        return Finding("error-text", (("says", said),))
    if data[:1] == b"{" and (found := _json(head)) is not None:
        return found
    return Finding("source") if _SOURCE.search(decoded) else Finding("text", (("says", said),))


def told_as_text(head: Head) -> Finding | None:
    """A finding that the first words give, in whatever way they are encoded: web pages, pointers, pickles of text."""
    data = _plain(head.data)
    if _POINTER.match(data):
        return Finding("lfs-pointer", _pointer_facts(data))
    if _HTML.match(data):
        title = _TITLE.search(data)
        said = " ".join(title[1].decode(errors="replace").split()) if title else ""
        return Finding("html", (("says", clipped(said)),) if said else ())
    if _PICKLE_TEXT.match(data) and data.rstrip().endswith(b"."):
        return Finding("pickle", (("protocol", "0"),))
    return None


def _plain(data: bytes) -> bytes:
    """The text in UTF-8, without the mark that some editors begin it with."""
    encoding = next((name for mark, name in _MARKED if data.startswith(mark)), None)
    if encoding is None:
        return data.removeprefix(_BOM)
    return data.decode(encoding, errors="replace").lstrip("\ufeff").encode(errors="replace")


def _json(head: Head) -> Finding | None:
    """Text that programs read; that of one kind says in which files a model's weights lie."""
    if head.size > _LONGEST_JSON:
        return None
    try:
        value = json.loads(Path(head.path).read_bytes())
    except (ValueError, RecursionError, OSError):
        return None
    places = value.get("weight_map") if isinstance(value, dict) else None
    if isinstance(places, dict) and places and all(isinstance(each, str) for each in places.values()):
        files = list(dict.fromkeys(places.values()))
        shown = clipped(some_of(files, 4))
        return Finding("weights-index", (("tensors", f"{len(places):,}"), ("files", shown)))
    return Finding("text", (("says", clipped(" ".join(json.dumps(value).split()))),), "text of a program (JSON)")


def clipped(said: str) -> str:
    """The text, on one line that is not too long."""
    shown = "".join(c if c.isprintable() else "·" for c in said)
    return shown if len(shown) <= _LONGEST_FACT else shown[: _LONGEST_FACT - 1] + "…"
