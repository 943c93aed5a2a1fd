"""Conversion of numbers to another precision.  In: numbers, flat.  Out: written.

On its own, since `engine.aten.values.xp` needs this loop and no other.
"""

from __future__ import annotations

from engine.aten.stepwise.language import Buffer, like, loop


@loop
def convert(x: Buffer, result: Buffer, count: int) -> None:
    for i in range(count):
        result[i] = like(result, x[i])
