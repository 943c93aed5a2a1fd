"""Norms and normalizations in kernels equal the operators', and long reductions are done in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.groups.strategy import HOST
from engine.fuser.ir.kernel import For
from tests.unit.fuser.kernels_of_groups import binding_of, check, kernel_of, tensor
from tests.unit.fuser.samples_of_groups import NORMS


@pytest.mark.parametrize("text", NORMS)
def test_norms(text: str) -> None:
    check(text, tensor(5, 33), others=[[tensor(3, 200)], [tensor(1, 7)]])


def test_logsumexp_of_infinities() -> None:
    x = torch.tensor([[-np.inf, -np.inf], [np.inf, 1.0], [np.nan, 1.0], [1.0, 2.0]])
    check("x: torch.logsumexp(x, 1)", x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_gates(dtype: Any) -> None:
    x = tensor(3, 8, 6, dtype=dtype)
    check("x: torch.ops.aten.glu(x * 2, 1)", x, others=[[tensor(1, 4, 5, dtype=dtype)]], tolerance=4e-3)
    check("x: torch.ops.aten.glu(x).transpose(1, 2)", x, tolerance=4e-3)


def test_normalizations() -> None:
    of_channels = [tensor(6, seed=i) for i in range(3)]
    x, variance = tensor(2, 6, 5, 4), torch.abs(tensor(6, seed=9)) + 0.5
    text = "x, m, v, w, b: torch.nn.functional.batch_norm(x, m, v, w, b, False, 0.1, 1e-5).relu()"
    args = [of_channels[0], variance, *of_channels[1:]]
    check(text, x, *args, others=[[tensor(3, 6, 2, 2), *args]])
    check("x, w, b: torch.nn.functional.group_norm(x, 3, w, b, 1e-5) * 2", x, *of_channels[:2],
          others=[[tensor(3, 6, 2, 2), *of_channels[:2]]], tolerance=1e-4)  # fmt: skip
    check("x: torch.nn.functional.group_norm(x, 2)", tensor(2, 4, 7), tolerance=1e-4)


@pytest.mark.parametrize("function", ["sum()", "mean()", "amax([0, 1])", "var()", "norm()"])
@pytest.mark.parametrize(
    "shape", [(3, HOST.long), (HOST.long // 8, 17), (1, 2 * HOST.long + 5), (HOST.block, HOST.block // 16)]
)
def test_long_reductions(function: str, shape: tuple[int, ...]) -> None:
    check(f"x: (x * 2).{function}", tensor(*shape), others=[[tensor(7, 5)], [tensor(*reversed(shape))]], tolerance=1e-5)


def test_long_vectors() -> None:
    x = torch.abs(tensor(3 * HOST.long + 77))
    check("x: (x + 1).sum()", x, others=[[x[:5].contiguous()], [tensor(HOST.block)]], tolerance=1e-6)


@pytest.mark.parametrize("norm", ["layer_norm(x, [6])", "rms_norm(x, [6])"])
def test_sizes_of_norms_are_guarded(norm: str) -> None:
    kernel, _ = kernel_of(f"def f(x):\n    return torch.nn.functional.{norm} + 1\n", [tensor(3, 6)])
    kernel(tensor(4, 6))
    with pytest.raises(AssertionError, match="no kernel"):
        kernel(tensor(3, 7))


REFUSED = ["x: x % (x * 0)", "x: x // x + 1", "x: torch.fmod(x, x) * 2", "x: torch.pow(x, x) + 1", "x: x.max(1)"]


@pytest.mark.parametrize("text", REFUSED)
def test_nodes_that_do_not_fuse_are_named(text: str) -> None:
    with pytest.raises(NotFused):
        binding_of(text, tensor(3, 6, dtype=np.int64).abs() + 1)


def test_what_is_costly_is_computed_once_in_a_row() -> None:
    x: Any = tensor(8, 64)
    body = binding_of("x: torch.layer_norm(torch.nn.functional.gelu(x), [64])", x).kernel.body
    assert [type(each) for each in body] == [For]
    assert str(body).count("'erf'") == 1
