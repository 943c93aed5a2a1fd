"""What is said of an operator's results without running it holds when it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries
from engine.aten.values.tensor import Tensor
from engine.ir.constants import insert_constant, tensor_type_of
from engine.ir.facts.inference import find_facts
from engine.ir.graph import Graph
from engine.lang.types import ListType, TensorType
from tests.table.gradient_samples import gradient_arguments_for
from tests.table.samples import arguments_for

SAMPLED = [op for op in entries() if op.text.startswith("aten::") and "Tensor" in op.text and "_out(" not in op.text]


def node_with(op: Op, arguments: tuple[Any, ...], known: Any) -> Graph:
    """A graph of that one operator: tensors come in with types that say what `known` leaves of them."""
    graph = Graph()
    values = []
    for argument, value in zip(op.schema.arguments, arguments, strict=True):
        if isinstance(value, Tensor):
            values.append(graph.add_input("", known(tensor_type_of(value))))
        elif isinstance(value, list) and value and all(isinstance(each, Tensor) for each in value):
            parts = [graph.add_input("", known(tensor_type_of(each))) for each in value]
            values.append(graph.append("prim::ListConstruct", parts, [ListType(TensorType())]).output)
        else:
            type = argument.type if value is None or isinstance(value, (list, dict)) else None
            values.append(insert_constant(graph, value, type))
    node = graph.append(op.name, values, [returned.type for returned in op.schema.returns])
    node.op = op
    return graph


def sample(op: Op, make: Any, known: Any) -> tuple[Graph, Any] | None:
    """The graph, and what a run gives; None for operators that no sample fits."""
    try:
        arguments = make(op)
        graph = node_with(op, arguments, known)
        return graph, op.run(*arguments)
    except Exception:
        return None


def holds(fact: TensorType, tensor: Tensor) -> str:
    found = tensor_type_of(tensor)
    for name in ("dtype", "device"):
        if getattr(fact, name) not in (None, getattr(found, name)):
            return f"{name}: {getattr(fact, name)} is {getattr(found, name)}"
    if fact.sizes is not None:
        assert found.sizes is not None
        if len(fact.sizes) != len(found.sizes) or any(
            a not in (None, b) for a, b in zip(fact.sizes, found.sizes, strict=True)
        ):
            return f"sizes: {fact.sizes} are {found.sizes}"
    if fact.strides is not None and tensor.numel() > 1 and found.strides is not None:
        rows = zip(fact.strides, found.strides, found.sizes or (), strict=True)
        if any(size != 1 and a not in (None, b) for a, b, size in rows):
            return f"strides: {fact.strides} are {found.strides}"
    return "requires_grad" if fact.requires_grad is False and tensor.requires_grad else ""


def everything(type: TensorType) -> TensorType:
    return type


def no_strides(type: TensorType) -> TensorType:
    return replace(type, strides=None)


def some_sizes(type: TensorType) -> TensorType:
    sizes = tuple(None if at % 2 else size for at, size in enumerate(type.sizes or ()))
    return replace(type, strides=None, sizes=sizes)


def rank_alone(type: TensorType) -> TensorType:
    return TensorType(sizes=(None,) * len(type.sizes or ()))


@pytest.mark.parametrize("known", [everything, no_strides, some_sizes, rank_alone])
def test_facts_hold_for_every_sample(known: Any) -> None:
    wrong, said = [], 0
    for op in SAMPLED:
        for make in (arguments_for, gradient_arguments_for):
            made = sample(op, make, known)
            if made is None:
                continue
            graph, result = made
            facts, node = find_facts(graph), list(graph.nodes())[-1]
            outputs = [result] if len(node.outputs) == 1 else list(result or ())
            for value, tensor in zip(node.outputs, outputs, strict=True):
                if isinstance(tensor, Tensor) and value in facts:
                    said += facts[value].sizes is not None
                    problem = holds(facts[value], tensor)
                    wrong += [f"{op.text}: {problem}"] if problem else []
    assert not wrong, "\n".join(wrong)
    assert said > 100
