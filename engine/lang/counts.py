"""Numbers of things in words, as reports print them.

counted(1, "tensor")  ->  1 tensor            counted(1234, "class", "classes")  ->  1,234 classes

It stands alone because reports of `engine.serialize` and of all doors share it, and it belongs to no type or error.
"""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number, in groups of three digits, with the noun in the singular or the plural."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
