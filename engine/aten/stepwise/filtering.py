"""Filters whose every output depends on outputs before it.

In: signals (rows, length), flat, and the factors of earlier outputs.  Out: written after the elements that the
first outputs depend on.  On its own, as the loops of `engine.aten.ops.audio`.
"""

from __future__ import annotations

from engine.aten.stepwise.language import Buffer, loop, loose


@loose
def recursive(x: Buffer, factors: Buffer, result: Buffer, rows: int, channels: int, length: int, order: int) -> None:
    """`result` has `order - 1` places more than `x` in each row; row i takes the factors of channel i % channels."""
    for row in range(rows):
        back = row * (length + order - 1)
        first = (row % channels) * order
        for i in range(length):
            found = x[row * length + i]
            for j in range(order):
                found = found - result[back + i + j] * factors[first + j]
            result[back + i + order - 1] = found


@loop
def overdriven(
    x: Buffer, driven: Buffer, last_in: Buffer, last_out: Buffer, result: Buffer, rows: int, length: int
) -> None:
    """A high-pass filter of `driven`, mixed with the signal; the last values of both stay for the next stretch."""
    for row in range(rows):
        before, out = last_in[row], last_out[row]
        for i in range(row * length, (row + 1) * length):
            out = driven[i] - before + 0.995 * out
            before = driven[i]
            result[i] = x[i] * 0.5 + out * 0.75
        last_in[row] = before
        last_out[row] = out
