"""From the emitter's raw graph to the one that programs are shown.

In: a function's graph with `prim::Load` and `prim::Store`, `prim::ReturnStmt` and the rest.  Out: SSA form,
without early exits, every operator under its own name, cleaned up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.frontend.cautions import of_lost_write
from engine.frontend.convert import EMPTY_LIST
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.statements import return_value
from engine.frontend.lowering.exits import transform_exits
from engine.frontend.lowering.modified_loops import canonicalize_modified_loops
from engine.frontend.lowering.ssa import to_ssa
from engine.ir.graph import Graph, Node, Value
from engine.ir.rewriting.dead_code import lost_writes
from engine.lang.errors import Caution, CompileError
from engine.lang.source import SourceRange
from engine.lang.types import NONE, Type
from engine.passes.pipeline import find_pass

CLEAN_UP: Final[tuple[tuple[str, dict[str, bool]], ...]] = (
    ("lower_simple_tuples", {"loops_run": True}),
    ("constant_propagation_immutable_types", {"loops_run": True}),
    ("constant_pooling", {}),
    ("canonicalize_outputs", {}),
)
"""What every freshly compiled graph goes through.

The original removes writes that only a loop that does not run would let anybody see; so does this, and says so.
"""


def finish(e: Emitter, range: SourceRange, before_clean_up: Callable[[Graph], None] | None = None) -> Type:
    """End the body, lower the graph; the type that it returns.  A function that reaches its end returns None."""
    if e.graph.block not in e.exits:
        if e.declared is not None and e.declared is not NONE:
            raise CompileError(
                "Function was not annotated as having type None, but does not return along all paths",
                range,
                hints=(f"end every path with a `return` of type {e.declared.annotation_str}, or with a `raise`",),
            )
        return_value(e, e.constant(None, range), range)
    returned = e.returned or e.declared or NONE
    # Until early exits are removed the graph has an output of the right type that stands for nothing.
    e.graph.register_output(e.value("prim::Uninitialized", [], returned))
    e.lost_writes = lower(e.graph, before_clean_up)
    return returned


def lower(graph: Graph, before_clean_up: Callable[[Graph], None] | None = None) -> list[Caution]:
    """Lower the graph in place; cautions of the writes that are lost with it (see `CLEAN_UP`)."""
    to_ssa(graph)
    for node in graph.find_all_nodes("prim::fork"):
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
    """What a forked call reads twice is one input of it: only here is it known that two reads give one value."""
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
    """An empty list that nobody gave a type is made by a new node: as in PyTorch, the variable's name goes."""
    graph = node.graph
    made = graph.create("prim::ListConstruct", (), [node.output.type]).insert_before(node)
    made.range = node.range
    node.replace_all_uses_with(made)
    node.destroy()
