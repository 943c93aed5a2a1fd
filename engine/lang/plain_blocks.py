"""Blocks of statements that certainly have no syntax error, found without making trees of them.

In: the text of an archive, the expression that finds its tokens, and where a block begins.  Out: where the block ends
if all of it is plain; None says only that somebody has to read it.

Note [Plain blocks]: an archive with a syntax error is refused when it is loaded, and most of its text never runs in a
process, or runs from a graph that another process compiled.  The tables below follow the tokens of a block through the
forms that archives are written in, with one word for each bracket that is open.  All of them are within the grammar,
and within its limits of nesting, height and length; what is not plain is read at once and has its errors as ever.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from keyword import kwlist
from typing import Final, NamedTuple

from engine.lang.deferred import pattern_of
from engine.lang.interpreter_settings import MAX_WORDS
from engine.lang.literals import LiteralError, number_value, string_value
from engine.lang.tokens import KEYWORDS

WORDS: Final = min(MAX_WORDS, 200)
"""Tokens of a statement.  A tree has fewer than two levels for each, and thus stays under MAX_HEIGHT."""
BLOCKS: Final = 16
"""Blocks in blocks."""
END: Final = "end"
"""The kind of the end of a statement."""
NAME: Final = "name"
VALUE: Final = "value"
_OWN_KINDS: Final = {
    **{word: word for word in (*KEYWORDS, *kwlist)},
    **dict.fromkeys(("True", "False", "None"), VALUE),
}
"""The kinds of words that are no names; those that only Python has are in no form."""


class _Then(NamedTuple):
    """The place at which a token leads to a value, and the tokens that may stand there instead; None for no value."""

    place: str
    others: frozenset[str] | None


def _then(place: str, *others: str) -> _Then:
    return _Then(place, frozenset(others))


_STARTS: Final[Mapping[str, _Then]] = {
    "return": _then("values", END), "assert": _then("assert"), "raise": _then("last"), "del": _then("deleted"),
    **dict.fromkeys(("if", "elif", "while"), _then("condition")), "for": _then("target"), "with": _then("with"),
}  # fmt: skip
"""First words of statements."""
_ALONE: Final = {"pass": "opened", "break": "opened", "continue": "opened", "else": "else"}
"""First words without a value after them, and their places."""
_OPENING: Final = frozenset(["if", "elif", "else", "while", "for", "with"])
"""First words of lines before blocks."""
_BRACKETS: Final[Mapping[str, _Then]] = {"(": _then("tuple", ")"), "[": _then("list", "]"), "{": _then("key", "}")}
"""Brackets in place of a value."""
_APPLIED: Final[Mapping[str, _Then]] = {
    "(": _then("call", ")"), "[": _then("index", ":"), ".": _then("member"), "if": _then("if"),
}  # fmt: skip
"""Tokens that go on after a value, at a place of its own."""
_CLOSED: Final = _Then("", None)
_OPENED: Final = _Then("opened", None)
_AFTER: Final[Mapping[str, Mapping[str, _Then]]] = {
    "call": {",": _then("call", ")"), "=": _then("call"), ")": _CLOSED},
    "tuple": {",": _then("tuple", ")"), ")": _CLOSED},
    "list": {",": _then("list", "]"), "]": _CLOSED},
    "key": {":": _then("item")},
    "item": {",": _then("key"), "}": _CLOSED},
    "index": {",": _then("index", "]", ":"), ":": _then("slice", ":", ",", "]"), "]": _CLOSED},
    "slice": {",": _then("index", "]", ":"), ":": _then("step", ",", "]"), "]": _CLOSED},
    "if": {},
    "member": {},
    "step": {",": _then("index", "]", ":"), "]": _CLOSED},
    "statement": {",": _then("targets", END, "="), "=": _then("targets"), ":": _then("annotation"), END: _CLOSED},
    "targets": {",": _then("targets", END, "="), "=": _then("targets"), END: _CLOSED},
    "annotation": {"=": _then("values"), END: _CLOSED},
    "values": {",": _then("values", END), END: _CLOSED},
    "assert": {",": _then("last"), END: _CLOSED},
    "deleted": {",": _then("deleted"), END: _CLOSED},
    "last": {END: _CLOSED},
    "condition": {":": _OPENED},
    "target": {",": _then("target"), "in": _then("condition")},
    "with": {",": _then("with"), "as": _then("as"), ":": _OPENED},
    "as": {",": _then("with"), ":": _OPENED},
    "else": {":": _OPENED},
    "opened": {END: _CLOSED},
}  # fmt: skip
"""By place: the tokens after a value that lead on, or close it."""
_BARE: Final = frozenset(["target", "as", "else", "opened"])
"""Places at which values are not gone on with."""
_NAMES: Final = frozenset(["target", "as", "member"])
"""Places at which values are names."""
_CLOSERS: Final = frozenset([")", "]", "}", END])
_UNARY: Final = frozenset(["not", "-", "~"])
_BINARY: Final = frozenset([
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "@", "|", "^", "&", "<", ">", "and", "or",
    "is", "is not", "in", "not in",
])  # fmt: skip
_NOTHING: Final[frozenset[str]] = frozenset()
_BLANK_LINES: Final = pattern_of(r"(?:[ \t\r\f]*\n)*")


def plain_block_end(text: str, begin: int, end: int, pattern: re.Pattern[str]) -> int | None:
    """The offset after the last statement of the block, all lines that are indented as the one that begins at `begin`;
    None where something in it is not plain, such as a docstring."""
    first = begin
    while text.startswith(" ", first):
        first += 1
    indent, stop = text[begin:first], begin
    if not indent or text.startswith(('"', "'"), first):
        return None
    while stop < end and text.startswith(indent, stop):
        newline = text.find("\n", stop, end)
        stop = end if newline < 0 else newline + 1
    following = _BLANK_LINES.match(text, stop, end)
    assert following is not None, "the expression matches nothing at all, too"
    if text.startswith(indent, following.end()):
        return None
    stop = begin + len(text[begin:stop].rstrip())
    return stop if _is_plain(text, first, stop, pattern, len(indent)) else None


def _is_plain(text: str, at: int, end: int, pattern: re.Pattern[str], depth: int) -> bool:
    blocks, statement, words = _Blocks(depth), _Statement(), 0
    while (found := pattern.match(text, at, end)) is not None:
        at, group = found.end(), found.lastgroup
        if group == "lines":
            if not statement.takes(END) or not blocks.take(statement.first):
                return False
            if at == end:
                return blocks.are_complete()
            indent = found["lines"].rpartition("\n")[2]
            if indent.strip(" ") or not blocks.begin(len(indent)):
                return False
            statement, words = _Statement(), 0
            continue
        words += 1
        kind = _kind(group, found[group or 0])
        if words > WORDS or not (statement.takes(kind) if words > 1 else statement.begins(kind)):
            return False
    return False


def _kind(group: str | None, word: str) -> str:
    """The kind of a token in the tables; "" for one that is not plain."""
    if group == "word":
        return _OWN_KINDS.get(word, NAME if word.isascii() else "")
    if group in ("operator", "pair"):
        return word
    try:
        if group == "number":
            number_value(word)
        elif group == "string":
            string_value(word, archived=True)
        else:
            return ""
    except LiteralError:
        return ""
    return VALUE


class _Statement:
    """Where the tokens of one statement have led: the places that are open, and the tokens that may stand in place of
    the value that is wanted; None after a value."""

    __slots__ = ("before", "first", "last", "others", "places")

    def __init__(self) -> None:
        self.first = self.before = self.last = ""
        self.places = ["statement"]
        self.others: frozenset[str] | None = _NOTHING

    def begins(self, kind: str) -> bool:
        """True if a statement may begin with this token."""
        self.first = self.last = kind
        if kind in _STARTS:
            place, self.others = _STARTS[kind]
            self.places[-1] = place
            return True
        if kind in _ALONE:
            self.places[-1], self.others = _ALONE[kind], None
            return True
        return self.takes(kind)

    def takes(self, kind: str) -> bool:
        """True if this token may stand here."""
        earlier, before = self.before, self.last
        self.before, self.last = before, kind
        places = self.places
        place = places[-1]
        if self.others is not None:
            if kind == NAME or (kind == VALUE and place not in _NAMES):
                self.others = None
                if place == "member":
                    places.pop()
                return True
            if kind not in self.others:
                return place not in _NAMES and self._opens(kind)
            if kind in _CLOSERS:
                return self._closes()
        then = _AFTER[place].get(kind)
        if then is None:
            return place not in _BARE and self._goes_on(kind)
        if then is _CLOSED:
            return self._closes()
        if kind == "=" and place == "call" and (before != NAME or earlier not in ("(", ",")):
            return False  # it is behind no keyword
        places[-1], self.others = then
        return True

    def _opens(self, kind: str) -> bool:
        """True for a bracket, or an operator before its operand."""
        if kind in _BRACKETS:
            place, self.others = _BRACKETS[kind]
            self.places.append(place)
            return True
        self.others = _NOTHING
        return kind in _UNARY

    def _closes(self) -> bool:
        self.places.pop()
        self.others = None
        return True

    def _goes_on(self, kind: str) -> bool:
        """True for an operator after its operand, a call, an index, a member, and the parts of a conditional."""
        if kind == "else" and self.places[-1] == "if":
            self.places.pop()
        elif kind in _APPLIED:
            place, self.others = _APPLIED[kind]
            self.places.append(place)
            return True
        elif kind not in _BINARY:
            return False
        self.others = _NOTHING
        return True


class _Blocks:
    """The indentation of a block: the depths of the open blocks, whether the last line opens one, and the first word of
    what an `else` at a depth would follow."""

    __slots__ = ("_depths", "_followed", "_is_opening")

    def __init__(self, depth: int) -> None:
        self._depths = [depth]
        self._is_opening = False
        self._followed: dict[int, str] = {}

    def take(self, first: str) -> bool:
        """Note a line by its first word; False for an `else` without an `if`."""
        depth = self._depths[-1]
        if first in ("else", "elif") and self._followed.get(depth) not in ("if", "elif"):
            return False
        self._followed[depth] = first
        self._is_opening = first in _OPENING
        return True

    def begin(self, depth: int) -> bool:
        """Begin the next line at this depth; False where no line may be."""
        depths = self._depths
        if self._is_opening:
            depths.append(depth)
            return depths[-2] < depth and len(depths) <= BLOCKS + 1
        while depth < depths[-1]:
            self._followed.pop(depths.pop(), None)
        return depth == depths[-1]

    def are_complete(self) -> bool:
        """True if no block is to follow."""
        return not self._is_opening
