"""`torch.jit.tensorexpr`: kernels made of single graphs.

In: a graph.  Out: a callable with the graph's inputs as arguments.  It runs the optimized graph; PyTorch's tensor
expression fuser does not exist in this engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.torch.compiled.facade import unwrap
from engine.torch.jit.scripting.graph_functions import function_from_graph


class TensorExprKernel:
    """A graph as a callable.  Calls raise what the graph raises."""

    def __init__(self, graph: Any, **options: Any) -> None:
        self._function = function_from_graph("kernel", graph)
        self._graph = unwrap(graph)

    def run(self, inputs: Sequence[Any]) -> Any:
        """The results for these inputs."""
        return self._function(*inputs)

    fallback = run

    def get_code_text(self) -> str:
        """The graph as text."""
        return str(self._graph)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'torch.jit.tensorexpr' has no attribute '{name}': there is no fuser to look into")
