"""Shape functions give the sizes that operators give; unknown sizes have symbols, and a graph computes them."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.values.tensor import Tensor
from engine.ir.constants import constant_value, tensor_type_of
from engine.lang.types import TensorType
from engine.torch.jit.symbolic_shapes import functions
from engine.torch.jit.symbolic_shapes.evaluation import ShapeGraph
from engine.torch.jit.symbolic_shapes.propagation import sizes_of

nn = torch.nn
_CALLS = """
torch.mm(x, y)                               | 2 3, 3 4
torch.bmm(x, y)                              | 5 2 3, 5 3 4
torch.dot(x, y)                              | 3, 3
torch.mv(x, y)                               | 2 3, 3
torch.matmul(x, y)                           | 3, 3
torch.matmul(x, y)                           | 3, 5 3 4
torch.matmul(x, y)                           | 5 2 3, 3
torch.matmul(x, y)                           | 7 1 2 3, 5 3 4
F.linear(x, y)                               | 5 2 3, 4 3
F.linear(x, y)                               | 2 3, 3
torch.addmm(x, y, y.t())                     | 1 2, 2 3
x.t()                                        | 2 3
x.t()                                        | 2
x.transpose(-1, 0)                           | 2 3 4
x.permute(2, 0, -2)                          | 2 3 4
x.unsqueeze(-1)                              | 2 3
x.unsqueeze(0)                               | 2 3
x.squeeze()                                  | 1 2 1
x.squeeze(-1)                                | 1 2 1
x.squeeze(1)                                 | 1 2 1
x.view(-1, 3)                                | 2 6
x.reshape(3, 4)                              | 2 6
x.view_as(y)                                 | 2 6, 3 4
x.expand(4, -1, 3)                           | 2 1
x.flatten()                                  | 2 3 4
x.flatten(1)                                 | 2 3 4
x.flatten(0, 1)                              | 2 3 4
x[1]                                         | 2 3
x.select(-1, 0)                              | 2 3
x[1:]                                        | 5 3
x[:, -2:]                                    | 5 3
x[1:4:2]                                     | 5 3
x[7:9]                                       | 5 3
x.narrow(1, 1, 2)                            | 5 3
x.index_select(1, y.to(torch.int64))         | 5 3, 4
x.gather(1, torch.zeros([5, 7], dtype=torch.int64)) | 5 3
F.embedding(torch.zeros([2, 4], dtype=torch.int64), x) | 5 3
torch.cat([x, y], -1)                        | 2 3, 2 4
torch.stack([x, y], -1)                      | 2 3, 2 3
x.repeat(2, 1, 3)                            | 2 3
F.pad(x, [1, 2, 0, 3])                       | 2 3 4
x.mean([0, -1], True)                        | 2 3 4
x.sum([1])                                   | 2 3 4
x.sum()                                      | 2 3 4
x.amax([0])                                  | 2 3 4
x.logsumexp([-1], True)                      | 2 3 4
x.var([0], True, True)                       | 2 3 4
x.std([0, 1], True, False)                   | 2 3 4
x.argmax(1)                                  | 2 3 4
x.argmin(-1, True)                           | 2 3 4
x.max(0)                                     | 2 3 4
x.min(-1, True)                              | 2 3 4
x.topk(2, 1)                                 | 2 3 4
x.sort(0)                                    | 2 3 4
F.conv1d(x, y, stride=2, padding=1)          | 5 3 9, 4 3 3
F.conv2d(x, y, dilation=2)                   | 5 3 9 8, 4 3 3 2
F.conv2d(x, y)                               | 3 9 8, 4 3 3 2
F.conv3d(x, y)                               | 1 2 5 6 7, 3 2 2 3 4
F.conv_transpose1d(x, y, stride=3, output_padding=1) | 5 3 9, 3 4 3
F.conv_transpose2d(x, y, padding=1, dilation=2) | 5 3 9 8, 3 4 3 2
F.max_pool1d(x, 3)                           | 5 3 9
F.max_pool2d(x, 2, ceil_mode=True)           | 5 3 9 8
F.max_pool2d(x, 3, 2, 1)                     | 5 3 9 8
F.avg_pool2d(x, [2, 3])                      | 5 3 9 8
F.avg_pool1d(x, 2, ceil_mode=True)           | 5 3 9
F.adaptive_avg_pool2d(x, [2, 1])             | 5 3 9 8
torch.native_layer_norm(x, [4], None, None, 1e-5) | 2 3 4
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5) | 2 3 4
F.layer_norm(x, [4])                         | 2 3 4
F.softmax(x, -1)                             | 2 3
F.nll_loss(x, torch.tensor([0, 1]))          | 2 3
F.nll_loss(x, torch.tensor([0, 1]), reduction="none") | 2 3
torch.cross_entropy_loss(x, y, None, 0)       | 2 3, 2 3
torch.cross_entropy_loss(x, y)               | 2 3, 2 3
torch.mse_loss(x, y, 0)                      | 2 3, 2 3
F.l1_loss(x, y)                              | 2 3, 2 3
torch.where(x > 0, x, y)                     | 2 3, 3
torch.addcmul(x, y, y)                       | 2 1, 3
x + y                                        | 2 1, 3
x.clamp(0.0, 1.0)                            | 2 3
torch.zeros_like(x)                          | 2 3
torch.zeros([2, 3])                          |
torch.full([2, 3], 1.5)                      |
torch.rand(4)                                |
torch.arange(5)                              |
torch.arange(0.5, 4.0)                       |
torch.arange(1, 9, 3)                        |
torch.upsample_nearest2d(x, None, [2.0, 1.5]) | 1 2 4 4
F.dropout(x, 0.5, False)                     | 2 3
"""
CALLS = [tuple(part.strip() for part in row.split("|")) for row in _CALLS.strip().splitlines()]


@pytest.mark.parametrize(("call", "shapes"), CALLS)
def test_a_shape_function_gives_what_the_operator_gives(call: str, shapes: str) -> None:
    inputs = [torch.rand(*map(int, shape.split())) for shape in shapes.split(",") if shape.strip()]
    names = ", ".join(name for name, _ in zip("xy", inputs, strict=False))
    program = torch.jit.CompilationUnit(f"def f({names}):\n    return {call.replace('F.', 'torch.nn.functional.')}\n")
    graph = program.f.graph._ir
    for name in ("inline", "constant_propagation", "dce") if "F." in call else ():
        torch.jit.passes.run_pass(name, graph)
    for value, given in zip(graph.inputs, inputs, strict=True):
        value.set_type(tensor_type_of(given))
    asked = 0
    for node in graph.nodes():
        shapes_of_node = ShapeGraph()
        results = shapes_of_node.add(node)
        found = shapes_of_node.evaluated(results, sizes_of) if results is not None else []
        for output, sizes in zip(node.outputs, found, strict=False):
            assert sizes is not None
            output.set_type(TensorType(sizes=tuple(map(constant_value, sizes))))
            asked += 1
    results = program.f(*inputs)
    wanted = [tuple(each.shape) for each in (results if isinstance(results, tuple) else [results])]
    outputs = graph.outputs[0].node.inputs if isinstance(results, tuple) else graph.outputs
    assert [value.type.sizes for value in outputs] == wanted
    assert asked >= len(wanted)


def test_forms_that_write_into_a_given_tensor_have_none() -> None:
    out = table.find("aten::exp.out")
    assert out is not None
    assert functions.function_name(out) is None


def test_every_row_is_for_an_operator() -> None:
    for operator, function in functions.FUNCTIONS.items():
        assert table.find(operator) is not None, operator
        assert function in functions.compiled().functions


def with_sizes(function: Any, *given: list[int | None]) -> Any:
    graph = function.graph
    values = list(graph.inputs())
    for value, each in zip(values[len(values) - len(given) :], given, strict=True):
        value.setType(torch._C.TensorType.get().with_sizes(each))
    return graph


def symbols(graph: Any) -> dict[str, list[int] | None]:
    """Operator -> the sizes of its result, those of the first input's unknown ones being -1, -2, ..."""
    numbers: dict[int, int] = {}

    def number(size: int) -> int:
        return size if size >= 0 else numbers.setdefault(size, -len(numbers) - 1)

    found: dict[str, list[int] | None] = {}
    for value in [*graph.inputs(), *(each for node in graph.nodes() for each in node.outputs())]:
        if isinstance(value.type(), torch._C.TensorType):
            named = value.type().symbolic_sizes()
            found[value.node().kind().removeprefix("aten::")] = named and [number(size) for size in named]
    return found


