"""The body of a function, from its first statement to the finished graph.

In: the statements, in an emitter whose graph has the function's inputs.  Out: the graph in the form that programs are
shown, and the type that the function returns.  Raises the errors of all statements, together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.statements import return_value
from engine.frontend.lowering.lower import lower
from engine.frontend.syntax.tree import Tree
from engine.ir.graph import Graph
from engine.lang.errors import CompileError, EngineError, together
from engine.lang.source import SourceRange
from engine.lang.types import NONE, Type


def compile_body(e: Emitter, trees: Sequence[Tree]) -> None:
    """Compile all statements of a function.  Raises the errors of the statements, together."""
    errors = e.recovery.errors
    try:
        e.statements(trees)
    except EngineError as error:
        if not errors:
            raise
        raise together(errors) from error.__cause__
    if errors:
        raise together(errors)


def finish(e: Emitter, range: SourceRange, before_clean_up: Callable[[Graph], None] | None = None) -> Type:
    """End the body and lower the graph; the type that it returns.  A function that reaches its end returns None."""
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
