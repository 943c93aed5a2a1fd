"""The front door for groups on a GPU: which nodes kernels can hold, and the kernel of a group.

In: nodes; the graph of a group with arguments and results like those of its calls.  Out: what `groups.from_graph` gives
for the host, in loops for threads.  Matrix products, convolutions and what else has loops of its own is left to the
libraries of the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.values.libraries import as_strided
from engine.aten.values.tensor import Tensor
from engine.fuser.gpu.launches import NoLaunch, launches_of
from engine.fuser.gpu.prepared import number_names
from engine.fuser.groups import from_graph
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.groups.lookups import LOOKUPS
from engine.fuser.groups.products import PRODUCTS
from engine.fuser.groups.strategy import GPU
from engine.fuser.groups.tensor_loops import LOOP
from engine.fuser.groups.windows import WINDOWS
from engine.fuser.stubs.binding import Binding
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of

_LEFT: Final = frozenset({*LOOKUPS, *PRODUCTS, *WINDOWS})
"""Operators with loops of their own, or that end a kernel early."""


def is_fusible(node: Node) -> bool:
    """True if the node may be part of a kernel for threads, as far as can be told without arguments."""
    return node.kind != LOOP and from_graph.is_fusible(node, _LEFT)


def lower(graph: Graph, examples: Sequence[Any], results: Sequence[Any]) -> Binding:
    """A kernel of the graph for arguments and with results like these, on any device.  Raises NotFused."""
    for node in graph.nodes():
        op = op_of(node)
        if node.kind == LOOP or (op is not None and op.name in _LEFT):
            raise NotFused(node, "the device has a library for it")
    like = [*map(_on_host, examples)], [*map(_on_host, results)]
    binding = from_graph.lower(graph, *like, strategy=GPU)
    try:
        launches_of(binding.kernel, number_names(binding))
    except NoLaunch as why:
        raise NotFused(graph.return_node, str(why)) from why
    return binding


def _on_host(value: Any) -> Any:
    """The value, or for a tensor one on the host of the same dtype, sizes and strides, that is not to be read."""
    if not isinstance(value, Tensor):
        return value
    array = value.array
    return Tensor(as_strided(np.zeros(1, array.dtype), array.shape, array.strides))
