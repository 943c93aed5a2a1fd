"""Operators on bare arrays: the same numbers, bit by bit."""

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries
from engine.aten.kernels.pointwise import FLOAT_FORMS, FUNCTIONS, OF_FLOATS
from engine.aten.values.tensor import Tensor
from engine.executor.calls.call import call_function
from engine.executor.codegen.pointwise_expressions import has_pointwise_expression
from engine.executor.codegen.source import generate
from engine.executor.codegen.unboxing import Unboxing, makes_new_tensor
from engine.executor.plans.executor import executor_of
from engine.executor.plans.plan import ExecutionPlan
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.lang import scalars
from engine.lang.errors import ExecutionError
from engine.lang.types import FLOAT, NUMBER, TensorType

pytestmark = pytest.mark.usefixtures("plans_at_once")

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


def pointwise_expression() -> list[Op]:
    plain = [op for op in entries() if op.functional is None and makes_new_tensor(op) and has_pointwise_expression(op)]
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


@pytest.mark.parametrize("op", pointwise_expression(), ids=lambda op: op.qualified_name)
@pytest.mark.usefixtures("without_machine_code")
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
    assert len(pointwise_expression()) > 60


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
    forms = Unboxing(graph, records=False)
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
    forms = Unboxing(graph, records=False)
    first, last = graph.find_all_nodes("aten::t")
    assert forms.is_unboxed(first), "only a product is made of it"
    assert not forms.is_unboxed(last), "it is given away, and has to know whose memory it shows"
    text = generate(graph, records=False).text
    assert "exp" in text and text.count("new(Tensor)") == 2, "the product, which chunk takes, and the exponential"


def plan_of(text: str, *arguments: Tensor) -> ExecutionPlan:
    function = compile_source(text).functions["f"]
    call_function(function, arguments)
    return executor_of(function).plan_for(arguments)


def test_parts_that_only_arrays_are_made_of_are_arrays() -> None:
    text = "def f(x):\n    a, b = x.chunk(2, 1)\n    return torch.tanh(a) * b\n"
    x = Tensor(np.arange(8, dtype=np.float32).reshape(2, 4))
    plan = plan_of(text, x)
    assert plan.source.count("new(Tensor)") == 1
    assert np.array_equal(plan.entry(x).array, torch.tanh(Tensor(x.array[:, :2])).array * x.array[:, 2:])
    with pytest.raises(ExecutionError, match="Expected 2 elements in a list but found 1"):
        call_function(compile_source(text).functions["f"], [Tensor(x.array[:, :1])])


def test_parts_that_leave_are_tensors_that_share_memory() -> None:
    x = Tensor(np.zeros((2, 4), np.float32))
    plan = plan_of("def f(x):\n    a, b = x.chunk(2, 1)\n    return a, torch.tanh(b)\n", x)
    part, _ = plan.entry(x)
    part.array[0, 0] = 5
    assert x.array[0, 0] == 5


def test_products_of_matrices_are_of_bare_arrays() -> None:
    text = "def f(x, y):\n    return x.mm(y.t()) + 1.0\n"
    x, y = (Tensor(np.random.default_rng(i).random((3, 4)).astype(np.float32)) for i in range(2))
    plan = plan_of(text, x, y)
    assert ".T" in plan.source
    assert np.array_equal(plan.entry(x, y).array, x.array.dot(y.array.T) + np.float32(1))
    with pytest.raises(ExecutionError, match=r"shapes cannot be multiplied \(3x4 and 3x2\)"):
        call_function(compile_source(text).functions["f"], [x, Tensor(np.ones((2, 3), np.float32))])


def test_what_may_get_another_shape_is_asked_for_it() -> None:
    text = "def f(x):\n    y = x + 1.0\n    y.unsqueeze_(0)\n    return y.mm(x)\n"
    with pytest.raises(ExecutionError, match="must be a matrix"):
        plan_of(text, Tensor(np.ones((2, 2), np.float32)))


def test_a_result_of_another_dtype_is_not_taken_for_one_of_its_tensors_dtype() -> None:
    text = "def f(x):\n    return torch.softmax(x, 0, dtype=torch.float64) + 0.1\n"
    x = Tensor(np.array([1.0, 2.0, 3.0], np.float32))
    found, softmax = plan_of(text, x).entry(x).array, np.exp(x.array - 3, dtype=np.float64)
    assert np.allclose(found, softmax / softmax.sum() + 0.1, rtol=1e-15, atol=0)
