"""Products by panels: shapes around the sizes of tiles, blocks and panels, strides, epilogues."""

from __future__ import annotations

import numpy as np
import pytest

from engine.fuser import gemm, machine
from engine.fuser.kernel import Buffer, Load, apply, constant, index

_SHAPES = [(1, 1, 1), (6, 64, 512), (7, 65, 513), (5, 130, 33), (241, 64, 3), (13, 200, 1100), (0, 5, 3)]


def _packed(b: np.ndarray) -> np.ndarray:
    k, n = b.shape
    packed = np.full(gemm.packed_size(k, n), np.nan, np.float32)
    row_stride, column_stride = (each // 4 for each in b.strides)
    assert machine.callable_kernel(gemm.pack())(k, n, row_stride, column_stride, b, packed) == 0
    return packed


@pytest.mark.parametrize(("m", "n", "k"), _SHAPES)
def test_products(m: int, n: int, k: int) -> None:
    random = np.random.default_rng(m + n + k)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (n, k)))
    c = np.full((m, n), np.nan, np.float32)
    assert machine.callable_kernel(gemm.product())(m, n, k, k, a, _packed(b.T), c) == 0
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_packing_fills_panels_with_zeros() -> None:
    b = np.arange(6, dtype=np.float32).reshape(2, 3)
    packed = _packed(b).reshape(2, gemm.WIDTH)
    np.testing.assert_array_equal(packed[:, :3], b)
    assert not packed[:, 3:].any()


def test_epilogue_is_applied_once() -> None:
    """Of a product that takes several blocks of k, with rows of A apart from one another."""
    random = np.random.default_rng(0)
    m, n, k = 9, 70, 2 * gemm.DEPTH + 5
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k + 3), (k, n)))
    bias = random.standard_normal(n).astype(np.float32)
    kernel = gemm.product(
        "with_bias",
        lambda value, row, column: apply(
            "maximum", apply("add", value, Load("bias", (column,), "f32")), constant(0, "f32")
        ),
        [Buffer("bias", "f32", (index(n),))],
    )
    c = np.empty((m, n), np.float32)
    assert machine.callable_kernel(kernel)(m, n, k, k + 3, a, _packed(b), c, bias) == 0
    np.testing.assert_allclose(c, np.maximum(a[:, :k] @ b + bias, 0), rtol=1e-4, atol=1e-3)
