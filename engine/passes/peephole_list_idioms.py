"""Uses what lists were made of, where they are made in the graph and never written to.

    %l : int[] = prim::ListConstruct(%a, %b)              %l : int[] = prim::ListConstruct(%a, %b)
    %n : int = aten::len(%l)                              %2 : int = prim::Constant[value=2]()
    %c : int = aten::__getitem__(%l, %zero)         →     %n : int = aten::len(%l)
    %d : int = aten::mul(%n, %c)                          %c : int = aten::__getitem__(%l, %zero)
                                                          %d : int = aten::mul(%2, %a)

So do `prim::ListUnpack`, sums and slices of lists.  With `refine_list_len`, branches tell the lengths of others, too:
after `assert len(x) == 4` the length of `x` is 4.  The replaced nodes are left for `dce`.
"""

from __future__ import annotations

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.rewrites import allowed
from engine.ir.rewriting.list_idioms import apply_list_idioms
from engine.ir.rewriting.number_facts import Facts, Refinement
from engine.lang.types import ListType


def peephole_list_idioms(graph: Graph, refine_list_len: bool = False) -> bool:
    """Replace lengths, elements, sums and slices of known lists."""
    changed = apply_list_idioms(graph)
    return (_refine_lengths(graph) or changed) if refine_list_len else changed


def _refine_lengths(graph: Graph) -> bool:
    """Replace lengths that branches tell, of lists that nothing writes to."""
    db = AliasDb(graph)

    def measured(value: Value) -> Value | None:
        node = value.node
        is_length = node.kind == "aten::len" and isinstance(node.input.type, ListType)
        return node.input if is_length and not db.has_writers(node.input) else None

    return Refinement(measured, _use_length).run(graph)


def _use_length(node: Node, facts: Facts) -> bool:
    if node.kind != "aten::len" or node.input not in facts or not node.output.has_uses or not allowed(node, "a number"):
        return False
    with node.graph.inserting_at(node):
        node.output.replace_all_uses_with(insert_constant(node.graph, facts[node.input]))
    return True
