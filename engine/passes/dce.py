"""Removes what nobody needs: nodes without effect whose results are unused, and unused results of If and Loop.

    graph(%x : Tensor):                                   graph(%x : Tensor):
      %1 : int = prim::Constant[value=1]()          →       %3 : Tensor = aten::neg(%x)
      %2 : Tensor = aten::add(%x, %x, %1)                   return (%3)
      %3 : Tensor = aten::neg(%x)
      return (%3)

Operators that write to an input stay; `dead_write_elimination` looks at who sees the write.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.dead_code import remove_dead_code


def dce(graph: Graph) -> bool:
    """Remove dead nodes and dead results of control flow."""
    return remove_dead_code(graph, keep_writes=True)
