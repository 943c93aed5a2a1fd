"""The law of `detect_anomaly`: a NaN that a backward pass gives rise to is refused, of each dtype and in each mode.

Programs are cold at first and have native code later; the NaN arises where the tensor holds zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import engine.torch as torch
from engine.fuser.backend import tiering
from engine.lang.errors import OperatorError

DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128,
)  # fmt: skip


def root(x: torch.Tensor) -> torch.Tensor:
    return x.sqrt() * 0


def quotient(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([(x * 1) / x, x])


def chosen(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x != 0, x.sqrt(), x)


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x * 1
    y.sqrt_()
    return (y * 0)[1:]


def in_a_loop(x: torch.Tensor) -> torch.Tensor:
    y = x
    for _ in range(3):
        y = y + x.log() * 0 * x
    return y.sum()


PROGRAMS = (root, quotient, chosen, in_place, in_a_loop)


def scripted(program: Callable[..., Any], x: torch.Tensor) -> Any:
    return torch.jit.script(program)


def traced(program: Callable[..., Any], x: torch.Tensor) -> Any:
    return torch.jit.trace(program, (x,), check_trace=False)


def backward(y: torch.Tensor) -> None:
    y.backward(torch.ones_like(y))


@pytest.mark.parametrize("form", [scripted, pytest.param(traced, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_of_each_dtype_is_refused_cold_and_warm(dtype: torch.dtype, form: Callable[..., Any], mode: str) -> None:
    for program in PROGRAMS:
        ones = torch.ones(4).to(dtype)
        compiled = form(program, ones)
        for _ in range(3):
            zeros = torch.zeros(4).to(dtype).requires_grad_()
            with torch.autograd.detect_anomaly(), pytest.raises(OperatorError, match=r"Backward0' returned nan values"):
                backward(compiled(zeros))
            recorded = compiled(zeros)
            with torch.autograd.detect_anomaly(), pytest.raises(OperatorError, match="returned nan values"):
                backward(recorded)
            with torch.autograd.detect_anomaly():
                backward(compiled(ones.clone().requires_grad_()))
            leaf = ones.clone().requires_grad_()
            backward(compiled(leaf))
            assert leaf.grad.isfinite().all()
            tiering.wait()


@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_nan_that_nobody_receives_is_refused(dtype: torch.dtype, mode: str) -> None:
    """The slope of `relu` lets no NaN through, inside a group neither."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).sqrt() * 0

    compiled = torch.jit.script(program)
    for _ in range(3):
        x = torch.full((4,), -1.0, dtype=dtype, requires_grad=True)
        with torch.autograd.detect_anomaly(), pytest.raises(OperatorError, match="'SqrtBackward0' returned nan values"):
            backward(compiled(x))
        backward(compiled(x))
        assert x.grad.tolist() == [0.0] * 4
        tiering.wait()
