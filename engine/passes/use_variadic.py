"""Hands tensors to `cat` and `stack` without making a list of them.

    %l : Tensor[] = prim::ListConstruct(%a, %b)           %r : Tensor = prim::VarConcat(%a, %b, %dim)
    %r : Tensor = aten::cat(%l, %dim)               →

`aten::stack` becomes `prim::VarStack`.  Lists that come from elsewhere, that are empty or that anybody writes to stay;
a list that is used otherwise, too, is still made.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.variadic import use_variadic_operators


def use_variadic(graph: Graph) -> bool:
    """Replace `cat` and `stack` of lists that are made in the graph."""
    return use_variadic_operators(graph)