def test_equal_sizes_have_one_symbol() -> None:
    @torch.jit.script
    def f(x: Tensor, w: Tensor):
        return torch.relu(torch.mm(x, w)) + 1

    graph = with_sizes(f, [None, 3], [3, None])
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    found = symbols(graph)
    assert found["mm"] == found["relu"] == found["add"]
    assert found["mm"] != [-1, -1]


def test_views_keep_the_symbols_of_what_they_show() -> None:
    @torch.jit.script
    def f(x: Tensor):
        y = x.transpose(0, 1).unsqueeze(2).expand(-1, -1, 5)
        return y.sum([0], True), x.flatten(), torch.stack([x, x]), x[:, 1:3]

    graph = with_sizes(f, [None, 3])
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    found = symbols(graph)
    (only,) = {size for size in found["transpose"] or () if size < 0}
    assert found["expand"] == [3, only, 5]
    assert found["sum"] == [1, only, 5]
    assert found["stack"] == [2, only, 3]
    assert found["slice"] == [only, 2]
    assert found["flatten"] not in ([only], None)


def test_what_is_computed_from_sizes_runs() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1)).eval()
    frozen = torch.jit.freeze(torch.jit.script(net))
    graph = with_sizes(frozen, [None, 3, None, None])
    mapping = torch._C._jit_pass_propagate_shapes_on_graph_and_build_compute(graph)
    result = next(graph.outputs()).type().symbolic_sizes()
    computed = mapping.partial_eval_shape_graph()
    order = [mapping.graph_output_to_symbolic_shape_dim()[value] for value in computed.outputs()]
    computed.makeMultiOutputIntoTuple()
    run = torch._C._create_function_from_graph("sizes", computed)
    for shape in ([2, 3, 20, 31], [1, 3, 9, 9]):
        known = dict(zip(order, run(shape), strict=True))
        assert [known.get(size, size) for size in result] == list(net(torch.rand(shape)).shape)


