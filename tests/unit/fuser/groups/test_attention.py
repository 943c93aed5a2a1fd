"""Attention in groups: masks, scales, ranks; a layer of an encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from tests.unit.fuser.kernels_of_groups import check, check_program, tensor

_CALL = "torch.nn.functional.scaled_dot_product_attention"


@pytest.mark.parametrize("before", [(), (3,), (2, 3)])
def test_attention(before: tuple[int, ...]) -> None:
    q, k, v = tensor(*before, 9, 16), tensor(*before, 20, 16, seed=1), tensor(*before, 20, 24, seed=2)
    other = [tensor(*before, 7, 16), tensor(*before, 33, 16, seed=1), tensor(*before, 33, 24, seed=2)]
    check(f"q, k, v: {_CALL}(q, k, v) + 1", q, k, v, others=[other], tolerance=1e-4)
    check(f"q, k, v: {_CALL}(q, k, v, scale=0.5)", q, k, v, tolerance=1e-4)


def test_masks() -> None:
    q, k, v = tensor(2, 9, 16), tensor(2, 9, 16, seed=1), tensor(2, 9, 24, seed=2)
    check(f"q, k, v: {_CALL}(q, k, v, is_causal=True)", q, k, v, tolerance=1e-4)
    check(f"q, k, v, m: {_CALL}(q, k, v, m)", q, k, v, tensor(9, 9), tolerance=1e-4)
    seen = np.random.default_rng(0).random((2, 9, 9)) > 0.5
    seen[0, 3] = False  # a row that attends to nothing
    check(f"q, k, v, m: {_CALL}(q, k, v, m)", q, k, v, torch.from_numpy(seen), tolerance=1e-4)


def test_attention_in_double_precision() -> None:
    q, k, v, m = (tensor(2, 9, 16, seed=i, dtype=np.float64) for i in range(4))
    check(f"q, k, v: {_CALL}(q, k, v, is_causal=True)", q, k, v, tolerance=1e-11)
    check(f"q, k, v, m: {_CALL}(q, k, v, m[..., :9])", q, k, v, m, tolerance=1e-11)


LAYER = """
def f(x, qkv, qkv_bias, out, out_bias, w1, b1, w2, b2, up, up_bias, down, down_bias):
    return torch._transformer_encoder_layer_fwd(
        x, 24, 3, qkv, qkv_bias, out, out_bias, {gelu}, {first}, 1e-5, w1, b1, w2, b2, up, up_bias, down, down_bias)
"""


@pytest.mark.parametrize(("gelu", "first", "dtype", "tolerance"), [
    (True, True, "f4", 1e-3), (True, False, "f4", 1e-3), (False, True, "f4", 1e-3), (False, False, "f4", 1e-3),
    (True, False, "f8", 1e-10),
])  # fmt: skip
def test_a_layer_of_an_encoder(gelu: bool, first: bool, dtype: str, tolerance: float) -> None:
    shapes: list[Any] = [(72, 24), (72,), (24, 24), (24,), (24,), (24,), (24,), (24,), (50, 24), (50,), (24, 50), (24,)]
    weights = [tensor(*shape, seed=i, dtype=dtype) * 0.2 for i, shape in enumerate(shapes)]
    text, (x, y) = (
        LAYER.format(gelu=gelu, first=first),
        (tensor(*shape, dtype=dtype) for shape in ((2, 7, 24), (1, 12, 24))),
    )
    check_program(text, x, *weights, others=[[y, *weights]], tolerance=tolerance)
