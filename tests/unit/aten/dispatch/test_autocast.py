"""What runs in which dtype inside of `autocast`; the dtypes are those that PyTorch gives."""

from __future__ import annotations

import threading

import pytest

import engine.torch as torch
from engine.aten.dispatch import autocast
from engine.aten.dispatch.table import entries
from engine.aten.values.hooks import HOOKS

F = torch.nn.functional
X = torch.tensor([[0.5, 0.25, 0.75], [1.0, 2.0, 0.125], [0.5, 1.5, 3.0]])
V = torch.tensor([0.5, 1.0, 0.25])
B = X.unsqueeze(0)
HALF = X.to(torch.bfloat16)
LABELS = torch.tensor([0, 1, 2])

FAST = {
    "matmul": lambda: X @ X, "vector": lambda: X @ V, "addmm": lambda: torch.addmm(X, X, X),
    "bmm": lambda: torch.bmm(B, B), "baddbmm": lambda: torch.baddbmm(B, B, B), "linear": lambda: F.linear(X, X, V),
    "einsum": lambda: torch.einsum("ij,jk->ik", X, X), "tensordot": lambda: torch.tensordot(X, X, 1),
    "conv1d": lambda: F.conv1d(B, B), "attention": lambda: F.scaled_dot_product_attention(B, B, B),
    "prelu": lambda: F.prelu(X, V[:1]), "half": lambda: X.half() @ X.half(),
    "lstm": lambda: torch.nn.LSTM(3, 4)(X)[1][1], "rnn": lambda: torch.nn.RNNCell(3, 4)(X),
    "softmax": lambda: torch.softmax(HALF, 0), "layer_norm": lambda: F.layer_norm(HALF, (3,)),
    "cat": lambda: torch.cat([HALF, HALF]), "exp": lambda: HALF.exp(),
}  # fmt: skip
EXACT = {
    "mv": lambda: torch.mv(X, V), "dot": lambda: torch.dot(V, V), "einsum": lambda: torch.einsum("ij,ij->ij", X, X),
    "prod": lambda: torch.prod(HALF), "mse_loss": lambda: F.mse_loss(HALF, HALF),
    "cross_entropy": lambda: F.cross_entropy(HALF, LABELS), "inverse": lambda: torch.inverse(HALF),
    "quantile": lambda: torch.quantile(V.to(torch.bfloat16), 0.5), "cat": lambda: torch.cat([X, HALF]),
    "stack": lambda: torch.stack([X, HALF]), "in place": lambda: X.clone().addmm_(X, X),
    "out": lambda: torch.mm(X, X, out=torch.empty(3, 3)), "gru": lambda: torch.nn.GRUCell(3, 4)(X),
}  # fmt: skip


@pytest.mark.parametrize("name", FAST)
def test_fast(name: str) -> None:
    with torch.autocast("cpu"):
        assert FAST[name]().dtype is torch.bfloat16


@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str) -> None:
    with torch.autocast("cpu"):
        assert EXACT[name]().dtype is torch.float32


def test_rows_name_policies() -> None:
    assert {entry.autocast for entry in entries()} == {"", *autocast.POLICIES}


def test_values_are_those_of_the_small_dtype() -> None:
    with torch.autocast("cpu"):
        product = X @ X
    assert product.tolist() == (HALF @ HALF).tolist()


def test_what_is_left_alone() -> None:
    with torch.autocast("cpu"):
        assert (X.double() @ X.double()).dtype is torch.float64
        assert (LABELS @ LABELS).dtype is torch.int64
        assert torch.mm(X.to(torch.complex64), X.to(torch.complex64)).dtype is torch.complex64
        with pytest.raises(RuntimeError, match="float16"):
            torch.cat([X.half(), X.half()])
        with pytest.raises(RuntimeError, match="same dtype"):
            X.double() @ X


def test_blocks_nest_and_end() -> None:
    assert HOOKS.trace is None
    with torch.autocast("cpu"):
        assert torch.is_autocast_enabled("cpu") and torch.is_autocast_cpu_enabled() and not torch.is_autocast_enabled()
        with torch.autocast("cpu", enabled=False):
            assert (X @ X).dtype is torch.float32
            assert not torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", dtype=torch.float16):
            assert (X @ X).dtype is torch.get_autocast_dtype("cpu") is torch.float16
        assert (X @ X).dtype is torch.bfloat16
    assert HOOKS.trace is None
    assert (X @ X).dtype is torch.float32
    with pytest.raises(RuntimeError, match="shapes"), torch.autocast("cpu"):
        torch.mm(X, X[:2])
    assert HOOKS.trace is None


def test_other_threads_are_not_concerned() -> None:
    found = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((X @ X).dtype))
        thread.start()
        thread.join()
    assert found == [torch.float32]


def test_decorator() -> None:
    @torch.autocast("cpu")
    def product(x):  # type: ignore[no-untyped-def]
        return x @ x

    assert product(X).dtype is torch.bfloat16
    assert product.__name__ == "product"


@pytest.mark.parametrize(("device", "dtype"), [("cpu", torch.float32), ("cuda", torch.float16)])
def test_disabled_with_a_warning(device: str, dtype: torch.dtype) -> None:
    with pytest.warns(UserWarning, match="disabled"):
        block = torch.autocast(device, dtype=dtype)
    with block:
        assert (X @ X).dtype is torch.float32


def test_gradients_have_the_dtypes_of_the_weights() -> None:
    weight = X.clone().requires_grad_()
    with torch.autocast("cpu"):
        y = F.linear(X, weight)
    y.sum().backward()
    assert weight.grad.dtype is torch.float32
    assert weight.grad.tolist() == HALF.sum(0).float().expand(3, 3).tolist()


@pytest.mark.parametrize(("keep", "same"), [(None, True), (False, False)])
def test_weights_are_cast_once(keep: bool | None, same: bool) -> None:
    weight = X.clone().requires_grad_()
    with torch.no_grad(), torch.autocast("cpu", cache_enabled=keep):
        before = (weight @ X).tolist()
        weight.mul_(2)
        assert ((weight @ X).tolist() == before) is same
    with torch.no_grad(), torch.autocast("cpu", cache_enabled=keep):
        assert (weight @ X).tolist() != before


def test_traces_record_the_casts() -> None:
    with torch.autocast("cpu"):
        traced = torch.jit.trace(lambda x: torch.softmax(x @ x, 0), (X,))
        assert (X @ X).dtype is torch.bfloat16
    assert str(traced.graph).count("aten::to(") == 2
    assert traced(X).dtype is torch.bfloat16

    def inside(x):  # type: ignore[no-untyped-def]
        with torch.autocast("cpu"):
            return F.mse_loss(x @ x, x)

    graph = str(torch.jit.trace(inside, (X,)).graph)
    assert graph.count("aten::to(") == 3
    assert HOOKS.trace is None


def test_profiles_see_the_casts() -> None:
    with torch.autograd.profiler.profile() as profile, torch.autocast("cpu"):
        assert (X @ X).dtype is (X @ X).dtype is torch.bfloat16
    assert {each.key for each in profile.key_averages()} >= {"aten::to", "aten::matmul"}


def test_script_functions_called_inside() -> None:
    product = torch.jit.CompilationUnit("def f(x):\n  return x @ x, torch.is_autocast_cpu_enabled()\n")
    assert product.f(X)[0].dtype is torch.float32
    with torch.autocast("cpu"):
        result, enabled = product.f(X)
    assert result.dtype is torch.bfloat16
    assert enabled
