"""Line search for the strong Wolfe conditions: sufficient decrease, and a flat enough slope.

In: a function that probes the loss along a direction.  Out: a step that satisfies them, and the number of probes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

DESCENT, FLATNESS, TOLERANCE, TRIES = 1e-4, 0.9, 1e-9, 25


class Probe(NamedTuple):
    """A point along the direction: its distance, loss, gradient, and slope along the direction."""

    at: float
    value: float
    grad: Any
    slope: float


def strong_wolfe(probe: Callable[[float], Probe], start: Probe, length: float, size: float) -> tuple[Probe, int]:
    """Extend the step until a minimum is bracketed, and narrow the bracket.  `size` is the direction's maximum norm."""
    last, found = start, probe(length)
    tried = 1
    while tried < TRIES + 1:
        if _too_high(found, start) or (tried > 1 and found.value >= last.value):
            return _narrowed(probe, start, last, found, tried, size)
        if _is_flat(found, start):
            return found, tried
        if found.slope >= 0:
            return _narrowed(probe, start, last, found, tried, size)
        low, high = found.at + 0.01 * (found.at - last.at), found.at * 10
        further = minimum(last, found, (low, high))
        last, found = found, probe(further)
        tried += 1
    return _narrowed(probe, start, start, found, tried, size)


def _narrowed(
    probe: Callable[[float], Probe], start: Probe, one: Probe, two: Probe, tried: int, size: float
) -> tuple[Probe, int]:
    """The best point in the bracket."""
    low, high = (one, two) if one.value <= two.value else (two, one)
    stuck, rounds = False, tried - 1
    while rounds < TRIES and abs(high.at - low.at) * size >= TOLERANCE:
        left, right = sorted((low.at, high.at))
        place = minimum(low, high, (left, right))
        margin = 0.1 * (right - left)
        if min(right - place, place - left) < margin:
            if stuck or place >= right or place <= left:
                place = right - margin if abs(place - right) < abs(place - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        found = probe(place)
        tried, rounds = tried + 1, rounds + 1
        if _too_high(found, start) or found.value >= low.value:
            high = found
        else:
            if _is_flat(found, start):
                return found, tried
            if found.slope * (high.at - low.at) >= 0:
                high = low
            low = found
        if high.value < low.value:
            low, high = high, low
    return low, tried


def _too_high(found: Probe, start: Probe) -> bool:
    return found.value > start.value + DESCENT * found.at * start.slope


def _is_flat(found: Probe, start: Probe) -> bool:
    return abs(found.slope) <= -FLATNESS * start.slope


def minimum(one: Probe, two: Probe, bounds: tuple[float, float]) -> float:
    """The minimum within bounds of the cubic with the values and slopes of two points."""
    left, right = (one, two) if one.at <= two.at else (two, one)
    low, high = bounds
    if left.at == right.at:
        return (low + high) / 2
    first = left.slope + right.slope - 3 * (left.value - right.value) / (left.at - right.at)
    square = first**2 - left.slope * right.slope
    if square < 0:
        return (low + high) / 2
    second = math.sqrt(square)
    place = right.at - (right.at - left.at) * ((right.slope + second - first) / (right.slope - left.slope + 2 * second))
    return min(max(place, low), high)
