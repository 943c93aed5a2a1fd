"""Replaces loops with a small constant count by copies of their bodies.

    for i in range(2): t = t + i       →      t = t + 0; t = t + (0 + 1)

Loops with another count, with long bodies or with a condition stay.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.unrolling import unroll_loops


def constant_loop_unrolling(graph: Graph) -> bool:
    """Unroll the loops whose count is known, inner ones first."""
    return unroll_loops(graph, constant_only=True)
