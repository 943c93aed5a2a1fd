"""Operators that take their tensors one by one instead of in a list.

In: a graph.  Out: the same graph, with `prim::VarConcat(a, b, …, dim)` for `aten::cat([a, b, …], dim)` and
`prim::VarStack` for `aten::stack`.
"""

from __future__ import annotations

from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed

VARIADIC: Final = {"aten::cat": "prim::VarConcat", "aten::stack": "prim::VarStack"}


def use_variadic_operators(graph: Graph) -> bool:
    """Replace nodes whose list is made in the graph, not empty and never written to; True if there were any."""
    users = [node for node in graph.all_nodes() if node.kind in VARIADIC]
    if not users:
        return False
    db = AliasDb(graph)
    found = [node for node in users if _is_list_known(node, db) and allowed(node, VARIADIC[node.kind])]
    for node in found:
        _replace(node)
    return bool(found)


def _is_list_known(node: Node, db: AliasDb) -> bool:
    made = node.inputs[0].node
    return made.kind == "prim::ListConstruct" and bool(made.inputs) and not db.has_writers(made.output)


def _replace(node: Node) -> None:
    made, output = node.inputs[0].node, node.output
    new = node.graph.create(VARIADIC[node.kind], [*made.inputs, *node.inputs[1:]], [output.type]).insert_before(node)
    new.range, name = node.range, output.name
    node.replace_all_uses_with(new)
    output.set_debug_name("")
    new.output.set_debug_name(name)
    node.destroy()
    if not made.output.has_uses:
        made.destroy()
