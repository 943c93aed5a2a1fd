"""Graphs as plain data, and back."""

from __future__ import annotations

import marshal
from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.aten.values.tensor import Tensor
from engine.frontend.compilation.compile import compile_source
from engine.ir.flat import NotPlain, flat_type, flatten, type_of_flat, unflatten
from engine.ir.graph import Graph
from engine.lang.scalars import device, float32
from engine.lang.source import Source
from engine.lang.types import (
    BOOL,
    INT,
    NONE,
    STR,
    TENSOR,
    ClassType,
    DictType,
    FunctionType,
    FutureType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    union_of,
)

PROGRAM = """
def f(x: Tensor, n: int, names: Dict[str, List[int]]) -> Tuple[Tensor, Optional[int]]:
    y = x
    last: Optional[int] = None
    for i in range(n):
        if i in names["a"]:
            y = torch.add(y, x, alpha=i)
        else:
            last = i
    return torch.relu(y) * 0.5, last
"""


@dataclass
class Known:
    """References to a class and a table of tensors."""

    text: Source
    types: dict[str, Type] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)

    def name_of_source(self, source: Source) -> str:
        return "text" if source is self.text else _unknown(source.filename)

    def source(self, name: str) -> Source:
        return self.text if name == "text" else _unknown(name)

    def name_of_type(self, type: Type) -> str:
        return next((name for name, known in self.types.items() if known is type), "") or _unknown(type)

    def type(self, name: str) -> Type:
        return self.types.get(name) or _unknown(name)

    def name_of_function(self, type: FunctionType) -> str:
        return _unknown(type)

    def function(self, name: str) -> FunctionType:
        return _unknown(name)

    def name_of_tensor(self, tensor: Tensor) -> int:
        return next((i for i, known in enumerate(self.tensors) if known is tensor), None) or _unknown(tensor)

    def tensor(self, name: int) -> Tensor:
        return self.tensors[name]


def _unknown(what: object) -> Any:
    raise NotPlain(str(what))


def _shown(graph: Graph) -> list[Any]:
    return [
        (
            node.kind,
            node.range and (node.range.start, node.range.end),
            node.op,
            [value.unique for value in node.outputs],
        )
        for node in graph.all_nodes()
    ]


def compiled() -> tuple[Graph, Known]:
    graph = compile_source(PROGRAM).functions["f"].graph
    source = next(node.range.source for node in graph.nodes() if node.range is not None)
    return graph, Known(source)


def test_a_graph_comes_back_equal() -> None:
    graph, known = compiled()
    data = marshal.loads(marshal.dumps(flatten(graph, known)))
    found = unflatten(data, known)
    assert str(found) == str(graph)
    assert _shown(found) == _shown(graph)
    assert found.create("aten::relu").output.unique == graph.create("aten::relu").output.unique


def test_new_names_are_told_apart_as_they_are_in_the_graph() -> None:
    graph, known = compiled()
    found = unflatten(flatten(graph, known), known)
    for each in (graph, found):
        each.outputs[0].set_debug_name("y")
    assert str(found) == str(graph)


CLASS = ClassType("__torch__.C")


@pytest.mark.parametrize(
    "type",
    [
        TENSOR, INT, NONE, ListType(OptionalType(TENSOR)), DictType(STR, ListType(INT)),
        TupleType((INT, TupleType(()))), FutureType(BOOL), union_of([INT, STR]), union_of([INT, STR, NONE]), CLASS,
        ListType(CLASS), TensorType(float32, (2, None), (3, 1), False, device("cpu")),
        TensorType(sizes=(None,), symbols=(-1,)),
    ],
)  # fmt: skip
def test_types_come_back(type: Type) -> None:
    known = Known(Source(""), {"__torch__.C": CLASS})
    data = marshal.loads(marshal.dumps(flat_type(type, known)))
    found = type_of_flat(data, known)
    assert found == type
    assert str(found) == str(type)
    assert found is type or not isinstance(data, str)


def test_what_has_no_name_is_refused() -> None:
    known = Known(Source(""))
    with pytest.raises(NotPlain):
        flat_type(CLASS, known)
    with pytest.raises(NotPlain):
        type_of_flat(("named", "__torch__.D"), known)


def test_ranges_of_another_text_are_refused() -> None:
    graph, _ = compiled()
    with pytest.raises(NotPlain):
        flatten(graph, Known(Source(PROGRAM)))


def test_an_operator_that_is_not_there_any_more_is_refused() -> None:
    graph, known = compiled()
    data = flatten(graph, known)
    with pytest.raises(NotPlain, match=r"aten::gone\.one"):
        unflatten(eval(repr(data).replace("aten::relu", "aten::gone.one")), known)
