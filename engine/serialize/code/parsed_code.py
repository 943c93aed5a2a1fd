"""Records of code as trees.

In: the text of a record, its debug record.  Out: what it defines, by name.  Archives share records: the layers of
`torch.nn` are the same in many, and a program that loads a file again reads the same code again.  Trees are never
changed, so what was read last is kept (`PARSED`), by the contents of both records, and given to the next.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from engine.frontend.syntax.parser import parse_program
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import ClassDef, Def
from engine.ir.unit import DEFINING
from engine.lang.deferred import pattern_of
from engine.lang.errors import ArchiveError, CompileError
from engine.lang.source import Source
from engine.serialize.code.debug_records import lazy_finder
from engine.serialize.container.read import StoredRecord

DebugRecord = bytes | StoredRecord | None
"""A debug record, which may still have to be inflated."""
KEPT: Final = 1 << 18
"""Characters and bytes of records whose trees are kept: trees take some thirty times as much once all is looked at."""


class ParsedCode:
    """The trees of the records that were parsed last, `limit` characters and bytes of these."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[str, str, DebugRecord], Mapping[str, Tree]] = OrderedDict()
        self._size = 0

    def definitions(self, text: str, record: str, debug: DebugRecord) -> Mapping[str, Tree]:
        """The definitions in a record of code by name; `debug` is its debug record.  Raises ArchiveError."""
        key = text, record, debug
        with DEFINING:
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = {_name_of(tree): tree for tree in parse_code(text, record, debug)}
                self._size += _size_of(key)
                while self._size > self._limit:
                    self._size -= _size_of(self._known.popitem(last=False)[0])
            else:
                self._known.move_to_end(key)
        return known


PARSED: Final = ParsedCode(KEPT)


def _size_of(key: tuple[str, str, DebugRecord]) -> int:
    text, _, debug = key
    return len(text) + (0 if debug is None else len(debug))


def _name_of(tree: Tree) -> str:
    return ClassDef(tree).name if tree.kind == "class_def" else Def(tree).name


_HEADER_LINE: Final = pattern_of(r"[ \t]*(?:op_version_set[ \t]*=[ \t]*\d+|import[ \t]+[\w.]+)?[ \t;]*\r?(?:\n|\Z)")
"""A line before the code of PyTorch 1.0 to 1.3: the archive's version, or a record whose names the code uses."""


def parse_code(text: str, record: str, debug: DebugRecord) -> list[Tree]:
    """The definitions in a record of code; `debug` is its debug record.  Raises ArchiveError."""
    text = _without_header(text)
    original = None if debug is None else lazy_finder(_reader(debug), f"{record}.debug_pkl")
    try:
        return parse_program(Source(text, record, original=original, is_generated=True), lazy=True)
    except CompileError as error:
        offset = None if error.range is None else error.range.start
        raise ArchiveError(f"the code cannot be read: {error}", record=record, offset=offset) from error


def _reader(debug: bytes | StoredRecord) -> Callable[[], bytes]:
    return debug.read if isinstance(debug, StoredRecord) else lambda: debug


def _without_header(text: str) -> str:
    """The code, its header blank: what the header says is known, and debug records count every byte."""
    at = 0
    while at < len(text) and (line := _HEADER_LINE.match(text, at)) is not None:
        at = line.end()
    return "".join(char if char == "\n" else " " for char in text[:at]) + text[at:]
