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


LAYER = """
def f(x, qkv, qkv_bias, out, out_bias, w1, b1, w2, b2, up, up_bias, down, down_bias):
    return torch._transformer_encoder_layer_fwd(
        x, 24, 3, qkv, qkv_bias, out, out_bias, {gelu}, {first}, 1e-5, w1, b1, w2, b2, up, up_bias, down, down_bias)
"""


@pytest.mark.parametrize("gelu", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_a_layer_of_an_encoder(gelu: bool, first: bool) -> None:
    shapes: list[Any] = [(72, 24), (72,), (24, 24), (24,), (24,), (24,), (24,), (24,), (50, 24), (50,), (24, 50), (24,)]
    weights = [tensor(*shape, seed=i) * 0.2 for i, shape in enumerate(shapes)]
    text = LAYER.format(gelu=gelu, first=first)
    check_program(text, tensor(2, 7, 24), *weights, others=[[tensor(1, 12, 24), *weights]], tolerance=1e-3)
