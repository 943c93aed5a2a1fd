"""Graphs under the original's names."""

from typing import Any

import pytest

import engine
import engine.torch as torch
from engine.lang.errors import ArgumentError
from tests.unit.torch import facade_homes

TEXT = """graph(%x : Float(2, 3), %b : bool):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%x, %x, %1)
  %r : Tensor = prim::If(%b)
    block0():
      %4 : Tensor = aten::relu(%2)
      -> (%4)
    block1():
      -> (%2)
  return (%r)
"""


@pytest.fixture
def graph() -> Any:
    return torch.jit.parse_ir(TEXT)


@pytest.mark.parametrize("path", facade_homes.HOMES)
def test_every_home_is_there(path: str) -> None:
    found: Any = torch
    for name in path.split("."):
        found = getattr(found, name)


def test_every_method_is_there(graph: Any) -> None:
    node = graph.findNode("aten::add")
    parts = {
        "GRAPH": graph, "NODE": node, "VALUE": node.output(), "BLOCK": node.owningBlock(),
        "USE": node.output().uses()[0], "TYPE": node.output().type(),
        "COMPILED": torch.jit.function_from_graph("f", graph),
    }  # fmt: skip
    for group, part in parts.items():
        missing = [name for name in getattr(facade_homes, group) if not hasattr(part, name)]
        assert not missing, group


