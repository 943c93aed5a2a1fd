"""What is kept with a function to run it.

In: a `Function`.  Out: its `GraphExecutor`, made when the function first runs, which holds the `Code` that the
interpreter executes.
"""

from __future__ import annotations

from typing import Any

from engine.executor.code import Code
from engine.ir.graph import Graph
from engine.ir.unit import Function


class GraphExecutor:
    """The ways to run one function.  `boundary` is what `call` works out once about calls from Python."""

    __slots__ = ("boundary", "code", "function")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.code = Code(function.graph, function.name)
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
