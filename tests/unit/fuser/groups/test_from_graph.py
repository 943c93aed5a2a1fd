"""Groups of graphs as kernels equal the operators run one by one: values, shapes, strides, dtypes, guards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.executor.plans.executor import executor_of
from engine.fuser.groups import from_graph
from engine.fuser.groups.from_graph import NotFused
from engine.ir.clone import copy_graph
from tests.table.gradient_programs import program
from tests.unit.fuser.kernels_of_groups import check, kernel_of, tensor
from tests.unit.fuser.samples_of_groups import CHOOSING, COLUMNS, MOVED, POINTWISE, REDUCING

_SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -88.0, 0.5, 1.5]


@pytest.mark.parametrize("text", POINTWISE)
def test_pointwise(text: str) -> None:
    x = torch.from_numpy(np.array(_SPECIAL * 3, np.float32).reshape(4, 9))
    check(text, x, others=[[tensor(5, 77)], [tensor(0, 3)]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.bool_])
def test_dtypes(dtype: Any) -> None:
    x, y = tensor(3, 5, dtype=dtype), tensor(3, 5, dtype=dtype, seed=1)
    check("x, y: x * y + x", x, y, tolerance=2e-3 if dtype is np.float16 else 1e-6)
    check("x, y: (x == y, x.to(torch.float32) / 3)", x, y, tolerance=2e-3)
    if dtype is not np.bool_:
        check("x, y: torch.maximum(x, y) - 2", x, y, tolerance=2e-3)


def test_promotion() -> None:
    x, i, h = tensor(4, 3), tensor(3, dtype=np.int64), tensor(4, 1, dtype=np.float16)
    check("x, i, h: (x + i, i * h, i / 2, i + 1.5, h * x)", x, i, h, tolerance=2e-3)


def test_broadcasting_serves_other_sizes() -> None:
    shapes = [((4, 1, 5), (3, 1), (5,)), ((7, 1, 2), (9, 1), (2,))]
    first, second = ([tensor(*shape) for shape in given] for given in shapes)
    check("x, y, z: x * y + z - y", *first, others=[second])


def test_numbers_are_parameters() -> None:
    kernel, function = kernel_of("def f(x, a: float, n: int):\n    return x * a + n\n", [tensor(3, 4), 0.5, 3])
    for a, n in ((0.5, 3), (2.0, -7)):
        np.testing.assert_allclose(kernel(tensor(5, 4), a, n).numpy(), function(tensor(5, 4), a, n).numpy(), rtol=1e-6)


def test_strides() -> None:
    base = tensor(6, 8)
    check(
        "x, y: (x * 2 + y).contiguous()",
        base.t()[::2],
        tensor(4, 6),
        others=[[tensor(10, 14).t()[::2], tensor(7, 10)]],
    )
    check("x: x + 1", base[:, ::3])


@pytest.mark.parametrize("text", CHOOSING)
def test_choosing(text: str) -> None:
    check(text, tensor(4, 6), others=[[tensor(5, 3)]])


@pytest.mark.parametrize("text", MOVED)
def test_results_lie_in_memory_as_those_of_operators_do(text: str) -> None:
    check(text, tensor(2, 3, 5), others=[[tensor(4, 3, 2)], [tensor(1, 3, 9)]])
    check(text, tensor(5, 2, 3).permute(1, 2, 0), others=[[tensor(2, 4, 3).permute(1, 2, 0)]])


def test_other_orders_in_memory_are_not_taken() -> None:
    kernel, _ = kernel_of("def f(x):\n    return x * 2\n", [tensor(5, 2, 3).permute(1, 2, 0)])
    with pytest.raises(AssertionError, match="no kernel"):
        kernel(tensor(2, 5, 3).transpose(1, 2))


IMAGE = tensor(1, 2, 4, 4)
ALONE = torch.tensor(2.0)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("max_pool2d", (IMAGE, [2, 2], [1, 1], [2, 2], [2, 2], False)),
        ("max_pool2d", (IMAGE, [2, 2], [0, 1], [0, 0], [1, 1], False)),
        ("max_pool2d", (IMAGE, [2, 2], [1, 1], [-1, 0], [1, 1], False)),
        ("celu", (IMAGE, 0.0)),
        ("select.int", (ALONE, 0, 0)),
        ("slice.Tensor", (ALONE, 0, 1, None, 1)),
        ("roll", (ALONE, [1], [0])),
        ("unflatten.int", (ALONE, 0, [1, 1])),
    ],
)
def test_there_are_no_kernels_of_calls_that_are_mistakes(name: str, args: tuple[Any, ...]) -> None:
    op = table.find(f"aten::{name}")
    assert op is not None
    function, tensors = program(op, args)
    with pytest.raises(NotFused):
        from_graph.lower(function.graph, tensors)


def test_chunks() -> None:
    text = "def f(x):\n    a, b, c = x.chunk(3, 1)\n    return a * torch.sigmoid(b), torch.tanh(c) + a\n"
    kernel, function = kernel_of(text, [tensor(4, 9)])
    for x in (tensor(4, 9), tensor(2, 30)):
        for a, b in zip(kernel(x), function(x), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("text", REDUCING)
def test_reductions(text: str) -> None:
    check(text, tensor(5, 33), others=[[tensor(3, 200)], [tensor(1, 7)]], tolerance=1e-4)


@pytest.mark.parametrize("text", COLUMNS)
def test_reductions_down_columns(text: str) -> None:
    check(text, tensor(40, 300), others=[[tensor(3, 128)], [tensor(70, 15)], [tensor(2, 1)]], tolerance=1e-4)


def test_columns_inside() -> None:
    check("x: (x.sum(1), (x * x).mean([0, 1]))", tensor(3, 20, 130), others=[[tensor(2, 1, 140)]], tolerance=1e-4)
    check("x: x.sum(1)", tensor(3, 130, 20).transpose(1, 2), tolerance=1e-4)


def test_rows_next_to_each_other_are_read_together() -> None:
    kernel = from_graph.lower(_graph("x: x.sum(0)", tensor(40, 300)), [tensor(40, 300)]).kernel
    (blocks,) = kernel.body
    down = blocks.body[-2]
    assert [each.kind for each in (down, *down.body)] == ["range", "vector"]


def test_long_columns_are_summed_in_parts() -> None:
    check("x: x.sum(0)", tensor(20000, 17), others=[[tensor(9000, 40)]], tolerance=1e-3)


def test_strides_of_nothing_and_one_are_known() -> None:
    check("x, y: x + y", tensor(4, 1).expand(4, 7), tensor(1, 7).expand(4, 7))
    check("x, y: x.sum(0) + y", tensor(1, 1).expand(30, 40), tensor(6, 80)[:, :40], tolerance=1e-4)
    kernel, _ = kernel_of("def f(x):\n    return x * 2\n", [tensor(4, 1).expand(4, 7)])
    with pytest.raises(AssertionError, match="no kernel"):
        kernel(tensor(4, 14)[:, ::2])


def test_layer_norm() -> None:
    text = "x, w, b: torch.layer_norm(torch.nn.functional.gelu(x + b), [40], w, b, 1e-5)"
    check(text, tensor(6, 40), tensor(40), tensor(40, seed=1), tolerance=1e-4)


def test_sums_of_nothing() -> None:
    check("x: x.sum(1)", tensor(3, 0))
    check("x: x.sum(0)", tensor(0, 3))


def test_rows_in_one_loop() -> None:
    """A softmax with what comes before and after goes over memory row by row."""
    kernel = from_graph.lower(_graph("x: torch.softmax(x * 0.5, -1) + 1", tensor(8, 16)), [tensor(8, 16)]).kernel
    assert [type(each).__name__ for each in kernel.body] == ["For"]


def _graph(text: str, *args: Any) -> Any:
    unit = torch.jit.CompilationUnit(f"def f({text.partition(':')[0]}):\n    return {text.partition(':')[2]}\n")
    with torch.no_grad():
        return copy_graph(executor_of(unit._unit.functions["f"]).plan_for(args).graph)


def test_nodes_that_do_not_fuse_are_named() -> None:
    x = tensor(3, 3, dtype=np.int64)
    with pytest.raises(NotFused) as found:
        from_graph.lower(_graph("x: torch.mm(x + 1, x)", x), [x])
    assert found.value.node.kind == "aten::mm"


def test_guards() -> None:
    kernel, _ = kernel_of("def f(x, y):\n    return x + y\n", [tensor(4, 3), tensor(4, 3)])
    for given in ([tensor(4, 3), tensor(3)], [tensor(4, 3), tensor(1, 3)], [tensor(4, 3), tensor(3, 4).t()]):
        with pytest.raises(AssertionError, match="no kernel"):
            kernel(*given)


@pytest.mark.parametrize("keeps", [True, False])
def test_numbers_that_a_kernel_has_to_know_are_guarded(keeps: bool) -> None:
    x = tensor(3, 5)
    program = "def f(x, dim: int, keeps: bool):\n    return (x * 2).sum(dim, keeps)\n"
    kernel, function = kernel_of(program, [x, 1, keeps])
    np.testing.assert_allclose(kernel(x, 1, keeps).numpy(), function(x, 1, keeps).numpy(), rtol=1e-6)
    for others in ((0, keeps), (1, not keeps)):
        with pytest.raises(AssertionError, match="no kernel"):
            kernel(x, *others)
