"""Spelling: known names that an unknown one is likely a misspelling of.

In: an unknown name, and the known ones.  Out: the nearest: a third of the letters may be wrong, missing, too many or
swapped with their neighbours, the first one only if no other is.  Private names are none, but for one as private.
"""

from __future__ import annotations

from collections.abc import Iterable

_SHORTEST = 3
"""Shorter names are like too many others: only one with the same letters, or that extends it or is its beginning, is
suggested.  For those of this length, one of as many other letters is none, either."""


def nearest(name: str, known: Iterable[str], count: int, *, most: int | None = None) -> list[str]:
    """Up to `count` of the known names, the nearest first; `most` letters may be wrong, in place of a third."""
    limit = (len(name) + 1) // 3 if most is None else most
    low = name.lower()
    found = []
    for each in dict.fromkeys(known):
        if each == name or abs(len(each) - len(name)) > limit or _privacy(each) not in (0, _privacy(name)):
            continue
        far = distance(low, each.lower(), limit)
        extends = each.startswith(name) or name.startswith(each)
        has_same = sorted(low) == sorted(each.lower())
        is_long = len(name) > _SHORTEST or (len(name) == _SHORTEST and len(each) != _SHORTEST)
        is_alike = extends or has_same or (is_long and (far < 2 or each[:1].lower() == low[:1]))
        if far <= limit and is_alike:
            differs_at = next(
                (i for i, pair in enumerate(zip(name, each, strict=False)) if pair[0] != pair[1]), len(name)
            )
            found.append((far, not extends, abs(len(each) - len(name)), -differs_at, each))
    return [each for *_, each in sorted(found)[:count]]


def _privacy(name: str) -> int:
    """The number of underscores that the name begins with."""
    return len(name) - len(name.lstrip("_"))


def distance(a: str, b: str, limit: int) -> int:
    """The number of letters to be changed, added, removed or swapped; `limit + 1` if it is more than `limit`."""
    before_last: list[int] = []
    last = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit and (i < 2 or min(last) > limit):
            return limit + 1
        before_last, last = last, row
    return last[-1]
