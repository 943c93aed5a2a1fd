"""Every operator with an expression, alone in a kernel, gives what it gives by itself, for special numbers as well."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries
from engine.aten.values.tensor import Tensor
from engine.fuser import from_graph, stub
from engine.fuser.from_graph import NotFused
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.lang.errors import EngineError
from engine.lang.schema import NO_DEFAULT
from engine.lang.types import NUMBER, OptionalType, TensorType

SPECIAL: Final = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.3, -0.6, 2.5, -3.5, 7.0, 1e-3, -20.0, 40.0, 0.5]
WHOLE: Final = [0, 1, -1, 2, 3, 7, -5, 100]
ROWS: Final = [op for op in entries() if (op.scalar or op.expression) and not op.schema.is_mutable]


def _sample(kind: str, place: int) -> Tensor:
    values = np.array(SPECIAL if kind.startswith("f") else WHOLE)
    grid = np.broadcast_to(values[:, None] if place else values, (len(values), len(values)))
    return Tensor(np.ascontiguousarray(grid).astype(np.dtype(kind)))


def _arguments(op: Op, kind: str) -> list[Any]:
    """Tensors of that dtype, those that are conditions of bools; numbers as they are by default, or 2."""
    found: list[Any] = []
    for argument in op.schema.arguments:
        type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        if isinstance(type, TensorType):
            sample = _sample(kind, len(found) % 2)
            is_truth = argument.name in ("mask", "condition")
            found.append(Tensor(sample.array > 0) if is_truth else sample)
        elif argument.default is not NO_DEFAULT and argument.default is not None:
            found.append(argument.default)
        else:
            found.append(2 if type is NUMBER or str(type) in ("int", "float") else None)
    return found


def _graph(op: Op, args: list[Any]) -> tuple[Graph, list[Any]]:
    graph = Graph()
    given = [value for value in args if isinstance(value, Tensor)]
    inputs = iter([graph.add_input() for _ in given])
    values = [next(inputs) if isinstance(value, Tensor) else insert_constant(graph, value) for value in args]
    node = graph.insert_node(graph.create(op.name, values))
    node.op = op
    graph.register_output(node.output)
    return graph, given


@pytest.mark.parametrize(("kind", "first"), [("f4", 0), ("f4", 1), ("f4", 2), ("f4", 3), ("f8", 0), ("i8", 1)])
def test_rows(kind: str, first: int) -> None:
    """A quarter of the rows."""
    compared, wrong = 0, []
    for op in ROWS[first::4]:
        args = _arguments(op, kind)
        try:
            with np.errstate(all="ignore"):
                expected = op.run(*args).array
        except EngineError:
            continue
        graph, given = _graph(op, args)
        try:
            binding = from_graph.lower(graph, given)
        except NotFused:
            continue
        compared += 1
        found = stub.bind("f", [binding], lambda *_: None)(*given).array
        tolerance = 1e-11 if kind == "f8" and found.dtype == np.float64 else 2e-6
        if found.dtype != expected.dtype or not np.allclose(found, expected, tolerance, tolerance, equal_nan=True):
            wrong.append(op.qualified_name)
    assert not wrong
    assert compared > 10
