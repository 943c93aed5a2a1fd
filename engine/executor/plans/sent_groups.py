"""Groups as plain data, for the worker that makes kernels of them.

In: the graph of a group, an example of a call.  Out: the same as plain data, and whether the worker
(`backend/worker.py`) made a kernel of it, which lies on disk then.
"""

from __future__ import annotations

from typing import Any

from engine.aten.values import xp
from engine.aten.values.promotion import DEFAULTS
from engine.executor.plans.lowered import Example, Sizes, example_of, flat_example
from engine.fuser.backend import worker
from engine.ir.flat import NAMELESS, NotPlain, flatten, unflatten
from engine.ir.graph import Graph
from engine.lang.interpreter_settings import deep_recursion


def makes_kernel(graph: Graph, example: Example, sizes: Sizes) -> bool:
    """True once the worker has made the kernel, or found why there is none; False where nobody did."""
    flat = flat_example(example)
    if flat is None or not worker.is_wanted():
        return False
    try:
        with deep_recursion():
            data = flatten(graph, NAMELESS)
    except NotPlain:
        return False
    return worker.does(worker.LOWER, data, flat, sizes, xp.FROM_NUMPY[DEFAULTS.floating].number)


def received(data: tuple[Any, ...], flat: tuple[Any, ...]) -> tuple[Graph, Example]:
    """The graph and the example again."""
    with deep_recursion():
        return unflatten(data, NAMELESS), example_of(flat)