def test_reading(graph: Any) -> None:
    node = graph.findNode("aten::add")
    assert (node.kind(), node.inputsSize(), node.outputsSize()) == ("aten::add", 3, 1)
    assert [value.debugName() for value in node.inputs()] == ["x", "x", "1"]
    assert node.schema() == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert node.matches("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    assert node.matches("aten::add(Tensor self, Tensor other, *, Scalar alpha) -> Tensor")
    for other in (
        "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        "aten::add(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        "aten::sub(Tensor self, Tensor other, *, Scalar alpha) -> Tensor",
    ):
        assert not node.matches(other)
    assert node.namedInput("alpha").toIValue() == 1
    assert node.inputsAt(0) == next(graph.inputs())
    assert [use.user.kind() for use in node.output().uses()] == ["aten::relu", "prim::Return"]
    assert [n.kind() for n in graph.nodes()] == ["prim::Constant", "aten::add", "prim::If"]
    assert graph.findNode("aten::relu", recurse=False) is None
    assert len(graph.findAllNodes("aten::relu")) == 1
    branch = next(graph.findNode("prim::If").blocks())
    assert [n.kind() for n in branch.nodes()] == ["aten::relu"]
    assert branch.owningNode() == graph.findNode("prim::If")
    assert node.sourceRange().startswith("<ir>:3:")
    assert node.output().node() == node
    assert not graph.alias_db().may_contain_alias(node.output(), next(graph.inputs()))
    with pytest.raises(AttributeError, match="did you mean 'findNode'"):
        graph.findNod("x")


def test_attributes(graph: Any) -> None:
    node = graph.findNode("prim::Constant")
    assert (node.i("value"), node.attributeNames(), node.kindOf("value")) == (1, ["value"], "i")
    assert node.i_("value", 5) == node
    assert node.output().toIValue() == 5
    node.is_("sizes", (1, 2)).ty_("kept", torch.jit.types.IntType.get())
    assert getattr(node, "is")("sizes") == (1, 2)
    assert node.ty("kept").kind() == "IntType"
    with pytest.raises(ArgumentError, match="'other' is undefined"):
        node.s("other")


def test_building(graph: Any) -> None:
    node = graph.findNode("aten::add")
    graph.create("aten::neg", [node.output()], 1).insertAfter(node)
    with graph.insert_point_guard(node):
        product = graph.insert("aten::mul", [next(graph.inputs()), 3])
    assert str(product.node()) == "%9 : Tensor = aten::mul(%x, %8)".replace("9", product.debugName()).replace(
        "8", product.node().inputsAt(1).debugName()
    )
    node.output().setDebugName("total").setType(torch.jit.types.TensorType.get().with_sizes([2, None]))
    assert "%total : Tensor(2, *) = aten::add" in str(graph)
    graph.addInput("extra").setType(torch.jit.types.ListType(torch.jit.types.IntType.get()))
    assert str(graph).startswith("graph(%x : Float(2, 3),\n      %b : bool,\n      %extra : int[]):")
    graph.eraseInput(2)
    graph.registerOutput(product)
    graph.makeMultiOutputIntoTuple()
    assert next(graph.outputs()).type().kind() == "TupleType"
    graph.lint()
    assert str(graph.copy()) == str(graph)
    graph.permuteInputs([1, 0])
    assert [value.debugName() for value in graph.inputs()] == ["b", "x"]
    with pytest.raises(ArgumentError, match="no operator 'aten::nothing'"):
        graph.insert("aten::nothing", [])


def test_passes_take_both_kinds_of_graphs(graph: Any) -> None:
    assert torch.jit.passes.dce(graph) is False
    assert torch.jit.passes.constant_pooling(engine.parse_ir(TEXT)) is False
    assert torch.run_pass("dce", graph) is graph
    assert torch.run_pipeline("inline,dce", graph) is graph
    again = torch.jit.passes.canonicalize(graph)
    assert isinstance(again, torch.jit.Graph)
    assert "%0 : Tensor" not in str(graph)
    torch.jit.passes.erase_shape_information(graph)
    assert next(graph.inputs()).type().sizes() is None
    with pytest.raises(AttributeError, match="did you mean 'peephole'"):
        torch.jit.passes.peephol  # noqa: B018


def test_functions_of_graphs(graph: Any) -> None:
    f = torch.jit.function_from_graph("f", graph)
    assert f(torch.ones(2, 3), True).tolist() == [[2.0] * 3] * 2
    assert torch.jit.interpret_graph(graph, (-torch.ones(1), True)).tolist() == [0.0]
    assert isinstance(f.graph_for(torch.ones(2, 3), True), torch.jit.Graph)
    assert isinstance(torch.jit.last_executed_optimized_graph(), torch.jit.Graph)
    with pytest.raises(ArgumentError, match="takes 2 inputs"):
        torch.jit.interpret_graph(graph, ())


def test_types() -> None:
    types = torch.jit.types
    known = types.TensorType.get().with_sizes([2, 3]).with_dtype(torch.float32).with_device("cpu")
    assert (known.sizes(), known.dim(), known.dtype(), known.scalarType()) == ([2, 3], 2, torch.float32, "Float")
    assert known.contiguous().strides() == [3, 1]
    partly = types.TensorType.get().with_sizes([2, None])
    assert (partly.sizes(), partly.varyingSizes()) == (None, [2, None])
    first, second = partly.symbolic_sizes()
    assert first == 2
    assert second < 0
    assert types.ListType(types.IntType.get()).getElementType() == types.IntType.get()
    pair = types.TupleType([types.IntType.get(), types.StringType.get()])
    assert (pair.str(), str(pair), repr(pair)) == ("(int, str)", "Tuple[int, str]", "Tuple[int, str]")
    assert types.IntType.get().isSubtypeOf(types.NumberType.get())
    assert isinstance(types.OptionalType.ofTensor().getElementType(), types.TensorType)
    assert types.new_symbol() != types.new_symbol()


def test_flags_keep_what_was_set() -> None:
    flags = torch.jit.flags
    for name in ("can_fuse_on_cpu", "texpr_fuser_enabled", "te_must_use_llvm_cpu", "symbolic_shapes_test_mode"):
        before = getattr(flags, f"get_{name}")()
        getattr(flags, f"set_{name}")(not before)
        assert getattr(flags, f"get_{name}")() is not before
        getattr(flags, f"set_{name}")(before)
    assert flags.set_profiling_executor(True) is False
    assert flags.set_profiling_executor(False) is True
    assert flags.graph_executor_optimize() is True
    with pytest.raises(AttributeError, match="no attribute 'set_nothing'"):
        flags.set_nothing  # noqa: B018


def test_awaitables_counters_profiles_and_upgraders() -> None:
    ran = []
    waiting = torch.jit.awaitable(lambda x: ran.append(x) or x + 1, 1)
    assert ran == []
    assert (torch.jit.awaitable_wait(waiting), waiting.wait(), ran) == (2, 2, [1])
    assert torch.jit.awaitable_nowait(5).wait() == 5
    logger = torch.jit.logging.LockingLogger()
    before = torch.jit.logging.set_logger(logger)
    logger.set_aggregation_type("mean", torch.jit.logging.AggregationType.AVG)
    for number in (1, 3):
        torch.jit.logging.add_stat_value("sum", number)
        torch.jit.logging.add_stat_value("mean", number)
    assert torch.jit.logging.set_logger(before) is logger
    assert (logger.get_counter_val("sum"), logger.get_counter_val("mean")) == (4, 2)
    profile = torch.jit.ScriptProfile()
    profile.enable()
    torch.jit.CompilationUnit("def f(x):\n    return x\n").f(torch.ones(1))
    profile.disable()
    assert "1  f\n" in profile.dump_string()
    upgraders = torch.jit.upgraders
    count = upgraders.size()
    upgraders.populate({"new_0_3": TEXT})
    assert upgraders.size() == count + 1
    assert upgraders.dump()["new_0_3"] == torch.jit.parse_ir(TEXT).str(False)
    assert upgraders.dump() == upgraders.dump()
    upgraders.remove({"new_0_3": ""})
    assert upgraders.size() == count


def test_alias_analysis_looks_into_calls_on_request() -> None:
    unit = torch.jit.CompilationUnit("""
def fresh(x, y):
    x.add_(1)
    return x + y
def same(x):
    return [x]
def caller(a, b):
    c, d, e = a + 1, b + 1, a + 2
    out = fresh(c, d)
    same(e)[0].mul_(2)
    return out
""")
    graph = unit.caller.graph
    calls = graph.findAllNodes("prim::CallFunction")
    (_, c, d), (_, e) = (list(node.inputs()) for node in calls)
    known, unknown = graph.alias_db(False, True), graph.alias_db()
    assert [known.has_writers(value) for value in (c, d, e)] == [True, False, True]
    assert [unknown.has_writers(value) for value in (c, d, e)] == [True, True, True]


@pytest.mark.parametrize(("known", "at_most", "exactly"), [("", True, None), ("requires_grad=0", False, False),
                                                        ("requires_grad=1", True, True)])  # fmt: skip
def test_a_value_may_require_a_gradient_unless_it_is_known_not_to(known: str, at_most: bool, exactly: Any) -> None:
    graph = torch._C.parse_ir(f"graph(%x : Float({known}), %n : int):\n  return (%x)")
    value, number = graph.inputs()
    assert (value.requires_grad(), value.requiresGrad()) == (at_most, exactly)
    assert (number.requires_grad(), number.requiresGrad()) == (False, None)


def test_alias_relations_as_graphviz() -> None:
    graph = torch._C.parse_ir("graph(%x : Tensor):\n  %1 : Tensor = aten::t(%x)\n  return (%1)")
    assert "digraph" in graph.alias_db().to_graphviz_str()
    assert "digraph" not in str(graph.alias_db())
