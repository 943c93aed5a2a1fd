"""Operators on strings.

In: Python strs.  Out: strs, lists of them, numbers.  A program's string is UTF-8 bytes, so everything counts and cuts
bytes; plain ASCII, where that makes no difference, takes the short way.  Bytes that are no UTF-8 are lone surrogates
inside a str (Python's `surrogateescape`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from engine.aten.dispatch.table import op
from engine.aten.formatting.values import from_bytes, length, normal, to_bytes
from engine.aten.kernels.memory import check_memory
from engine.aten.values.arithmetic import slice_of
from engine.aten.values.xp import UINT8
from engine.lang.deferred import pattern_of
from engine.lang.errors import OperatorError, OperatorIndexError

# ------------------------------------------------------------------ one string to another, and questions about it


def bytewise(name: str) -> Callable[..., Any]:
    """The method that str and bytes share: on the str if that is ASCII, else on its bytes."""
    on_text, on_bytes = getattr(str, name), getattr(bytes, name)

    def body(text: str, *more: str) -> Any:
        if text.isascii() and (not more or all(map(str.isascii, more))):
            return on_text(text, *more)
        return _back(on_bytes(to_bytes(text), *map(to_bytes, more)))

    return body


def _back(result: Any) -> Any:
    if isinstance(result, bytes):
        return from_bytes(result)
    return tuple(map(_back, result)) if isinstance(result, tuple) else result


def is_identifier(text: str) -> bool:
    """Letters and digits, no underscore, and no digit first."""
    return to_bytes(text).isalnum() and not text[0].isdigit()


def is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable()


def is_space(text: str) -> bool:
    return to_bytes(text).isspace()


for _name in ("upper", "lower", "capitalize", "title", "swapcase"):
    op(f"aten::{_name}(str self) -> str", python=bytewise(_name))
for _name in ("strip", "lstrip", "rstrip"):
    op(f'aten::{_name}(str self, str chars=" \\n\\t\\f\\v") -> str', python=bytewise(_name))
for _name, _body in (
    ("isalnum", bytewise("isalnum")),
    ("isalpha", bytewise("isalpha")),
    ("isdecimal", bytewise("isdigit")),
    ("isdigit", bytewise("isdigit")),
    ("isidentifier", is_identifier),
    ("islower", bytewise("islower")),
    ("isnumeric", bytewise("isdigit")),
    ("isprintable", is_printable),
    ("isspace", is_space),
    ("istitle", bytewise("istitle")),
    ("isupper", bytewise("isupper")),
):
    op(f"aten::{_name}(str self) -> bool", python=_body)

# ------------------------------------------------------------------ places


def getitem(text: str, index: int) -> str:
    try:
        if text.isascii():
            return text[index]
        return from_bytes(to_bytes(text)[index].to_bytes())
    except IndexError:
        raise OperatorIndexError(
            "string index out of range", hints=(f"index {index} of a string of {length(text)} bytes",)
        ) from None


def get_slice(text: str, start: int | None, end: int | None, step: int) -> str:
    part = slice_of(start, end, step)
    return text[part] if text.isascii() else from_bytes(to_bytes(text)[part])


def concatenate(a: str, b: str) -> str:
    return normal(a + b)


op("aten::add.str(str a, str b) -> str", python=concatenate)
op("aten::len.str(str s) -> int", python=length)
op("aten::__getitem__.str(str s, int index) -> str", python=getitem)
op("prim::StringIndex(str string, int index) -> str", python=getitem)
op("aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str", python=get_slice)

# ------------------------------------------------------------------ searching


def _window(size: int, start: int, end: int) -> tuple[int, int]:
    """Start and end of a search; negative ones count from the back, and an end of -1 is the end of the string."""
    if start < 0:
        start = max(0, size + start)
    return start, max(0, size + end + 1) if end < 0 else end


def _check_start(size: int, start: int) -> None:
    if start > size:
        raise OperatorError(f"a search cannot start at {start} in a string of {size} bytes")


def finder(name: str) -> Callable[[str, str, int, int], int]:
    """`find` or `rfind`."""
    search = getattr(bytes, name)

    def body(text: str, part: str, start: int, end: int) -> int:
        data, sub = to_bytes(text), to_bytes(part)
        start, end = _window(len(data), start, end)
        if end <= start:
            return -1 if sub else start
        _check_start(len(data), start)
        place: int = search(data[start:end], sub)
        return start + place if place >= 0 else -1

    return body


def or_refuse(find: Callable[[str, str, int, int], int]) -> Callable[[str, str, int, int], int]:
    """`index` and `rindex`: like `find` and `rfind`, but raise where those answer -1."""

    def body(text: str, part: str, start: int, end: int) -> int:
        place = find(text, part, start, end)
        if place < 0:
            raise OperatorError("ValueError: substring not found")
        return place

    return body


def count(text: str, part: str, start: int, end: int) -> int:
    """Occurrences that begin before `end`, one after another."""
    data, sub = to_bytes(text), to_bytes(part)
    start, end = _window(len(data), start, end)
    if not part and start < end:
        raise OperatorError("count of an empty string", hints=("the string to count must not be empty",))
    found, place = 0, data.find(sub, start)
    while 0 <= place < end:
        found, place = found + 1, data.find(sub, place + len(sub))
    return found


def affix(name: str) -> Callable[[str, str, int, int], bool]:
    """`startswith` or `endswith`."""
    test = getattr(bytes, name)

    def body(text: str, part: str, start: int, end: int) -> bool:
        data = to_bytes(text)
        start, end = _window(len(data), start, end)
        _check_start(len(data), start)
        return bool(test(data[start:] if end < start else data[start:end], to_bytes(part)))

    return body


_FINDERS: Final = {
    "find": finder("find"),
    "rfind": finder("rfind"),
    "index.str": or_refuse(finder("find")),
    "rindex": or_refuse(finder("rfind")),
    "count": count,
}
for _name, _body in _FINDERS.items():
    op(f"aten::{_name}(str self, str substr, int start=0, int end=-1) -> int", python=_body)
for _name in ("startswith", "endswith"):
    op(f"aten::{_name}(str self, str substr, int start=0, int end=-1) -> bool", python=affix(_name))

# ------------------------------------------------------------------ splitting and joining

_LINE_ENDS: Final = pattern_of(b"[\n\r\v\f\x1c\x1d\x1e\x80\x85\xa8\xa9\xe2]")
_SPACES: Final = pattern_of(b"[ \t\n\r\v\f\x1c\x1d\x1e\x80\x85\xa8\xa9\xe2]+")
"""Python's separators as UTF-8 bytes, each of which separates."""


