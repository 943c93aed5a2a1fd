"""Operators on bare arrays: the same numbers, bit by bit."""

import numpy as np
import pytest

from engine.aten.op import Op, entries
from engine.aten.pointwise import FUNCTIONS, OF_FLOATS
from engine.executor.source import generate
from engine.executor.tensor_forms import FLOAT_FORMS, TensorForms, is_written_out, makes_new_tensor
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.lang import scalars
from engine.lang.types import FLOAT, NUMBER, TensorType

VALUES = np.array([0.0, -0.0, 1.0, -2.5, 0.3, 80.0, -80.0, 1e30, np.inf, -np.inf, np.nan, 3.0])


@pytest.mark.parametrize("name", FLOAT_FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_form_gives_what_the_function_gives(name: str, dtype: type) -> None:
    x = VALUES.astype(dtype)
    scope = {"x": x, "y": x[::-1].copy(), **vars(np)}
    arguments = [x, scope["y"]] if "y" in FLOAT_FORMS[name] else [x]
    with np.errstate(all="ignore"):
        found, wanted = eval(FLOAT_FORMS[name], scope), FUNCTIONS[name](*arguments)
        quick = OF_FLOATS[name](*arguments) if name in OF_FLOATS else wanted
    assert found.dtype == wanted.dtype == dtype
    assert found.tobytes() == wanted.tobytes() == quick.tobytes()


_BITWISE = ("aten::bitwise", "aten::__")


def written_out() -> list[Op]:
    plain = [op for op in entries() if op.functional is None and makes_new_tensor(op) and is_written_out(op)]
    plain = [op for op in plain if not op.name.startswith(_BITWISE)]
    return [op for op in plain if all(a.type == NUMBER or isinstance(a.type, TensorType) for a in op.schema.arguments)]


def graph_of(op: Op, dtype: scalars.dtype) -> Graph:
    graph = Graph()
    inputs = []
    for argument in op.schema.arguments:
        is_tensor = isinstance(argument.type, TensorType)
        inputs.append(graph.add_input(argument.name, TensorType(dtype, (None,)) if is_tensor else FLOAT))
    node = graph.append(op.name, inputs)
    node.op = op
    graph.register_output(node.output)
    return graph


@pytest.mark.parametrize("op", written_out(), ids=lambda op: op.qualified_name)
def test_operators_that_are_written_out_give_what_they_give_otherwise(op: Op) -> None:
    for dtype, kind in ((scalars.float32, np.float32), (scalars.float64, np.float64)):
        generated = generate(graph_of(op, dtype), records=False)
        scope = dict(generated.environment)
        exec(generated.text, scope)
        from_tensor = scope["Tensor"]
        arguments = [
            from_tensor(VALUES.astype(kind)) if isinstance(a.type, TensorType) else 0.75 for a in op.schema.arguments
        ]
        found, wanted = scope["run"](*arguments), op.run(*arguments)
        assert found.array.dtype == wanted.array.dtype, generated.text
        assert found.array.tobytes() == wanted.array.tobytes(), generated.text


def test_there_are_many_of_them() -> None:
    assert len(written_out()) > 60


def test_dtypes_flow_through_branches_and_loops() -> None:
    graph = parse_ir("""
graph(%x : Float(*), %y : Double(*), %c : bool, %n : int):
  %a : Tensor = aten::neg(%x)
  %s : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%a)
  %d : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%y)
  %l : Tensor = prim::Loop(%n, %c, %x)
    block0(%i : int, %k : Tensor):
      %m : Tensor = aten::exp(%k)
      -> (%c, %m)
  %o : Tensor = prim::Loop(%n, %c, %x)
    block0(%j : int, %p : Tensor):
      %q : Tensor = aten::gt(%p, %p)
      -> (%c, %q)
  %t : (Tensor, Tensor, Tensor, Tensor) = prim::TupleConstruct(%s, %d, %l, %o)
  return (%t)
""")
    forms = TensorForms(graph, enabled=True)
    tuple_node = graph.find_node("prim::TupleConstruct")
    assert tuple_node is not None
    assert [str(forms.facts(v).dtype) for v in tuple_node.inputs] == ["float32", "None", "float32", "None"]


def test_parts_of_a_tensor_and_views_for_arrays_only() -> None:
    graph = parse_ir("""
graph(%x : Float(*, *), %w : Float(*, *), %two : int, %zero : int):
  %t : Tensor = aten::t(%w)
  %m : Tensor = aten::mm(%x, %t)
  %l : Tensor[] = aten::chunk(%m, %two, %zero)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)
  %c : Tensor = aten::exp(%a)
  %v : Tensor = aten::t(%c)
  %r : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%c, %b, %v)
  return (%r)
""")
    forms = TensorForms(graph, enabled=True)
    first, last = graph.find_all_nodes("aten::t")
    assert forms.is_raw(first), "only a product is made of it"
    assert not forms.is_raw(last), "it is given away, and has to know whose memory it shows"
    text = generate(graph, records=False).text
    assert "exp" in text and text.count("new(Tensor)") == 2, "the product, which chunk takes, and the exponential"
