"""Lowering: from the emitter's raw graph to the final one.

In: a function's graph with `prim::Load` and `prim::Store`, `prim::ReturnStmt` and the rest.  Out: SSA form,
without early exits, every operator under its own name, cleaned up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.frontend.diagnostics.cautions import of_lost_write
from engine.frontend.lowering.exits import transform_exits
from engine.frontend.lowering.modified_loops import canonicalize_modified_loops
from engine.frontend.lowering.ssa import to_ssa
from engine.frontend.matching.convert import EMPTY_LIST
from engine.ir.graph import Graph, Node, Value
from engine.ir.rewriting.dead_code import lost_writes
from engine.lang.errors import Caution
from engine.passes.pipeline import find_pass

CLEAN_UP: Final[tuple[tuple[str, dict[str, bool]], ...]] = (
    ("lower_simple_tuples", {"loops_run": True}),
    ("constant_propagation_immutable_types", {"loops_run": True}),
    ("constant_pooling", {}),
    ("canonicalize_outputs", {}),
)
"""The passes that run on every freshly compiled graph.

PyTorch removes writes that are only observable if a loop does not run; so do these, and a caution says so.
"""


def lower(graph: Graph, before_clean_up: Callable[[Graph], None] | None = None) -> list[Caution]:
    """Lower the graph in place; returns cautions for the writes that are lost with it (see `CLEAN_UP`)."""
    to_ssa(graph)
    for node in graph.all_nodes():
        if node.kind in ("prim::fork", "prim::awaitable"):
            _capture_once(node)
    transform_exits(graph)
    canonicalize_modified_loops(graph)
    find_pass("normalize_ops")(graph)
    for node in graph.find_all_nodes(EMPTY_LIST):
        _make_list(node)
    if before_clean_up is not None:
        before_clean_up(graph)
    lost = [of_lost_write(node, node.range) for node in lost_writes(graph) if node.range is not None]
    for name, options in CLEAN_UP:
        find_pass(name)(graph, **options)
    return lost


def _capture_once(node: Node) -> None:
    """Give a call made elsewhere or later one input for a value read twice, which is known only in SSA form."""
    body = node.attr("Subgraph")
    first: dict[Value, Value] = {}
    for offset, value in reversed(list(enumerate(node.inputs))):
        first[value] = body.inputs[offset]
    for offset, value in reversed(list(enumerate(node.inputs))):
        inner = body.inputs[offset]
        if first[value] is not inner:
            inner.replace_all_uses_with(first[value])
            body.block.erase_input(offset)
            node.remove_input(offset)


def _make_list(node: Node) -> None:
    """Replace an empty list without an annotated type by a new node: as in PyTorch, the variable's name is lost."""
    graph = node.graph
    made = graph.create("prim::ListConstruct", (), [node.output.type]).insert_before(node)
    made.range = node.range
    node.replace_all_uses_with(made)
    node.destroy()
