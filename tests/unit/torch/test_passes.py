"""Passes by name."""

import pytest

import engine
import engine.torch as torch
from engine.lang.errors import CompileError

DEAD = "graph(%x : int):\n  %y : int = aten::neg(%x)\n  return (%x)\n"


def test_a_pass_changes_the_graph_and_gives_it_back() -> None:
    graph = engine.parse_ir(DEAD)
    assert engine.run_pass("dce", graph) is graph
    assert "aten::neg" not in str(graph)


def test_a_pipeline_is_passes_in_order() -> None:
    graph = engine.parse_ir(DEAD)
    assert engine.run_pipeline(("constant_pooling", "dce"), graph) is graph
    assert "aten::neg" not in str(graph)


def test_an_unknown_pass_is_refused_with_the_nearest() -> None:
    with pytest.raises(CompileError, match="there is no pass 'dcee'"):
        engine.run_pass("dcee", engine.parse_ir(DEAD))


def test_branches_tell_the_lengths_of_lists() -> None:
    unit = torch.jit.CompilationUnit("""
def told(x: List[int], y: List[int]):
    known = True if len(x) == 5 else len(y) != 4
    assert not known
    return len(x), len(y)
def written(x: List[int]):
    assert len(x) == 4
    x.append(3)
    return len(x)
""")
    for function, known in ((unit.told, [None, 4]), (unit.written, [None])):
        torch._C._jit_pass_peephole_list_idioms(function.graph, refine_list_len=True)
        result = next(function.graph.outputs()).node()
        lengths = list(result.inputs()) if result.kind() == "prim::TupleConstruct" else [result.output()]
        assert [value.toIValue() for value in lengths] == known
    assert unit.told([1], [1, 2, 3, 4]) == (1, 4)
    assert unit.written([1, 2, 3, 4]) == 5


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_decompositions_of_variances_give_the_same(dtype: torch.dtype) -> None:
    def variances(x):  # type: ignore[no-untyped-def]
        return torch.var(x), x.var(unbiased=False), x.var(1, correction=2, keepdim=True), x.var([0, 2], correction=0)

    x, function = torch.randn(3, 4, 2, dtype=dtype), torch.jit.script(variances)
    torch._C._jit_pass_run_decompositions(function.graph)
    assert function.graph.findNode("aten::var") is None
    for found, expected in zip(function(x), variances(x), strict=True):
        torch.testing.assert_close(found, expected)


def test_programs_register_decompositions() -> None:
    def squared(x):  # type: ignore[no-untyped-def]
        return torch.pow(x, 2)

    def replaced(x):  # type: ignore[no-untyped-def]
        return torch.erfc(x)

    function, replacement = torch.jit.script(replaced), torch.jit.script(squared)
    torch.jit._register_decomposition(torch.ops.aten.erfc.default, replacement.graph)
    torch._C._jit_pass_run_decompositions(function.graph)
    assert function(torch.tensor([3.0])).tolist() == [9.0]
    with pytest.raises(AssertionError, match="Must pass specific op overload, not overload packet"):
        torch.jit._register_decomposition(torch.ops.aten.erfc, replacement.graph)
    with pytest.raises(RuntimeError, match="takes 1 values and gives 1, where 'aten::mm"):
        torch.jit._register_decomposition(torch.ops.aten.mm.default, replacement.graph)


def test_additions_and_activations_run_as_one() -> None:
    def positive(a, b):  # type: ignore[no-untyped-def]
        return torch.relu(a + b).add_(b).relu_()

    function = torch.jit.script(positive)
    torch._C._jit_pass_fuse_add_relu(function.graph)
    assert [node.kind() for node in function.graph.nodes()][1:] == ["aten::_add_relu", "aten::_add_relu_"]
    a, b = torch.randn(5), torch.randn(5)
    torch.testing.assert_close(function(a, b), positive(a, b))


def test_patterns_name_modules_by_their_classes() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.ReLU(), torch.nn.Tanh()

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.second(self.first(x))

    graph = torch.jit.script(Net()).graph
    pattern = """graph(%self, %x):
  %m = match::module[name="{}"](%self)
  %y = prim::CallMethod[name="forward"](%m, %x)
  return (%y)"""
    replacement = "graph(%self, %x):\n  %y = aten::sigmoid(%x)\n  return (%y)"
    assert not torch._C._jit_pass_custom_pattern_based_rewrite_graph(pattern.format("Sigmoid"), replacement, graph)
    assert torch._C._jit_pass_custom_pattern_based_rewrite_graph(pattern.format("Tanh"), replacement, graph)
    assert [node.kind() for node in graph.nodes()] == ["prim::GetAttr", "prim::CallMethod", "aten::sigmoid"]


def test_the_peephole_pass_of_torch_looks_at_aliases() -> None:
    def computed(x):  # type: ignore[no-untyped-def]
        return (x + 0.0) * 1 - 5

    function = torch.jit.script(computed)
    next(function.graph.inputs()).setType(torch._C.TensorType.create_from_tensor(torch.rand(2)))
    torch._C._jit_pass_peephole(function.graph, disable_shape_peepholes=True)
    kinds = {node.kind() for node in function.graph.nodes()}
    assert kinds >= {"aten::add", "aten::sub"} and "aten::mul" not in kinds, "the dtype of the sum is not known"
    torch._C._jit_pass_peephole(function.graph)
    assert function.graph.findNode("aten::add") is None
    assert torch.equal(function(torch.ones(2)), torch.full((2,), -4.0))


def test_calls_keep_what_only_the_peephole_pass_of_torch_removes() -> None:
    def computed(x):  # type: ignore[no-untyped-def]
        return torch.neg(x + 0)

    function = torch.jit.script(computed)
    assert str(function(torch.tensor(-0.0)).item()) == "-0.0", "the sum is 0.0"
