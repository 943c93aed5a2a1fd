"""What is said of an operator's results without running it holds when it runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries
from engine.aten.values.tensor import Tensor
from engine.ir.constants import insert_constant, tensor_type_of
from engine.ir.facts.inference import find_facts
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.lang import scalars
from engine.lang.types import ListType, TensorType
from engine.passes.pipeline import run_pass
from tests.gpu.variants import there
from tests.table.device_double import double
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


@pytest.mark.parametrize("beside", [scalars.device("cuda", 0), None])
def test_devices_of_facts_hold_on_another_device(beside: scalars.device | None) -> None:
    """The first tensor is known to be there; `beside` is what is known of the others."""
    wrong, said = [], 0
    with double():
        for op in SAMPLED:
            made = sample(op, lambda op: there(arguments_for(op)), first_known(beside))
            if made is None:
                continue
            graph, result = made
            facts, node = find_facts(graph), list(graph.nodes())[-1]
            outputs = [result] if len(node.outputs) == 1 else list(result or ())
            for value, tensor in zip(node.outputs, outputs, strict=True):
                if isinstance(tensor, Tensor) and value in facts:
                    found = facts[value].device
                    said += found is not None
                    wrong += [f"{op.text}: {found} is {tensor.device}"] if found not in (None, tensor.device) else []
    assert not wrong, "\n".join(wrong)
    assert said > 500


def first_known(beside: scalars.device | None) -> Callable[[TensorType], TensorType]:
    """All of the types but for the device, which the first one tells; the others have `beside`."""
    at = itertools.count()
    return lambda type: type if next(at) == 0 else replace(type, device=beside)


NUMBER, ROW, THERE = "Float(device=cpu)", "Float(*, device=cpu)", "Float(*, device=cuda:0)"


@pytest.mark.parametrize(
    ("one", "other", "device"),
    [
        (THERE, THERE, "cuda:0"), (THERE, NUMBER, "cuda:0"), (NUMBER, THERE, "cuda:0"), (THERE, "Tensor", "cuda:0"),
        ("Tensor", THERE, "cuda:0"), (ROW, "Tensor", "cpu"), (ROW, NUMBER, "cpu"), (NUMBER, NUMBER, "cpu"),
        (NUMBER, "Tensor", None), ("Tensor", "Tensor", None), (THERE, ROW, None),
        (THERE, "Float(*, device=cuda:1)", None), (THERE, "Tensor(device=cpu)", "cuda:0"),
        ("Tensor(device=cpu)", "Tensor", None),
    ],
)  # fmt: skip
def test_operands_are_on_one_device_but_for_numbers(one: str, other: str, device: str | None) -> None:
    graph = parse_ir(f"""
graph(%x : {one}, %y : {other}):
  %1 : int = prim::Constant[value=1]()
  %z : Tensor = aten::add(%x, %y, %1)
  return (%z)
""")
    assert find_facts(graph)[graph.outputs[0]].device == (device and scalars.device(device))


def test_tensors_that_are_moved_are_where_they_are_brought() -> None:
    graph = parse_ir("""
graph(%x : Float(*, device=cuda:0), %y : Tensor):
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %there : Device = prim::Constant[value="cuda:1"]()
  %some : Device = prim::Constant[value="cuda"]()
  %a : Tensor = aten::cpu(%x)
  %b : Tensor = aten::to(%x, %y, %no, %no, %none)
  %c : Tensor = aten::type_as(%y, %x)
  %d : Tensor = aten::to(%x, %there, %none, %no, %no)
  %e : Tensor = aten::to(%x, %some, %none, %no, %no)
  %f : Tensor = aten::cuda(%a)
  return (%a, %b, %c, %d, %e, %f)
""")
    facts = find_facts(graph)
    assert [str(facts[value].device) for value in graph.outputs] == ["cpu", "None", "cuda:0", "cuda:1", "None", "None"]


@pytest.mark.parametrize("kind", ["conv1d", "conv2d", "conv3d"])
def test_convolutions_have_the_dtype_of_any_operand(kind: str) -> None:
    n = int(kind[4])
    sizes = ", ".join(["4"] * (n + 2))

    def dtype(x: str, weight: str) -> object:
        x, weight = (each if each == "Tensor" else f"{each}({sizes})" for each in (x, weight))
        ones = f"[{', '.join(['1'] * n)}]"
        graph = parse_ir(
            f"graph(%x : {x}, %w : {weight}, %b : Tensor):\n  %s : int[] = prim::Constant[value={ones}]()\n"
            f"  %g : int = prim::Constant[value=1]()\n"
            f"  %1 : Tensor = aten::{kind}(%x, %w, %b, %s, %s, %s, %g)\n  return (%1)\n"
        )
        run_pass("propagate_dtype", graph)
        return graph.outputs[0].type.dtype  # type: ignore[attr-defined]

    assert dtype("Char", "Char") == dtype("Tensor", "Char") == dtype("Char", "Tensor")
    assert str(dtype("Char", "Char")) == "torch.int8"
    assert dtype("Float", "Long") is None
    assert dtype("Tensor", "Tensor") is None
