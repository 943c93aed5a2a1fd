"""Groups as plain data, for the worker that makes kernels of them.

In: the graph of a group, an example of a call.  Out: the same as plain data, and whether the worker
(`backend/worker.py`) made a kernel of it, which lies on disk then.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.values import xp
from engine.aten.values.promotion import DEFAULTS
from engine.aten.values.tensor import Tensor
from engine.executor.plans.lowered import Example, Sizes, example_of, flat_example
from engine.fuser.backend import worker
from engine.ir.flat import NotPlain, flatten, unflatten
from engine.ir.graph import Graph
from engine.lang.interpreter_settings import deep_recursion
from engine.lang.source import Source
from engine.lang.types import FunctionType, Type


def makes_kernel(graph: Graph, example: Example, sizes: Sizes) -> bool:
    """True once the worker has made the kernel, or found why there is none; False where nobody did."""
    flat = flat_example(example)
    if flat is None or not worker.is_wanted():
        return False
    try:
        with deep_recursion():
            data = flatten(graph, _NAMELESS)
    except NotPlain:
        return False
    return worker.does(worker.LOWER, data, flat, sizes, xp.FROM_NUMPY[DEFAULTS.floating].number)


def received(data: tuple[Any, ...], flat: tuple[Any, ...]) -> tuple[Graph, Example]:
    """The graph and the example again."""
    with deep_recursion():
        return unflatten(data, _NAMELESS), example_of(flat)


class _Nameless:
    """Names for what graphs of groups refer to: no program, and text that nobody reads in the worker."""

    def name_of_source(self, source: Source) -> str:
        return ""

    def source(self, name: str) -> Source:
        return _NO_SOURCE

    def name_of_type(self, type: Type) -> str:
        raise NotPlain(str(type))

    def type(self, name: str) -> Type:
        raise NotPlain(name)

    def name_of_function(self, type: FunctionType) -> str:
        raise NotPlain(str(type))

    def function(self, name: str) -> FunctionType:
        raise NotPlain(name)

    def name_of_tensor(self, tensor: Tensor) -> int:
        raise NotPlain("a tensor")

    def tensor(self, name: int) -> Tensor:
        raise NotPlain("a tensor")


_NAMELESS: Final = _Nameless()
_NO_SOURCE: Final = Source("")
