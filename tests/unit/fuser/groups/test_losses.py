"""Losses in kernels equal the operators', and refuse what these refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from tests.unit.fuser.kernels_of_groups import check, kernel_of, tensor

REDUCTIONS = ["none", "mean", "sum"]


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_losses(loss: str, reduction: str) -> None:
    text = f"x, y: torch.nn.functional.{loss}(x * 0.5, torch.sigmoid(y), reduction='{reduction}')"
    check(text, tensor(5, 9), tensor(5, 9, seed=1), others=[[tensor(7, 2), tensor(7, 2, seed=1)]])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_probabilities(reduction: str) -> None:
    text = f"x, y: torch.ops.aten.binary_cross_entropy(torch.sigmoid(x), y, None, {REDUCTIONS.index(reduction)})"
    y = torch.sigmoid(tensor(5, 9, seed=1))
    check(text, tensor(5, 9), y)
    check(text.replace("torch.sigmoid(x)", "x * 1"), torch.round(torch.sigmoid(tensor(5, 9))), y)
    kernel, _ = kernel_of("def f(x, y):\n    return torch.ops.aten.binary_cross_entropy(x, y)\n", [y, y])
    for wrong in (y + 1, y - 1):
        with pytest.raises(AssertionError, match="no kernel"):
            kernel(wrong, y)
        with pytest.raises(AssertionError, match="no kernel"):
            kernel(y, wrong)


@pytest.mark.parametrize("reduction", range(3))
def test_logits(reduction: int) -> None:
    text = f"x, y: torch.ops.aten.binary_cross_entropy_with_logits(x * 2, torch.sigmoid(y), None, None, {reduction})"
    check(text, tensor(5, 9), tensor(5, 9, seed=1), others=[[tensor(7, 2), tensor(7, 2, seed=1)]])


def test_weights() -> None:
    x, y, w = tensor(5, 9), torch.sigmoid(tensor(5, 9, seed=1)), torch.abs(tensor(9))
    check("x, y, w: torch.ops.aten.binary_cross_entropy_with_logits(x * 2, y, w, w)", x, y, w)
    check("x, y, w: torch.ops.aten.binary_cross_entropy(torch.sigmoid(x), y, w)", x, y, torch.abs(tensor(5, 9)))
    check("x, y: torch.nn.functional.kl_div(x, y, log_target=True, reduction='sum')", x, y)


# ------------------------------------------------------------------ classes

CLASSES = torch.tensor([1, 0, 3, 3, 2, 0])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("ignored", [-100, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_classes(reduction: str, ignored: int, dtype: Any) -> None:
    tolerance = 5e-3 if dtype is np.float16 else 2e-5
    for loss in ("cross_entropy(x * 2", "nll_loss(x * 2"):
        text = f"x, t: torch.nn.functional.{loss}, t, reduction='{reduction}', ignore_index={ignored})"
        check(text, tensor(6, 4, dtype=dtype), CLASSES, others=[[tensor(6, 7, dtype=dtype), CLASSES]],
              tolerance=tolerance)  # fmt: skip


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_of_classes(reduction: str) -> None:
    text = f"x, t, w: torch.nn.functional.cross_entropy(x * 2, t, w, reduction='{reduction}', ignore_index=2)"
    check(text, tensor(6, 4), CLASSES, torch.abs(tensor(4)))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_classes_of_pixels(reduction: str) -> None:
    target = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (2, 3, 5)))
    text = f"x, t: torch.nn.functional.cross_entropy(x * 2, t, reduction='{reduction}')"
    check(text, tensor(2, 4, 3, 5), target, others=[[tensor(2, 9, 3, 5), target]])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_shares_of_classes(reduction: str) -> None:
    shares = torch.softmax(tensor(6, 4, seed=1), 1)
    check(f"x, t: torch.nn.functional.cross_entropy(x * 2, t, reduction='{reduction}')", tensor(6, 4), shares)


def test_the_program_raises_its_error() -> None:
    unit = torch.jit.CompilationUnit("def f(x, t):\n    return torch.nn.functional.cross_entropy(x * 2, t)\n")
    with torch.no_grad():
        for _ in range(3):
            unit.f(tensor(6, 4), CLASSES)
            with pytest.raises(RuntimeError, match="out of bounds"):
                unit.f(tensor(6, 4), CLASSES + 1)