def _separator(text: str) -> bytes:
    if not text:
        raise OperatorError("ValueError: empty separator")
    return to_bytes(text)


def split(text: str, separator: str | None, most: int) -> list[str]:
    """At the separator, at most so often; without one at all white space."""
    if separator is None:
        return [from_bytes(word) for word in _SPACES.split(to_bytes(text)) if word]
    if separator and text.isascii():
        return text.split(separator, most)
    return [from_bytes(piece) for piece in to_bytes(text).split(_separator(separator), most)]


def rsplit(text: str, separator: str, most: int) -> list[str]:
    """From the end; an empty separator is found behind the text as often as may be."""
    if not separator and most >= 0:
        return [text, *[""] * most]
    return [from_bytes(piece) for piece in to_bytes(text).rsplit(_separator(separator), most)]


def splitlines(text: str, keepends: bool) -> list[str]:
    """The lines; with `keepends` each line end is an element of its own."""
    data, lines, start = to_bytes(text), [], 0
    for match in _LINE_ENDS.finditer(data):
        lines.append(data[start : match.start()])
        if keepends:
            lines.append(match.group())
        start = match.end()
    if start < len(data):
        lines.append(data[start:])
    return [from_bytes(line) for line in lines]


def partition(text: str, separator: str) -> tuple[str, str, str]:
    return bytewise("partition")(text, separator) if separator else ("", "", text)


def rpartition(text: str, separator: str) -> tuple[str, str, str]:
    return bytewise("rpartition")(text, separator) if separator else (text, "", "")


def join(separator: str, values: list[str]) -> str:
    return normal(separator.join(values))


def replace(text: str, old: str, new: str, most: int) -> str:
    if not old and most >= 0:
        return normal(new * most + text)
    if not old:
        raise OperatorError("replace of an empty string", hints=("the string to replace must not be empty",))
    return (
        normal(text.replace(old, new, most))
        if text.isascii()
        else from_bytes(to_bytes(text).replace(to_bytes(old), to_bytes(new), most))
    )


op("aten::split.str(str self, str? separator=None, int max=-1) -> str[]", python=split)
op('aten::rsplit(str self, str separator=" ", int max=-1) -> str[]', python=rsplit)
op("aten::splitlines(str self, bool keepends=False) -> str[]", python=splitlines)
op("aten::partition(str self, str separator) -> (str, str, str)", python=partition)
op("aten::rpartition(str self, str separator) -> (str, str, str)", python=rpartition)
op("aten::join(str self, str[] values) -> str", python=join)
op("aten::replace(str self, str old, str new, int max=-1) -> str", python=replace)

# ------------------------------------------------------------------ padding


def padder(name: str) -> Callable[[str, int, str], str]:
    """`center`, `ljust` or `rjust`."""
    pad = getattr(bytes, name)

    def body(text: str, width: int, fill: str) -> str:
        if length(fill) != 1:
            raise OperatorError("TypeError: The fill character must be exactly one character long")
        check_memory((max(width, 0),), UINT8)
        return from_bytes(pad(to_bytes(text), width, to_bytes(fill)))

    return body


def zfill(text: str, width: int) -> str:
    """Zeros before everything, a sign too."""
    check_memory((max(width, 0),), UINT8)
    return from_bytes(to_bytes(text).rjust(width, b"0"))


def expandtabs(text: str, tabsize: int) -> str:
    """Tabs as spaces; only a newline begins a new line."""
    lines = to_bytes(text).split(b"\n")
    return from_bytes(b"\n".join(_expanded(line, tabsize) for line in lines))


def _expanded(line: bytes, tabsize: int) -> bytes:
    if tabsize <= 0:
        return line.replace(b"\t", b"")
    first, *rest = line.split(b"\t")
    for piece in rest:
        first += b" " * (tabsize - len(first) % tabsize) + piece
    return first


for _name in ("center", "ljust", "rjust"):
    op(f'aten::{_name}(str self, int width, str fillchar=" ") -> str', python=padder(_name))
op("aten::zfill(str self, int width) -> str", python=zfill)
op("aten::expandtabs(str self, int tabsize=8) -> str", python=expandtabs)
