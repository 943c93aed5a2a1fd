"""Functions in TorchScript as kernels for threads, run on the host and compared with the functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import engine.torch as torch
from engine.aten.values.tensor import Tensor
from engine.executor.plans.executor import executor_of
from engine.fuser.gpu import compiler, emulated
from engine.fuser.gpu.launches import Launch
from engine.fuser.gpu.prepared import Prepared, holds, numbers_of, prepared
from engine.fuser.gpu.shapes import Shape
from engine.fuser.ir.numeric_functions import NUMPY
from engine.fuser.stubs.binding import Binding, Result
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph

FEW_BLOCKS = 8
"""Blocks of a grid, so that each has several rounds to go."""


def unit_of(text: str, args: Sequence[Any]) -> Any:
    """The unit with the function `f` of `parameters: expression`; parameters are of the types of these arguments."""
    names, _, expression = text.partition(":")
    typed = (
        name if isinstance(value, Tensor) else f"{name}: {type(value).__name__}"
        for name, value in zip(names.split(", "), args, strict=True)
    )  # fmt: skip
    return torch.jit.CompilationUnit(f"def f({', '.join(typed)}):\n    return {expression}\n")


def graph_of(text: str, args: Sequence[Any]) -> tuple[Graph, tuple[Any, ...]]:
    """The graph that kernels are made of, and its results for these arguments."""
    return graph_of_unit(unit_of(text, args), args)


def graph_of_unit(unit: Any, args: Sequence[Any]) -> tuple[Graph, tuple[Any, ...]]:
    """The same of a unit with a function `f`."""
    with torch.no_grad():
        plan = executor_of(unit._unit.functions["f"]).plan_for(args)
        return copy_graph(plan.graph), all_of(unit.f(*args))


def binding_of(text: str, *args: Any) -> Binding:
    """The kernel for threads of `parameters: expression`.  Raises NotFused."""
    return lowered(unit_of(text, args), args)


def lowered(unit: Any, args: Sequence[Any]) -> Binding:
    """The kernel for threads of the function `f` of a unit.  Raises NotFused."""
    graph, results = graph_of_unit(unit, args)
    return compiler.lower(graph, args, results)


def all_of(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def arrays_of(args: Sequence[Any]) -> list[Any]:
    return [each.array if isinstance(each, Tensor) else each for each in args]


def check(text: str, *args: Any, others: Sequence[Sequence[Any]] = (), tolerance: float = 2e-5) -> list[Prepared]:
    """The kernel for threads for the first arguments gives what the program gives, for all that its guards take."""
    binding, found = binding_of(text, *args), []
    for given in (args, *others):
        if holds(binding, numbers_of(binding, arrays_of(given))):
            found.append(check_call(binding, given, unit_of(text, given).f, tolerance))
    assert found
    return found


def check_call(binding: Binding, args: Sequence[Any], function: Any, tolerance: float = 2e-5) -> Prepared:
    """One call, and the ways in which its launches are shaped."""
    with torch.no_grad():
        expected = all_of(function(*args))
    for backwards in (False, True):
        ready, results = emulate(binding, args, backwards)
        _compare(binding, results, expected, tolerance)
    return ready


def _compare(binding: Binding, results: Sequence[Any], expected: Sequence[Any], tolerance: float) -> None:
    for result, a, b in zip(binding.results, results, expected, strict=True):
        assert isinstance(result, Result)
        back = np.argsort(result.order) if result.order is not None else range(a.ndim)
        a = a.reshape([a.shape[d] for d in result.order or range(a.ndim)]).transpose(back)
        assert (a.dtype, a.shape) == (b.array.dtype, b.array.shape)
        np.testing.assert_allclose(
            a.astype(float), b.array.astype(float), rtol=tolerance, atol=tolerance, equal_nan=True
        )


def emulate(binding: Binding, args: Sequence[Any], backwards: bool = False) -> tuple[Prepared, list[Any]]:
    """The results of a kernel on the host, in the order in which they lie in memory."""
    arrays = arrays_of(args)
    numbers = numbers_of(binding, arrays)
    ready = prepared(binding, numbers, most_blocks=FEW_BLOCKS)
    data = {each.name: value for each, value in zip(binding.arguments, arrays, strict=True)}
    results = [np.zeros(ready.results[each.name], NUMPY[each.type]) for each in binding.results]
    data |= {each.name: array for each, array in zip(binding.results, results, strict=True)}
    emulated.run(ready, data, numbers, backwards=backwards)
    return ready, results


def renamed(code: Sequence[tuple[Launch, Shape]], prefix: str) -> Iterator[tuple[Launch, Shape]]:
    """The same functions with other names, so that several kernels' fit in a module."""
    for launch, shape in code:
        yield replace(launch, name=f"{prefix}_{launch.name}"), shape
