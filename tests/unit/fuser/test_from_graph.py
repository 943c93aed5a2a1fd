"""Groups of graphs as kernels equal the operators run one by one: values, shapes, strides, dtypes, guards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.executor.plans.executor import executor_of
from engine.fuser import from_graph, stub
from engine.fuser.from_graph import NotFused
from engine.ir.clone import copy_graph

_SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -88.0, 0.5, 1.5]


def _tensor(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    random = np.random.default_rng(seed + sum(shape))
    return torch.from_numpy((random.standard_normal(shape) * 3).astype(dtype))


def _missed(*args: Any) -> Any:
    raise AssertionError("no kernel takes these arguments")


def _kernel(text: str, args: Sequence[Any]) -> tuple[Any, Any]:
    """The kernel of `def f(...)`, and the function itself."""
    unit = torch.jit.CompilationUnit(text)
    with torch.no_grad():
        plan = executor_of(unit._unit.functions["f"]).plan_for(args)
    return stub.bind("f", [from_graph.lower(copy_graph(plan.graph), args)], _missed), unit.f


def _check(text: str, *args: Any, others: Sequence[Sequence[Any]] = (), tolerance: float = 2e-5) -> None:
    """The kernel made for the first arguments gives what the program gives, for them and for others."""
    kernel, function = _kernel(f"def f({text.partition(':')[0]}):\n    return {text.partition(':')[2]}\n", args)
    for given in (args, *others):
        with torch.no_grad():
            found, expected = kernel(*given), function(*given)
        assert isinstance(found, tuple) == isinstance(expected, tuple)
        for a, b in zip(_all(found), _all(expected), strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance, equal_nan=True)


def _all(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


POINTWISE = [
    "x: torch.tanh(x) * torch.sigmoid(x) + x",
    "x: torch.relu(x) - torch.exp(-x * x)",
    "x: torch.nn.functional.gelu(x) + torch.nn.functional.silu(x)",
    "x: x.clamp(-1.0, 1.0) + x.clamp(min=0.5)",
    "x: torch.where(x > 0, x, x * 0.1)",
    "x: x.masked_fill(x < 0, 2.0)",
    "x: torch.abs(x) ** 2 + torch.sqrt(torch.abs(x))",
    "x: (x > 0.5) & (x < 2.0)",
    "x: torch.floor(x) + torch.round(x) % 2",
    "x: (x / 0.0) + torch.log(x)",
    "x: torch.isnan(x) | torch.isinf(x)",
]


@pytest.mark.parametrize("text", POINTWISE)
def test_pointwise(text: str) -> None:
    x = torch.from_numpy(np.array(_SPECIAL * 3, np.float32).reshape(4, 9))
    _check(text, x, others=[[_tensor(5, 77)], [_tensor(0, 3)]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.bool_])
def test_dtypes(dtype: Any) -> None:
    x, y = _tensor(3, 5, dtype=dtype), _tensor(3, 5, dtype=dtype, seed=1)
    _check("x, y: x * y + x", x, y, tolerance=2e-3 if dtype is np.float16 else 1e-6)
    _check("x, y: (x == y, x.to(torch.float32) / 3)", x, y, tolerance=2e-3)
    if dtype is not np.bool_:
        _check("x, y: torch.maximum(x, y) - 2", x, y, tolerance=2e-3)


def test_promotion() -> None:
    x, i, h = _tensor(4, 3), _tensor(3, dtype=np.int64), _tensor(4, 1, dtype=np.float16)
    _check("x, i, h: (x + i, i * h, i / 2, i + 1.5, h * x)", x, i, h, tolerance=2e-3)


def test_broadcasting_serves_other_sizes() -> None:
    shapes = [((4, 1, 5), (3, 1), (5,)), ((7, 1, 2), (9, 1), (2,))]
    first, second = ([_tensor(*shape) for shape in given] for given in shapes)
    _check("x, y, z: x * y + z - y", *first, others=[second])


def test_numbers_are_parameters() -> None:
    kernel, function = _kernel("def f(x, a: float, n: int):\n    return x * a + n\n", [_tensor(3, 4), 0.5, 3])
    for a, n in ((0.5, 3), (2.0, -7)):
        np.testing.assert_allclose(
            kernel(_tensor(5, 4), a, n).numpy(), function(_tensor(5, 4), a, n).numpy(), rtol=1e-6
        )


def test_strides() -> None:
    base = _tensor(6, 8)
    _check(
        "x, y: (x * 2 + y).contiguous()",
        base.t()[::2],
        _tensor(4, 6),
        others=[[_tensor(10, 14).t()[::2], _tensor(7, 10)]],
    )
    _check("x: x + 1", base[:, ::3])


CHOOSING = [
    "x: (x.transpose(0, 1) * 2).contiguous()", "x: (x.t() + 1).contiguous()", "x: x.permute(1, 0).exp().contiguous()",
    "x: x.unsqueeze(1) + x.unsqueeze(0)",
    "x: x[1] * 2 + x[-1]", "x: torch.cat([x, x * 2, x], 1) + 1", "x: torch.cat([x, x + 1]).relu()",
    "x: x.contiguous().to(torch.float64) * 3",
]  # fmt: skip


@pytest.mark.parametrize("text", CHOOSING)
def test_choosing(text: str) -> None:
    _check(text, _tensor(4, 6), others=[[_tensor(5, 3)]])


def test_chunks() -> None:
    text = "def f(x):\n    a, b, c = x.chunk(3, 1)\n    return a * torch.sigmoid(b), torch.tanh(c) + a\n"
    kernel, function = _kernel(text, [_tensor(4, 9)])
    for x in (_tensor(4, 9), _tensor(2, 30)):
        for a, b in zip(kernel(x), function(x), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


REDUCING = [
    "x: x.sum()", "x: x.sum(0) * 2", "x: (x * x).sum(-1, True) + x", "x: x.mean(1) + x.sum(1)", "x: x.amax(1)",
    "x: x - x.amin(0)", "x: x.argmax(1)", "x: x.argmin()", "x: (x > 0).any(1)", "x: (x > 9).all()",
    "x: torch.softmax(x, -1) * 2", "x: torch.softmax(x, 0)", "x: torch.log_softmax(x * 3, 1)",
    "x: x.var(1) + x.std(1, False)", "x: (x - x.mean(1, True)) / (x.std(1, keepdim=True) + 0.1)",
    "x: x.prod(1)", "x: (x * x).mean()", "x: torch.softmax(x, 1).sum(0)",
]  # fmt: skip


@pytest.mark.parametrize("text", REDUCING)
def test_reductions(text: str) -> None:
    _check(text, _tensor(5, 33), others=[[_tensor(3, 200)], [_tensor(1, 7)]], tolerance=1e-4)


def test_layer_norm() -> None:
    text = "x, w, b: torch.layer_norm(torch.nn.functional.gelu(x + b), [40], w, b, 1e-5)"
    _check(text, _tensor(6, 40), _tensor(40), _tensor(40, seed=1), tolerance=1e-4)


def test_sums_of_nothing() -> None:
    _check("x: x.sum(1)", _tensor(3, 0))
    _check("x: x.sum(0)", _tensor(0, 3))


def test_rows_in_one_loop() -> None:
    """A softmax with what comes before and after goes over memory row by row."""
    kernel = from_graph.lower(_graph("x: torch.softmax(x * 0.5, -1) + 1", _tensor(8, 16)), [_tensor(8, 16)]).kernel
    assert [type(each).__name__ for each in kernel.body] == ["For"]


def _graph(text: str, *args: Any) -> Any:
    unit = torch.jit.CompilationUnit(f"def f({text.partition(':')[0]}):\n    return {text.partition(':')[2]}\n")
    with torch.no_grad():
        return copy_graph(executor_of(unit._unit.functions["f"]).plan_for(args).graph)


def test_nodes_that_do_not_fuse_are_named() -> None:
    x = _tensor(3, 3, dtype=np.float64)
    with pytest.raises(NotFused) as found:
        from_graph.lower(_graph("x: torch.mm(x + 1, x)", x), [x])
    assert found.value.node.kind == "aten::mm"


def test_guards() -> None:
    kernel, _ = _kernel("def f(x, y):\n    return x + y\n", [_tensor(4, 3), _tensor(4, 3)])
    for given in ([_tensor(4, 3), _tensor(3)], [_tensor(4, 3), _tensor(1, 3)], [_tensor(4, 3), _tensor(3, 4).t()]):
        with pytest.raises(AssertionError, match="no kernel"):
            kernel(*given)


@pytest.mark.parametrize("keeps", [True, False])
def test_numbers_that_a_kernel_has_to_know_are_guarded(keeps: bool) -> None:
    x = _tensor(3, 5)
    kernel, function = _kernel("def f(x, dim: int, keeps: bool):\n    return (x * 2).sum(dim, keeps)\n", [x, 1, keeps])
    np.testing.assert_allclose(kernel(x, 1, keeps).numpy(), function(x, 1, keeps).numpy(), rtol=1e-6)
    for others in ((0, keeps), (1, not keeps)):
        with pytest.raises(AssertionError, match="no kernel"):
            kernel(x, *others)
