"""Reading graphs back, and refusing what is none."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.cursor import Cursor
from engine.ir.literals import constant, unquoted
from engine.ir.parser import parse_ir
from engine.ir.printer import constant_text, quoted
from engine.ir.unit import Function
from engine.ir.verify import verify
from engine.lang.errors import IRError
from engine.lang.source import Source
from engine.lang.types import FLOAT, INT, STR, ClassType, FunctionType, ListType, TensorType

ALL_SORTS = r"""graph(%x.1 : Float(2, *, strides=[3, 1], requires_grad=0, device=cpu),
      %n : int,
      %d : Dict(str, int[])):
  %2 : NoneType = prim::Constant()
  %3 : float = prim::Constant[value=1e-10]()
  %4 : bool = prim::Constant[value=1]()
  %5 : str = prim::Constant[value="a\"b # no comment\n"]()
  %6 : Device = prim::Constant[value="cpu"]()
  %7 : complex = prim::Constant[value=0.+2.j]()
  %8 : (int, (float, str)) = prim::Constant[value=(1, (2., "x"))]()
  %9 : int[] = prim::Constant[value=annotate(List[int], [])]()
  %10 : Tensor = prim::Constant[value={3}]()
  %11 : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %12 : Function = prim::Constant[name="g"]()
  %13 : bool = prim::isinstance[types=[int, int[], Tensor?]](%n)
  %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=-1](%x.1)
  %14 : Tensor = aten::foo[f=0.5, s="x", is=[1, 2], ss=["a", "b"], ty=int[]](%a)
   = prim::If(%4)
    block0():
       = prim::Print(%5)
      -> ()
    block1():
      -> ()
  %y : Tensor = prim::Loop(%n, %4, %b)
    block0(%i : int, %inner : Tensor):
      %19 : Tensor = aten::neg(%inner)
      -> (%4, %19)
  return (%y)
"""


def test_text_is_repeated() -> None:
    graph = parse_ir(ALL_SORTS)
    verify(graph)
    assert str(graph) == ALL_SORTS


def test_without_equals_sign_types_and_with_comments() -> None:
    graph = parse_ir(
        "graph(%x, %c : bool): # inputs\n  prim::Print(%x) # f.py:3:4\n  %y = aten::neg(%x)\n"
        "  prim::If(%c)\n    block0():\n      -> ()\n    block1():\n      -> ()\n  return (%y)"
    )
    verify(graph)
    assert [node.kind for node in graph.nodes()] == ["prim::Print", "aten::neg", "prim::If"]
    assert str(graph.inputs[0].type) == "Tensor"


def test_names_and_numbers_are_kept() -> None:
    graph = parse_ir("graph(%x.7 : int):\n  %12 : int = aten::neg(%x.7)\n  %t : int = aten::neg(%12)\n  return (%t)\n")
    new = graph.append("aten::neg", [graph.inputs[0]], [INT]).output
    assert graph.inputs[0].name == "x.7"
    assert graph.find_all_nodes("aten::neg")[0].output.unique == 12
    assert new.debug_name not in str(parse_ir("graph(%x.7 : int, %12 : int):\n  return (%x.7)"))


def test_attribute_kinds() -> None:
    attributes = parse_ir(ALL_SORTS).find_all_nodes("aten::foo")[0].attributes
    assert [a.kind for a in attributes.values()] == ["f", "s", "is", "ss", "ty"]
    assert attributes["ty"].value == ListType(INT)


def test_values_of_constants_have_the_type_that_is_told() -> None:
    graph = parse_ir("graph():\n  %0 : float = prim::Constant[value=10000000000]()\n"
                     "  %1 : bool = prim::Constant[value=0]()\n"
                     "  %2 : Double(device=cpu) = prim::Constant[value={1}]()\n  return (%0)\n")  # fmt: skip
    first, second, third = (node.attr("value") for node in graph.nodes())
    assert isinstance(first, float)
    assert second is False
    assert third.dtype.name == "float64"


def test_classes_and_functions_are_resolved() -> None:
    known = {"__torch__.Foo": ClassType("__torch__.Foo"), "g": FunctionType(Function("g"))}
    text = (
        "graph(%x : __torch__.Foo,\n      %y : __torch__.Bar[]):\n"
        '  %2 : Function = prim::Constant[name="g"]()\n  return (%x)\n'
    )
    graph = parse_ir(text, known.get)
    assert graph.inputs[0].type is known["__torch__.Foo"]
    assert next(graph.nodes()).output.type is known["g"]
    assert str(graph) == text


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("graph(%x : int):\n  return (%y)", "variable with name 'y'", 2),
        ("graph(%x : int):\n  %y : int = add(%x)\n  return (%x)", "expected an operator", 2),
        ("graph(%x : wrong type):\n  return (%x)", "no type", 1),
        ("graph(%x : int):\n  %y : int = aten::neg(%x\n  return (%x)", "expected ')'", 3),
        ("graph(%x : int):\n", "expected 'return'", 2),
        ("graph(%x : int):\n  return (%x)\nmore", "expected the end", 3),
        ("graph():\n  %0 : Tensor = prim::Constant[value=<Tensor>]()\n  return (%0)", "does not tell", 2),
        ("graph():\n  %0 : Tensor[] = prim::Constant[value=[<Tensors>]]()\n  return (%0)", "does not tell", 2),
        ("", "expected 'graph'", 1),
    ],
)
def test_refusals_name_the_place(text: str, message: str, line: int) -> None:
    with pytest.raises(IRError, match=message.replace("(", r"\(").replace(")", r"\)")) as caught:
        parse_ir(text)
    assert caught.value.line == line


@given(st.text())
def test_strings_come_back(text: str) -> None:
    assert unquoted(quoted(text)) == text


VALUES = st.recursive(
    st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, min_size=1).map(tuple),
    max_leaves=6,
)  # fmt: skip


@given(VALUES)
def test_values_come_back(value: object) -> None:
    assert constant(Cursor(Source(constant_text(value))), None) == value


@pytest.mark.parametrize(("value", "type"), [([], ListType(STR)), ([1e10, 1.0], ListType(FLOAT))])
def test_typed_values_come_back(value: object, type: ListType) -> None:
    found = constant(Cursor(Source(constant_text(value, type))), type)
    assert found == value
    assert all(isinstance(each, float) for each in found)


def test_recorded_graphs_come_back() -> None:
    texts = (Path(__file__).parent / "recorded_graphs.txt").read_text().split("----\n")
    assert len(texts) > 20
    for text in texts:
        graph = parse_ir(text)
        verify(graph)
        assert str(graph) == text
    assert isinstance(parse_ir(texts[0]).inputs[0].type, TensorType)
