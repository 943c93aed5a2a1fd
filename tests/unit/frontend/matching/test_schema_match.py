"""Calls against schemas: which arguments fit, what they are converted to, what is said when they do not."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source
from engine.frontend.matching.schema_match import Actual, Call, match_schema, match_schemas
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.lang.errors import CompileError
from engine.lang.schema_parser import parse_schema, parse_type


def call(graph: Graph, *types: str, **kwargs: str) -> Call:
    args = [Actual(graph.add_input(type=parse_type(text))) for text in types]
    named = [Actual(graph.add_input(name, parse_type(text)), None, name) for name, text in kwargs.items()]
    return Call(args, named)


def matched(schema: str, *types: str, **kwargs: str) -> str:
    """The graph that the call makes, and its result types."""
    graph = Graph()
    found = match_schema(graph, parse_schema(schema), call(graph, *types, **kwargs))
    for value in found.inputs:
        graph.register_output(value)
    nodes = [node.kind for node in graph.nodes()]
    return f"{' '.join(nodes)} -> {', '.join(map(str, found.return_types))}"


@pytest.mark.parametrize(
    ("schema", "types", "wanted"),
    [
        ("aten::f(int a) -> int", ["int"], " -> int"),
        ("aten::f(int a) -> int", ["Tensor"], "aten::IntImplicit -> int"),
        ("aten::f(float a) -> int", ["Tensor"], "aten::FloatImplicit -> int"),
        ("aten::f(Scalar a) -> int", ["Tensor"], "aten::ScalarImplicit -> int"),
        ("aten::f(Scalar a) -> int", ["int"], " -> int"),
        ("aten::f(int a) -> int", ["bool"], "aten::Int -> int"),
        ("aten::f(Device a) -> int", ["str"], "aten::device -> int"),
        ("aten::f(int[2] a) -> int", ["int"], "prim::ListConstruct -> int"),
        ("aten::f(int[] a) -> int", ["(int, int)"], "prim::TupleUnpack prim::ListConstruct -> int"),
        ("aten::f(int? a) -> int", ["NoneType"], " -> int"),
        ("aten::f(int? a) -> int", ["int"], " -> int"),
        ("aten::f(t[] a) -> t", ["str[]"], " -> str"),
        ("aten::f(t[] a, t b) -> t[]", ["float[]", "float"], " -> float[]"),
        ("aten::f(Dict(str, t) a) -> (str, t)", ["Dict(str, int)"], " -> str, int"),
        ("aten::f(int a, int b=3, *, str c='x') -> int", ["int"], "prim::Constant prim::Constant -> int"),
        ("aten::f(Tensor self, int[] sizes) -> Tensor", ["Tensor", "int", "int"], "prim::ListConstruct -> Tensor"),
    ],
)
def test_what_fits(schema: str, types: list[str], wanted: str) -> None:
    assert matched(schema, *types) == wanted


@pytest.mark.parametrize(
    ("schema", "types", "kwargs", "message"),
    [
        ("aten::f(int a) -> int", ["float"], {}, "type 'int' for argument 'a' but instead found type 'float'."),
        ("aten::f(int a) -> int", [], {}, "Argument a not provided."),
        ("aten::f(int a) -> int", ["int", "int"], {}, "Expected at most 1 arguments but found 2 positional arguments."),
        ("aten::f(int alpha) -> int", ["int"], {"alpa": "int"}, "Keyword argument alpa unknown."),
        ("aten::f(int a) -> int", ["int"], {"a": "int"}, "Keyword argument a specified twice."),
        ("aten::f(int a, *, int b) -> int", ["int", "int"], {}, "Argument b not provided."),
        ("aten::f(t[] a, t b) -> t", ["int[]", "float"], {}, "Type variable 't' previously matched to type int"),
        ("aten::f(Future(t) a) -> t", ["int"], {}, "Cannot match a future to int"),
        ("aten::f(int[] a) -> t", ["Tensor[]"], {}, "Empty lists default to List[Tensor]"),
        ("aten::f(t? a) -> t", ["NoneType"], {}, "T could not be inferred from actual type None"),
    ],
)  # fmt: skip
def test_what_does_not_fit(schema: str, types: list[str], kwargs: dict[str, str], message: str) -> None:
    graph = Graph()
    with pytest.raises(CompileError) as error:
        match_schema(graph, parse_schema(schema), call(graph, *types, **kwargs))
    assert message in str(error.value)
    if "alpa" in message:
        assert error.value.hints == ("did you mean 'alpha'?",)
    assert graph.block.is_empty(), "a call that does not fit leaves the graph alone"


def test_overloads_are_tried_first_without_conversions() -> None:
    schemas = [parse_schema("aten::f.int(int a) -> int"), parse_schema("aten::f.Tensor(Tensor a) -> Tensor")]
    graph = Graph()
    assert match_schemas(graph, schemas, call(graph, "Tensor"))[0] == 1
    assert match_schemas(graph, schemas, call(graph, "bool"))[0] == 0


def test_every_overload_says_why_it_does_not_fit() -> None:
    schemas = [parse_schema("aten::f.int(int a) -> int"), parse_schema("aten::f.str(str a) -> str")]
    graph = Graph()
    with pytest.raises(CompileError) as error:
        match_schemas(graph, schemas, call(graph, "int?"))
    text = str(error.value)
    assert "Arguments for call are not valid.\nThe following variants are available:" in text
    assert "aten::f.int(int a) -> int:\n  Expected a value of type 'int'" in text
    assert "aten::f.str(str a) -> str:\n  Expected a value of type 'str'" in text
    assert "is not None" in error.value.hints[0]


def test_a_keyword_that_python_knows_has_another_way_here() -> None:
    with pytest.raises(CompileError) as error:
        compile_source("def f():\n    return torch.ones(3, requires_grad=True)")
    assert error.value.hints == ("no function takes requires_grad here: write .requires_grad_() behind the call",)


def test_self_goes_to_the_parameter_of_that_name() -> None:
    graph = Graph()
    schema = parse_schema("aten::index(Tensor other, Tensor self) -> Tensor")
    first, second = graph.add_input("x"), graph.add_input("y")
    found = match_schema(graph, schema, Call([Actual(first)], (), Actual(second)))
    assert found.inputs == [first, second]
    with pytest.raises(CompileError, match="Provided self argument not used"):
        match_schema(graph, parse_schema("aten::f(Tensor a) -> Tensor"), Call([Actual(first)], (), Actual(second)))


def test_defaults_are_constants_in_order() -> None:
    graph = Graph()
    schema = parse_schema("aten::sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, int? dtype=None) -> Tensor")
    found = match_schema(graph, schema, call(graph, "Tensor"))
    kinds = [str(value.type) for value in found.inputs]
    assert kinds == ["Tensor", "NoneType", "bool", "NoneType"]
    assert insert_constant(graph, 1).type == parse_type("int")
