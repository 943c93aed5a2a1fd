"""From the emitter's raw graph to the one that programs are shown.

In: a function's graph with `prim::Load` and `prim::Store`, `prim::ReturnStmt` and the rest.  Out: SSA form,
without early exits, every operator under its own name, cleaned up.
"""

from __future__ import annotations

from typing import Final

from engine.frontend.convert import EMPTY_LIST
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.statements import return_value
from engine.frontend.exits import transform_exits
from engine.frontend.modified_loops import canonicalize_modified_loops
from engine.frontend.normalize import normalize_operators
from engine.frontend.ssa import to_ssa
from engine.ir.graph import Graph
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import NONE, Type
from engine.passes.pipeline import run_pipeline

CLEAN_UP: Final = (
    "lower_simple_tuples",
    "constant_propagation_immutable_types",
    "constant_pooling",
    "canonicalize_outputs",
)
"""What every freshly compiled graph goes through."""


def finish(e: Emitter, range: SourceRange) -> Type:
    """End the body, lower the graph; the type that it returns.  A function that reaches its end returns None."""
    if e.graph.block not in e.exits:
        if e.declared is not None and e.declared is not NONE:
            raise CompileError(
                "Function was not annotated as having type None, but does not return along all paths", range
            )
        return_value(e, e.constant(None, range), range)
    returned = e.returned or e.declared or NONE
    # Until early exits are removed the graph has an output of the right type that stands for nothing.
    e.graph.register_output(e.value("prim::Uninitialized", [], returned))
    lower(e.graph)
    return returned


def lower(graph: Graph) -> None:
    """Lower the graph in place."""
    to_ssa(graph)
    transform_exits(graph)
    canonicalize_modified_loops(graph)
    normalize_operators(graph)
    for node in graph.all_nodes():
        if node.kind == EMPTY_LIST:
            node.kind = "prim::ListConstruct"
    run_pipeline(CLEAN_UP, graph)
