"""Numbers in another precision.  In: numbers, flat.  Out: written."""

from __future__ import annotations

from engine.aten.stepwise.language import Buffer, like, loop


@loop
def convert(x: Buffer, result: Buffer, count: int) -> None:
    for i in range(count):
        result[i] = like(result, x[i])
