"""Blocks of statements that certainly have no syntax error, found without reading them.

In: generated text, and where in it a block begins.  Out: where the block ends if all of it is of the plain kind that
archives are written in; None says only that somebody has to read it.

Note [Plain blocks]: an archive with a syntax error is refused when it is loaded, and most of its text never runs in a
process, or runs from a graph that another process compiled.  Archives use little of what the grammar allows, so that a
few substitutions tell most blocks: literals become values, words become names, then brackets become values from the
inside out, until each line has one of a few forms.  All of it is within the grammar and its limits of nesting, height
and length; what is not plain is read at once and has its errors as ever.
"""

from __future__ import annotations

import re
from keyword import kwlist
from typing import Final

from engine.lang.interpreter_settings import MAX_WORDS
from engine.lang.tokens import KEYWORDS

DEPTH: Final = 12
"""Brackets in brackets, calls of calls.  With the numbers of operators and names in the expressions below, trees stay
under MAX_NESTING and MAX_HEIGHT."""
BLOCKS: Final = 16
"""Blocks in blocks."""
LONGEST: Final = min(MAX_WORDS, 1 << 14)
"""Characters of a line, so that it has fewer words than a statement may have."""

_VALUE_MARK: Final = "\x01"
_NAME_MARK: Final = "\x02"
_V, _N = r"\x01", r"\x02"
_ODD: Final = re.compile(r"[^\n -~]|'''|\"\"\"|\b(?:is not|not in)\w")
"""Characters beyond ASCII and those that control (the marks among them), long strings, and pairs of words that the
lexer takes for an operator though the second goes on."""
_ESCAPE = r"""\\(?:["'\\abfnrtv]|[0-3][0-7]{2})"""
_LITERAL: Final = re.compile(
    rf""""(?:[^"\\\n]|{_ESCAPE})*+"|'(?:[^'\\\n]|{_ESCAPE})*+'|\b(?:True|False|None)\b"""
    r"|(?<![\w.])(?:[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++|0|9223372036854775807|[1-9][0-9]{0,17}+)(?![\w.])"
)
_WORD: Final = re.compile(rf"\b(?!(?:{'|'.join(sorted({*KEYWORDS, *kwlist}))})\b)[A-Za-z_][A-Za-z_0-9]*+")
_PATH: Final = re.compile(rf"(?<!\.)[{_V}{_N}](?:\.{_N}){{1,12}}+(?!\.)")
_OPERATOR = r" ?(?:\*\*|//|<<|>>|[<>=!]=|[-+*/%@|^&<>]|and|or|is not|is(?! not)|not in|in) ?"
_OPERAND = rf"(?:not |[-~]){{0,3}}+[{_V}{_N}]"
_CHAIN = rf"{_OPERAND}(?:{_OPERATOR}{_OPERAND}){{0,12}}+"
_VALUE = rf"{_CHAIN}(?: if {_CHAIN} else {_CHAIN}){{0,2}}+"
_TUPLE = rf"{_VALUE}(?:, ?{_VALUE})*+,?"


def _items(item: str, end: str = ",? ?") -> str:
    return rf"(?:{item}(?:, ?{item})*+{end})?"


_INDEX = rf"(?:(?:{_VALUE})?:(?:{_VALUE})?(?::(?:{_VALUE})?)?|{_VALUE})"
_BRACKETS: Final = re.compile(
    rf"(?:(?<!\.)[{_V}{_N}](?:\({_items(rf'(?:{_N} ?= ?)?{_VALUE}')}\)|\[{_INDEX}(?:, ?{_INDEX})*+,? ?\])"
    rf"|(?<![{_V}{_N})\]}}])(?:\({_items(_VALUE)}\)|\[{_items(_VALUE)}\]|{{{_items(f'{_VALUE} ?: ?{_VALUE}', '')}}}))"
    rf"(?:\.{_N}){{0,12}}+(?!\.)"
)
_STATEMENT: Final = re.compile(
    rf"(?:{_TUPLE}(?: ?= ?{_TUPLE})*+|{_VALUE} ?: ?{_VALUE}(?: ?= ?{_TUPLE})?|return(?: {_TUPLE})?|pass|break|continue"
    rf"|assert {_VALUE}(?:, ?{_VALUE})?|raise {_VALUE}|del {_VALUE}(?:, ?{_VALUE})*+)",
)
_OPENING: Final = re.compile(
    rf"(?:(if|elif|while) {_VALUE}|(else)|(for) {_N}(?:, ?{_N})*+ in {_VALUE}"
    rf"|(with) {_VALUE}(?: as {_N})?(?:, ?{_VALUE}(?: as {_N})?)*+):"
)
"""The line before a block; the group that matched is its word."""
_AFTER_IF: Final = ("if", "elif")
_BLANK_LINES: Final = re.compile(r"(?:[ \t\r\f]*\n)*")


def plain_block_end(text: str, begin: int, end: int) -> int | None:
    """The offset after the last statement of the block, all lines that are indented as the one that begins at `begin`;
    None where something in it is not plain, such as a docstring."""
    indent = _indent_of(text, begin)
    if not indent or text.startswith(('"', "'"), begin + len(indent)):
        return None
    stop = begin
    while text.startswith(indent, stop) and stop < end:
        newline = text.find("\n", stop, end)
        stop = end if newline < 0 else newline + 1
    following = _BLANK_LINES.match(text, stop, end)
    assert following is not None, "the expression matches nothing at all, too"
    block = text[begin:stop].rstrip()
    is_whole = not text.startswith(indent, following.end())
    return begin + len(block) if is_whole and _is_plain(block) else None


def _indent_of(text: str, begin: int) -> str:
    at = begin
    while text.startswith(" ", at):
        at += 1
    return text[begin:at]


def _is_plain(block: str) -> bool:
    if _ODD.search(block) is not None or max(map(len, block.split("\n"))) > LONGEST:
        return False
    block = _WORD.sub(_NAME_MARK, _LITERAL.sub(_VALUE_MARK, block))
    block = _PATH.sub(_VALUE_MARK, block)
    for _ in range(DEPTH):
        block, count = _BRACKETS.subn(_VALUE_MARK, block)
        if not count:
            break
    return _are_statements(block.split("\n"))


def _are_statements(lines: list[str]) -> bool:
    """True if each line has a known form, and stands as deep as the block that it is in."""
    depths, opened = [-1], "def"
    """The depths of the open blocks, and the word of the line before if it opens one."""
    closed: dict[int, str] = {}
    """The words of the blocks that an `else` may follow, by the depth at which they stand."""
    for line in lines:
        inside = line.lstrip(" ")
        depth = len(line) - len(inside)
        if opened:
            if depth <= depths[-1] or len(depths) > BLOCKS + 1:
                return False
            depths.append(depth)
        while depth < depths[-1]:
            closed.pop(depths.pop(), None)
        if depth != depths[-1]:
            return False
        found = _OPENING.fullmatch(inside)
        if found is None:
            if _STATEMENT.fullmatch(inside) is None:
                return False
            opened = ""
            closed.pop(depth, None)
            continue
        opened = found[found.lastindex or 0]
        if opened in ("else", "elif") and closed.get(depth) not in _AFTER_IF:
            return False
        closed[depth] = opened
    return not opened