def test_no_graph_is_built_through_what_has_no_shape_function() -> None:
    @torch.jit.script
    def f(x: Tensor):
        return torch.einsum("ij->ji", x) + 1

    graph = with_sizes(f, [None, 3])
    assert torch._C._jit_pass_propagate_shapes_on_graph_and_build_compute(graph) is None


def test_the_shape_function_of_a_node_and_one_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "REGISTERED", {})

    @torch.jit.script
    def f(x: Tensor):
        return torch.special.i0e(x) @ torch.ones(3, 4)

    @torch.jit.script
    def twice(self: list[int]) -> list[int]:
        return [self[0] * 2, self[1]]

    graph = with_sizes(f, [None, 3])
    node = graph.findNode("aten::special_i0e")
    assert torch._C._jit_shape_compute_graph_for_node(node) is None
    torch._C._jit_register_shape_compute_graph_for_node(node, twice.graph)
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    first, last = symbols(graph)["special_i0e"] or ()
    assert (first < -1, last) == (True, 3)
    shape = torch._C._jit_shape_compute_graph_for_node(graph.findNode("aten::matmul"))
    assert torch._C._create_function_from_graph("product", shape)([2, 3], [3, 4]) == [2, 4]


def test_a_list_that_is_written_to_tells_no_sizes() -> None:
    @torch.jit.script
    def f(x: Tensor):
        sizes = [2]
        sizes.append(3)
        parts = [x]
        parts.append(x)
        return x.view(sizes) + 1, torch.cat(parts) * 2

    found = symbols(with_sizes(f, [6]))
    assert (found["view"], found["cat"]) == (None, None)


def test_sizes_of_other_tensors_are_known_sizes_and_never_negative() -> None:
    @torch.jit.script
    def f(x: Tensor, y: Tensor):
        return x.view(y.size(0), 8, y.size(-1)), x.reshape(y.size())

    symbol = torch._C._new_symbolic_shape_symbol()
    graph = with_sizes(f, [None], [5, 8, symbol])
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    assert symbols(graph)["view"] == symbols(graph)["reshape"]
    elements = next(graph.outputs()).type().elements()
    assert [each.symbolic_sizes() for each in elements] == [[5, 8, symbol]] * 2


def test_equal_computations_get_equal_symbols_and_inputs_sizes_come_first() -> None:
    @torch.jit.script
    def f(x: Tensor, y: Tensor):
        return torch.nn.functional.max_pool1d(x, 3), torch.nn.functional.max_pool1d(x, 3)

    graph = with_sizes(f, [None, 4, None], [2])
    torch._C._jit_pass_inline(graph)
    torch._C._jit_pass_constant_propagation(graph)
    mapping = torch._C._jit_pass_propagate_shapes_on_graph_and_build_compute(graph)
    first, second = (node.output().type().symbolic_sizes() for node in graph.findAllNodes("aten::max_pool1d"))
    given = next(graph.inputs()).type().symbolic_sizes()
    assert first == second
    assert first[0] == given[0]
    computed = mapping.partial_eval_shape_graph()
    order = [mapping.graph_output_to_symbolic_shape_dim()[value] for value in computed.outputs()]
    assert order == [given[0], given[2], first[2]]


