"""Differences between two texts, for reading.

In: the text before and after.  Out: unified diff lines, long unchanged stretches folded into one that counts them.
The module stands alone because it knows texts only, and no reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from tsrepl.render.blocks import DiffLine

CONTEXT = 2


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
