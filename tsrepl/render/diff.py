"""Differences between two texts, for reading.

In: the text before and after.  Out: unified diff lines, long unchanged stretches folded into one that counts them.
The module stands alone because it knows texts only, and no reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, pairwise

from tsrepl.render.blocks import DiffLine

CONTEXT = 2
_WORD = re.compile(r"%?[\w.:]+|\s+|.")
_ALIKE = 0.5
"""Lines that have less in common are another line, and not a changed one."""


def diff_lines(before: str, after: str, context: int = CONTEXT) -> tuple[DiffLine, ...]:
    """Lines marked "+", "-", " ", or "…" in place of unchanged lines further than `context` from a change."""
    old, new = before.rstrip("\n").split("\n"), after.rstrip("\n").split("\n")
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    lines: list[DiffLine] = []
    for index, (tag, a, b, c, d) in enumerate(opcodes):
        if tag == "equal":
            lines += _folded(old[a:b], 0 if index == 0 else context, 0 if index == len(opcodes) - 1 else context)
            continue
        lines += [DiffLine("-", text) for text in old[a:b]]
        lines += [DiffLine("+", text) for text in new[c:d]]
    return tuple(lines)


def _folded(texts: list[str], head: int, tail: int) -> Iterator[DiffLine]:
    """The first `head` and last `tail` of the lines; what lies between is counted, unless it is one line."""
    hidden = len(texts) - head - tail
    if hidden < 2:
        yield from (DiffLine(" ", text) for text in texts)
        return
    yield from (DiffLine(" ", text) for text in texts[:head])
    yield DiffLine("…", f"{hidden} lines the same")
    yield from (DiffLine(" ", text) for text in texts[len(texts) - tail :])


def changed_words(lines: Sequence[DiffLine]) -> dict[int, list[tuple[int, int]]]:
    """By index, the stretches of removed and added lines that differ between a line and the one in its place."""
    found: dict[int, list[tuple[int, int]]] = {}
    runs = [
        (mark, [index for index, _ in group]) for mark, group in groupby(enumerate(lines), lambda each: each[1].mark)
    ]
    for (mark, removed), (next_mark, added) in pairwise(runs):
        if (mark, next_mark) == ("-", "+"):
            for old, new in zip(removed, added, strict=False):
                found[old], found[new] = _differing(lines[old].text, lines[new].text)
    return found


def _differing(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    a, b = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [], []
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    left = [_stretch(a, i, j) for _, i, j, _, _ in changes if i < j]
    return left, [_stretch(b, i, j) for _, _, _, i, j in changes if i < j]


def _stretch(words: Sequence[str], begin: int, end: int) -> tuple[int, int]:
    start = sum(map(len, words[:begin]))
    return start, start + sum(map(len, words[begin:end]))
