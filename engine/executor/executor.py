"""What is kept with a function to run it.

In: a `Function`.  Out: its `GraphExecutor`, made when the function first runs, which holds the `Code` that the
interpreter executes: that of a simplified copy of the graph.
"""

from __future__ import annotations

from typing import Any, Final

from engine.executor.code import Code
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.passes.pipeline import run_pipeline

BEFORE_RUNNING: Final = ("erase_shape_information", "peephole")
"""Passes that decide about values too: `x == x` holds for every float, nan among them, as it does in PyTorch."""


class GraphExecutor:
    """The ways to run one function.  `boundary` is what `call` works out once about calls from Python."""

    __slots__ = ("boundary", "code", "function")

    def __init__(self, function: Function) -> None:
        self.function = function
        graph = copy_graph(function.graph)
        run_pipeline(BEFORE_RUNNING, graph)
        self.code = Code(graph, function.name)
        self.boundary: Any = None

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        return self.code.graph


def executor_of(function: Function) -> GraphExecutor:
    """The function's executor.  Compiles the function if need be; raises CompileError."""
    if function.executor is None:
        function.executor = GraphExecutor(function)
    assert isinstance(function.executor, GraphExecutor)
    return function.executor


def code_of(function: Function) -> Code:
    return executor_of(function).code
