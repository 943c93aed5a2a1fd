"""Differences between two texts, for reading.

In: the text before and after.  Out: unified diff lines, long unchanged stretches folded into one that counts them.
Lines that stand once in either text, as most lines of a graph do, are anchors that cut the texts into small pieces, so
graphs of thousands of nodes are compared in milliseconds.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
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
    lines: list[DiffLine] = []
    done_old = done_new = 0
    for a, b, length in (*_same(old, new), (len(old), len(new), 0)):
        lines += [DiffLine("-", text) for text in old[done_old:a]]
        lines += [DiffLine("+", text) for text in new[done_new:b]]
        done_old, done_new = a + length, b + length
        is_first, is_last = not lines, done_old == len(old) and done_new == len(new)
        lines += _folded(old[a:done_old], 0 if is_first else context, 0 if is_last else context)
    return tuple(lines)


Run = tuple[int, int, int]
"""A stretch of equal lines: where it begins in the old text, where in the new one, how many lines."""


def _same(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """The stretches that stay, in order, none empty, none next to another."""
    runs: list[Run] = []
    done_old = done_new = 0
    for a, b in (*_anchors(old, new), (len(old), len(new))):
        if a < done_old or b < done_new:
            continue  # an anchor within the stretch that grew from the one before
        piece = SequenceMatcher(None, old[done_old:a], new[done_new:b], autojunk=False)
        for i, j, length in piece.get_matching_blocks():
            _add(runs, (done_old + i, done_new + j, length))
        length = _common(old, new, a, b)
        _add(runs, (a, b, length))
        done_old, done_new = a + length, b + length
    return runs


def _add(runs: list[Run], run: Run) -> None:
    """Append a stretch, or lengthen the last one by it."""
    a, b, length = run
    if runs and (runs[-1][0] + runs[-1][2], runs[-1][1] + runs[-1][2]) == (a, b):
        a, b, before = runs.pop()
        length += before
    if length:
        runs.append((a, b, length))


def _common(old: Sequence[str], new: Sequence[str], a: int, b: int) -> int:
    """The number of lines that are equal from these two on."""
    most = min(len(old) - a, len(new) - b)
    return next((n for n in range(most) if old[a + n] != new[b + n]), most)


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The places of lines that stand once in both texts, as many of them as stand in the same order in both."""
    once_old, once_new = Counter(old), Counter(new)
    place = {text: i for i, text in enumerate(new) if once_new[text] == 1}
    pairs = [(i, place[text]) for i, text in enumerate(old) if once_old[text] == 1 and text in place]
    ends: list[int] = []
    chosen: list[int] = []
    before: list[int] = []
    for number, (_, b) in enumerate(pairs):
        at = bisect_left(ends, b)
        before.append(chosen[at - 1] if at else -1)
        ends[at : at + 1] = [b]
        chosen[at : at + 1] = [number]
    found, number = list[tuple[int, int]](), chosen[-1] if chosen else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


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
