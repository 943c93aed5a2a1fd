"""Choosing by bits gives what `np.where` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.kernels.blend import choose

SOURCE = np.random.default_rng(0)
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7,), (4096,), (130, 257), (3, 100, 90)])
def test_choosing(kind: Any, shape: tuple[int, ...]) -> None:
    a, b = (SOURCE.standard_normal(shape).astype(kind) for _ in range(2))
    a.reshape(-1)[:5] = b.reshape(-1)[-5:] = SPECIAL
    condition = SOURCE.random(shape) > 0.5
    turned = np.asfortranarray(a)
    for first, second in ((a, b), (kind(2.5), b), (a, kind(-0.0)), (turned, b), (kind(1), kind(2)), (a[:1], b)):
        expected = np.where(condition, first, second)
        found = choose(condition, first, second)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()


def test_dtypes_that_differ_are_promoted() -> None:
    condition = SOURCE.random(5000) > 0.5
    single, double = np.ones(5000, np.float32), np.zeros(5000)
    assert choose(condition, single, double).dtype == np.float64
    assert choose(condition, np.arange(5000), double).dtype == np.float64
