"""Adds and takes what is positive in one operator.

    %1 : Tensor = aten::add(%a, %b, %alpha)
    %2 : Tensor = aten::relu(%1)                    →     %2 : Tensor = aten::_add_relu(%a, %b, %alpha)

So do `add` and `relu_`, `add_` and `relu_` (then it is `_add_relu_`), and `add` into `out` and `relu_`.  A sum that is
used otherwise stays.  The operator has no derivative.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from engine.ir.graph import Graph
from engine.ir.rewriting.subgraph_rewriter import SubgraphRewriter

_RULES: Final = (
    ("add", "relu", "_add_relu", "%a, %b, %alpha"),
    ("add", "relu_", "_add_relu", "%a, %b, %alpha"),
    ("add_", "relu_", "_add_relu_", "%a, %b, %alpha"),
    ("add", "relu_", "_add_relu", "%a, %b, %alpha, %out"),
)
"""The sum, what follows, both in one, and their arguments."""


def fuse_add_relu(graph: Graph) -> bool:
    """Rewrite every such pair."""
    return _rewriter().run_on_graph(graph)


@cache
def _rewriter() -> SubgraphRewriter:
    rewriter = SubgraphRewriter()
    for total, activation, both, arguments in _RULES:
        rewriter.register_rewrite_pattern(
            f"graph({arguments}):\n  %1 = aten::{total}({arguments})\n  %2 = aten::{activation}(%1)\n  return (%2)",
            f"graph({arguments}):\n  %2 = aten::{both}({arguments})\n  return (%2)",
        )
    return rewriter
