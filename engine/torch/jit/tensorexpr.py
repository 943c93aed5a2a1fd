"""`torch.jit.tensorexpr`: kernels made of graphs, one at a time.

In: a graph.  Out: something to call with its inputs.  What it runs is the graph, optimized; there is no fuser in this
engine whose kernels it could hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.torch.compiled.facade import unwrap
from engine.torch.jit.scripting.graph_functions import function_from_graph


class TensorExprKernel:
    """A graph to run by itself.  Raises as the graph does."""

    def __init__(self, graph: Any, **options: Any) -> None:
        self._function = function_from_graph("kernel", graph)
        self._graph = unwrap(graph)

    def run(self, inputs: Sequence[Any]) -> Any:
        """The results for these inputs."""
        return self._function(*inputs)

    fallback = run

    def get_code_text(self) -> str:
        """What runs, as text."""
        return str(self._graph)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'torch.jit.tensorexpr' has no attribute '{name}': there is no fuser to look into")
