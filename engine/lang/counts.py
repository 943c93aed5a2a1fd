"""Numbers of things in words, as reports print them.

counted(1, "tensor")  ->  1 tensor            counted(1234, "class", "classes")  ->  1,234 classes
duration(0.00123)     ->  1.23 ms             byte_size(1230)                    ->  1.2 KiB
some_of("abcde", 3)   ->  a, b, c and 2 more       ago(time.time() - 60)   ->  1 minute ago

It stands alone because reports of `engine.serialize` and of all doors share it, and it belongs to no type or error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number, in groups of three digits, with the noun in the singular or the plural."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def some_of(texts: Sequence[str], most: int) -> str:
    """The first of the texts, and how many more there are."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more:,} more" if more > 0 else "")


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


_AGES: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def ago(then: float) -> str:
    """The time since then, in seconds of the epoch, in one unit: "just now", "5 minutes ago", "2 days ago"."""
    seconds = max(time.time() - then, 0.0)
    for unit, size in _AGES:
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


def byte_size(count: int) -> str:
    """Bytes with a binary unit."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
