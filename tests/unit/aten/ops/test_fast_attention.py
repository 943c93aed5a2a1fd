"""Attention in one piece; recorded with PyTorch 2.13."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor

RECORDED = [[1.3015, -1.8721, 1.1459, 0.3741], [0.2519, -1.2448, 1.3754, -0.5533], [0.3042, 0.0156, -0.3245, 0.4087]]


@pytest.mark.parametrize("mask", [[False, True, False], [0.0, -math.inf, 0.0], [0.0, 2.0, 0.0]])
def test_whatever_is_not_zero_in_a_mask_hides(mask: list[float]) -> None:
    x = Tensor(np.sin(np.arange(12, dtype=np.float32)).reshape(1, 3, 4))
    weights, last = (Tensor(np.cos(np.arange(n, dtype=np.float32)).reshape(-1, 4)) for n in (48, 16))
    zeros, hidden = Tensor(np.zeros(12, np.float32)), np.array([mask])
    hidden = hidden if hidden.dtype == np.bool_ else hidden.astype(np.float32)
    found, _ = call("_native_multi_head_attention",
                    (x, x, x, 4, 2, weights, zeros, last, zeros[:4], Tensor(hidden), False, True, 1), {})  # fmt: skip
    assert np.allclose(found.array[0], RECORDED, atol=1e-4)
