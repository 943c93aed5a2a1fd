"""Refuses Python functions that write to their arguments.

    %y : Tensor = prim::PythonOp[name="Scale", inplace=1](%x)   →   CompileError: inplace Scale not supported

Nobody declares what such a function writes to, so that no pass and no derivative can allow for it.  Operators say it in
their schemas and are fine, and so are functions that only compute.  The graph stays as it is.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.lang.errors import CompileError


def check_inplace(graph: Graph) -> bool:
    """Raise CompileError at the first that is found."""
    for node in graph.find_all_nodes("prim::PythonOp"):
        if node.has_attribute("inplace") and node.attr("inplace"):
            name = node.attr("name") if node.has_attribute("name") else node.kind
            raise CompileError(
                f"inplace {name} not supported in the JIT",
                node.range,
                hints=("let the function return a new tensor instead of writing to its argument",),
            )
    return False
