"""Room for programs that nest deeply.

In: nothing.  Out: `deep_recursion()`, inside which functions that call themselves once a level of a
program's nesting do not run out of Python's stack.  How deep a program may nest is `MAX_NESTING` (brackets
and blocks) and `MAX_HEIGHT` (levels of a tree, chains such as `a + b + c` included); deeper ones are refused
before anything recurses over them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MAX_NESTING: Final = 400
MAX_HEIGHT: Final = 600
MAX_BLOCKS: Final = 240
"""How deep the blocks of a graph may nest; whatever walks over graphs needs up to three Python frames for each."""
_FRAMES: Final = 15_000
"""Python frames that a tree of `MAX_HEIGHT` may take, many for each level."""


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raises Python's recursion limit while the block runs."""
    before = sys.getrecursionlimit()
    if before >= _FRAMES:
        yield
        return
    sys.setrecursionlimit(_FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
