"""External functions that kernels call, by their symbols.

In: nothing.  Out: `EXTERNALS`, the types of their operands and results, as C has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class External:
    """`result`: "" where there is none."""

    operands: tuple[str, ...]
    result: str = ""


EXTERNALS: Final[dict[str, External]] = {
    "aligned_alloc": External(("i64", "i64"), "ptr"),
    "malloc": External(("i64",), "ptr"),
    "realloc": External(("ptr", "i64"), "ptr"),
    "free": External(("ptr",)),
    "memcpy": External(("ptr", "ptr", "i64"), "ptr"),
    "memset": External(("ptr", "i32", "i64"), "ptr"),
}
"""Functions of the C library."""
