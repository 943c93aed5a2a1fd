"""Repeats the bodies of loops that only a count ends.

    for i in range(n): t = t + i       →      for k in range(n / 8): t = t + i; t = t + (i + 1); … eight times
                                              for k in range(n - n / 8 * 8): t = t + i

A small constant count leaves no loop at all.  Long bodies, and loops with a condition (`while`, `break`), stay.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.unrolling import unroll_loops


def loop_unrolling(graph: Graph) -> bool:
    """Unroll the loops, inner ones first."""
    return unroll_loops(graph)
