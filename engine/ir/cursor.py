"""A place in the text of a graph: skips space and comments, matches patterns, says where it is.

In: a `Source`.  Out: the pieces that `engine.ir.parser` asks for.
"""

from __future__ import annotations

import re
from typing import Final

from engine.lang.deferred import pattern_of
from engine.lang.errors import IRError
from engine.lang.source import Source, SourceRange

_SPACE: Final = pattern_of(r"(?:\s+|#[^\n]*)*")
_QUOTED: Final = pattern_of(r'"(?:\\.|[^"\\])*"')
_OPENING: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Cursor:
    """Reads a text from the start to the end."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.at = 0
        self.last_start = self.last_end = 0
        self._skip()

    def range(self) -> SourceRange:
        """The place of what comes next."""
        return SourceRange(self.source, self.at, min(self.at + 1, len(self.text)))

    def last_range(self) -> SourceRange:
        """The place of what was taken last."""
        return SourceRange(self.source, self.last_start, self.last_end)

    def peek_text(self, *texts: str) -> bool:
        return self.text.startswith(texts, self.at)

    def peek(self, pattern: re.Pattern[str]) -> str | None:
        """The text that the pattern's first group (or the whole pattern) would match next."""
        match = pattern.match(self.text, self.at)
        return match[match.lastindex or 0] if match else None

    def take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self._advance(match.end())
        return match[match.lastindex or 0]

    def require(self, pattern: re.Pattern[str], what: str) -> str:
        found = self.take(pattern)
        if found is None:
            raise self.error(f"expected {what}")
        return found

    def accept(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self._advance(self.at + len(text))
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected '{text}'")

    def expect_end(self) -> None:
        if self.at < len(self.text):
            raise self.error("expected the end of the graph")

    def balanced_until(self, ends: str) -> str:
        """The text up to the first of `ends` outside brackets and strings, stripped."""
        at, closing = self.at, list[str]()
        while at < len(self.text) and (closing or self.text[at] not in ends):
            char = self.text[at]
            if char in _OPENING:
                closing.append(_OPENING[char])
            elif closing and char == closing[-1]:
                closing.pop()
            quoted = _QUOTED.match(self.text, at)
            at = quoted.end() if quoted else at + 1
        found = self.text[self.at : at]
        self._advance(at)
        return found.partition("#")[0].strip()

    def error(self, message: str) -> IRError:
        rest = self.text[self.at : self.at + 20].split("\n")[0]
        return IRError(f"{message}, found {rest!r}" if rest else f"{message}, found the end of the text", self.range())

    def _advance(self, to: int) -> None:
        self.last_start, self.last_end = self.at, to
        self.at = to
        self._skip()

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