def test_operators_of_one_kind_share_a_graph() -> None:
    @torch.jit.script
    def f(x: Tensor, y: Tensor):
        return x * y, x / y

    of = torch._C._jit_shape_compute_graph_for_node
    assert of(f.graph.findNode("aten::mul")) is of(f.graph.findNode("aten::div"))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("def f(x, y):\n    return [1]", "Expected supertype of int"),
        ("def f(x: List[int], y: List[int]) -> List[Tensor]:\n    return []", "but got graph_type Tensor"),
        ("def f(x: List[int], y: List[int]):\n    return x, y", "but got graph_type"),
        ("def f(x: List[int], y: List[int], z: Any, more: Any):\n    return x", "fewer arguments than schema aten"),
    ],
)
def test_a_graph_that_is_no_shape_function_is_refused(program: str, message: str) -> None:
    @torch.jit.script
    def add(x: Tensor, y: Tensor):
        return x + y

    graph = torch.jit.CompilationUnit(program).f.graph
    with pytest.raises(RuntimeError, match=message):
        torch._C._jit_register_shape_compute_graph_for_node(add.graph.findNode("aten::add"), graph)
    assert "aten::add.Tensor" not in functions.REGISTERED


def test_a_type_keeps_its_symbols() -> None:
    kind = torch._C.TensorType.get().with_sizes([None, 3, None])
    first, three, last = kind.symbolic_sizes()
    assert three == 3
    assert first != last
    assert kind.symbolic_sizes() == [first, 3, last]
    assert kind.with_dtype(torch.float32).symbolic_sizes() == [first, 3, last]


def test_a_graph_gets_the_sizes_of_its_inputs_again() -> None:
    @torch.jit.script
    def f(x: Tensor, y: Tensor):
        return x * y

    graph = f.graph
    torch._C._jit_pass_propagate_shapes_on_graph(with_sizes(f, [1, 6, 5], [1, 7, 1, 5]))
    assert graph.findNode("aten::mul").output().type().sizes() == [1, 7, 6, 5]
    with_sizes_again = list(graph.inputs())
    one, two, three = (torch._C._new_symbolic_shape_symbol() for _ in range(3))
    for value, given in zip(with_sizes_again, ([one, 1, three], [1, two, three]), strict=True):
        value.setType(value.type().with_sizes(given))
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    assert graph.findNode("aten::mul").output().type().symbolic_sizes() == [one, two, three]
    for value, given in zip(with_sizes_again, ([None, None], [None, None, None]), strict=True):
        value.setType(value.type().with_sizes(given))
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    first, *others = graph.findNode("aten::mul").output().type().symbolic_sizes()
    known = [size for value in graph.inputs() for size in value.type().symbolic_sizes()]
    assert first == known[2]
    assert not {*others} & {*known}


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_what_is_convolved_is_a_batch_where_nothing_is_known_of_it(dims: int) -> None:
    layer = [nn.Conv1d, nn.Conv2d, nn.Conv3d][dims - 1](2, 5, 3, stride=2)
    module = torch.jit.freeze(torch.jit.script(layer.eval()))
    mapping = torch._C._jit_pass_propagate_shapes_on_graph_and_build_compute(module.graph)
    batch, channels, *rest = module.graph.findNode(f"aten::conv{dims}d").output().type().symbolic_sizes()
    assert (channels, batch < 0, len({batch, *rest})) == (5, True, dims + 1)
    graph = mapping.partial_eval_shape_graph()
    found = list(mapping.graph_output_to_symbolic_shape_dim().values())
    assert found == [batch, *rest]
    graph.makeMultiOutputIntoTuple()
    sizes = [4, 2, *range(7, 7 + dims)]
    computed = torch._C._create_function_from_graph("sizes", graph)(sizes)
    assert list(computed) == [4, *layer(torch.zeros(sizes)).shape[2:]]


def test_shape_functions_can_be_called_by_name() -> None:
    shapes = torch.jit._shapes
    assert shapes.conv2d([1, 2, 9, 9], [5, 2, 3, 3], None, [2, 2], [1, 0], [1, 1], 1) == [1, 5, 5, 4]
    assert shapes.matmul([7, 1, 2, 3], [5, 3, 4]) == [7, 5, 2, 4]
    with pytest.raises(RuntimeError, match="mm multiplies matrices"):
        shapes.mm([2], [2, 3])
    with pytest.raises(AttributeError, match="no attribute 'relux'"):
        shapes.relux  # noqa: B018
