"""Products by panels: shapes around the sizes of tiles, blocks and panels, strides, what is done with the elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.fuser import gemm, machine
from engine.fuser.kernel import Buffer, Expression, Kernel, Load, Name, Parameter, Scalar, Store, apply, constant

_SHAPES = [(1, 1, 1), (6, 64, 512), (7, 65, 513), (5, 130, 33), (241, 64, 3), (13, 200, 1100), (0, 5, 3)]
_M, _N, _K = (Name(each, "i64") for each in "mnk")
_A = Buffer("a", "f32", (_M, _K), (Name("lda", "i64"), Name("step", "i64")))
_SIZES = tuple(Scalar(each, "i64") for each in ("m", "n", "k", "lda", "step"))


def _a(row: Expression, depth: Expression) -> Load:
    return Load("a", (row, depth), "f32")


def _put(row: Expression, column: Expression, value: Expression) -> list[Store]:
    return [Store("c", (row, column), value)]


def _kernel(parameters: Sequence[Parameter], **options: Any) -> Any:
    body = gemm.product(_M, _N, _K, _a, options.pop("put", _put), **options)
    c = Buffer("c", "f32", (_M, _N), access="out")
    return machine.callable_kernel(Kernel("product", (*_SIZES, _A, c, *parameters), body))


def _packed(b: np.ndarray) -> np.ndarray:
    k, n = b.shape
    packed = np.full(gemm.packed_size(k, n), np.nan, np.float32)
    row_stride, column_stride = (each // 4 for each in b.strides)
    assert machine.callable_kernel(gemm.pack())(k, n, row_stride, column_stride, b, packed) == 0
    return packed


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), _SHAPES)
def test_products(m: int, n: int, k: int, is_packed: bool) -> None:
    random = np.random.default_rng(m + n + k)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    if is_packed:
        code = _kernel([Buffer("packed", "f32", None)], packed="packed")(m, n, k, k, 1, a, c, _packed(b))
    else:
        fill = gemm.filled(lambda depth, column: Load("b", (depth, column), "f32"), _N)
        code = _kernel([Buffer("b", "f32", (_K, _N))], fill=fill)(m, n, k, k, 1, a, c, b)
    assert code == 0
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_packing_fills_panels_with_zeros() -> None:
    b = np.arange(6, dtype=np.float32).reshape(2, 3)
    packed = _packed(b.T).reshape(3, gemm.WIDTH)
    np.testing.assert_array_equal(packed[:, :2], b.T)
    assert not packed[:, 2:].any()


def test_elements_are_put_once() -> None:
    """Of a product that takes several blocks of k, with a first operand whose columns come first in memory."""
    random = np.random.default_rng(0)
    m, n, k = 9, 70, 2 * gemm.DEPTH + 5
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((k, m), (k, n)))
    bias = random.standard_normal(n).astype(np.float32)

    def put(row: Expression, column: Expression, value: Expression) -> list[Store]:
        total = apply("add", value, Load("bias", (column,), "f32"))
        return _put(row, column, apply("maximum", total, constant(0, "f32")))

    kernel = _kernel([Buffer("packed", "f32", None), Buffer("bias", "f32", (_N,))], packed="packed", put=put)
    c = np.empty((m, n), np.float32)
    assert kernel(m, n, k, 1, m, a, c, _packed(b), bias) == 0
    np.testing.assert_allclose(c, np.maximum(a.T @ b + bias, 0), rtol=1e-4, atol=1e-3)
