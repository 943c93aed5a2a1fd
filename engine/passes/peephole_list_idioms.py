"""Uses what lists were made of, where they are made in the graph and never written to.

    %l : int[] = prim::ListConstruct(%a, %b)              %l : int[] = prim::ListConstruct(%a, %b)
    %n : int = aten::len(%l)                              %2 : int = prim::Constant[value=2]()
    %c : int = aten::__getitem__(%l, %zero)         →     %n : int = aten::len(%l)
    %d : int = aten::mul(%n, %c)                          %c : int = aten::__getitem__(%l, %zero)
                                                          %d : int = aten::mul(%2, %a)

So do `prim::ListUnpack`, sums and slices of lists.  The replaced nodes are left for `dce`.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.list_idioms import apply_list_idioms


def peephole_list_idioms(graph: Graph) -> bool:
    """Replace lengths, elements, sums and slices of known lists."""
    return apply_list_idioms(graph)
