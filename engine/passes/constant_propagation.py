"""Computes when compiling what does not depend on the inputs.

    graph(%x : Tensor):                                   graph(%x : Tensor):
      %1 : int = prim::Constant[value=2]()                  %5 : int = prim::Constant[value=6]()
      %2 : int = prim::Constant[value=3]()          →       %4 : Tensor = aten::add(%x, %5, %5)
      %3 : int = aten::mul(%1, %2)                          return (%4)
      %4 : Tensor = aten::add(%x, %3, %3)
      return (%4)

An If with a constant condition becomes the branch it takes, a loop that never runs what went in.  Values that
are written to stay, and so do operators that fail, have side effects or are random.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.constant_folding import fold_constants


def constant_propagation(graph: Graph) -> bool:
    """Fold constants of all types."""
    return fold_constants(graph)
