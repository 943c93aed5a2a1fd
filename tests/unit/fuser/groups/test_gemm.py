"""Products by panels: shapes around the sizes of tiles, blocks and panels, strides, what is done with the elements."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from engine.fuser.backend import machine, target
from engine.fuser.groups import gemm
from engine.fuser.ir.kernel import (
    Buffer,
    Expression,
    Kernel,
    Load,
    Name,
    Parameter,
    Scalar,
    Store,
    allocate,
    apply,
    constant,
)
from engine.fuser.ir.kernel_verifier import verify

_SHAPES = [(1, 1, 1), (6, 64, 512), (7, 65, 513), (5, 130, 33), (241, 64, 3), (13, 200, 1100), (0, 5, 3)]
_M, _N, _K = (Name(each, "i64") for each in "mnk")
_A = Buffer("a", "f32", None)
_OF_A = gemm.Matrix("a", Name("lda", "i64"), Name("step", "i64"))
_SIZES = tuple(Scalar(each, "i64") for each in ("m", "n", "k", "lda", "step"))


def _put(row: Expression, column: Expression, value: Expression) -> list[Store]:
    return [Store("c", (row, column), value)]


_VECTOR = gemm.vector_for("f32")
_TILES = [
    gemm.tile_for(),
    gemm.tile_for(7, 13),
    gemm.tile_for(130, 241),
    gemm.Tile(4, 3, _VECTOR),
    gemm.Tile(5, 4, _VECTOR, narrow=gemm.tile_for(1).lanes),
]
_B, _OF_B = Buffer("b", "f32", None), gemm.Matrix("b", _N)
_FILL = partial(gemm.filled, _OF_B.element, _N)


def _kernel(tile: gemm.Tile, panels: str, put: gemm.Put = _put, *parameters: Parameter) -> Any:
    """`kernel(m, n, k, lda, step, a, b, c, ...)`."""
    fill, c = _FILL(tile=tile), Buffer("c", "f32", (_M, _N), access="out")
    before = (allocate("packed", "f32", gemm.packed_size(_K, _N, tile)), gemm.packing(_N, _K, fill, "packed", tile))
    if panels == "packed":
        body = (*before, *gemm.product(_M, _N, _K, _OF_A, put, packed="packed", tile=tile))
    elif panels == "filled":
        body = gemm.product(_M, _N, _K, _OF_A, put, fill=fill, tile=tile)
    else:
        body = gemm.product(_M, _N, _K, _OF_A, put, b=_OF_B, tile=tile, in_place=True)
    helpers = gemm.helpers(tile)
    return machine.callable_kernel(Kernel("product", (*_SIZES, _A, _B, c, *parameters), body, helpers=helpers))


@pytest.mark.parametrize("panels", ["packed", "filled", "in place"])
@pytest.mark.parametrize("tile", _TILES)
def test_products(tile: gemm.Tile, panels: str) -> None:
    kernel, random = _kernel(tile, panels), np.random.default_rng(0)
    for m, n, k in _SHAPES:
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
        c = np.full((m, n), np.nan, np.float32)
        assert kernel(m, n, k, k, 1, a, b, c) == 0
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "lanes", "most"), [("x86-64-v2", 4, 2), ("x86-64-v3", 8, 3), ("x86-64-v4", 16, 3), ("apple-m1", 4, 3)]
)
def test_tiles_leave_little_over(name: str, lanes: int, most: int) -> None:
    """Neither of rows nor of columns, on processors with few registers and with many."""
    of = partial(gemm.tile_for, processor=target.named(name))
    assert [of(n).vectors for n in (0, 1, lanes, 2 * lanes, 1000)] == [most, 1, 1, 2, most]
    least = lanes // 2 if lanes == 16 else lanes  # of the longest vectors, half a one
    assert [of(n).narrow for n in (0, lanes * most, lanes * most * 10 + 1)] == [0, 0, least]
    for rows in range(1, 200):
        tile = of(64, rows)
        assert 1 <= tile.rows <= gemm.BLOCK // 20
        assert tile.heights[-1] == 1
    for columns in range(1, 200):
        tile = of(columns, 64)
        left = columns % tile.width
        assert all(least <= each.width and left <= each.width for each in tile.widths)
        assert tile.widths[-1].width - left < lanes or not left


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "apple-m1"])
def test_every_processor_has_what_its_products_call_ahead(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it keeps the rules of kernels, and whatever the sizes are, nothing else is called."""
    processor = target.named(name)
    monkeypatch.setattr(gemm, "current", lambda: processor)
    ahead = {each.name: each for each in gemm.ahead()}
    for each in ahead.values():
        verify(each)
    tiles = {gemm.tile_for(columns, rows, along="k") for columns in range(100) for rows in (0, 1, 5, 12, 64, 196)}
    called = {each.name for tile in tiles for turns in (False, True) for each in gemm.helpers(tile, turns=turns)}
    assert called <= ahead.keys()


def test_elements_are_put_once() -> None:
    """Of a product that takes several blocks of k, with a first operand whose columns come first in memory."""
    random = np.random.default_rng(0)
    m, n, k = 9, 70, 2 * _TILES[0].depth + 5
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((k, m), (k, n)))
    bias = random.standard_normal(n).astype(np.float32)

    def put(row: Expression, column: Expression, value: Expression) -> list[Store]:
        total = apply("add", value, Load("bias", (column,), "f32"))
        return _put(row, column, apply("maximum", total, constant(0, "f32")))

    kernel = _kernel(_TILES[0], "packed", put, Buffer("bias", "f32", (_N,)))
    c = np.empty((m, n), np.float32)
    assert kernel(m, n, k, 1, m, a, b, c, bias) == 0
    np.testing.assert_allclose(c, np.maximum(a.T @ b + bias, 0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [*_SHAPES, (4, 16, 32), (9, 35, 100), (1, 4, 31), (3, 2, 0), (2, 0, 5)])
def test_dots(shape: tuple[int, int, int], dots: Any) -> None:
    random, (m, n, k) = np.random.default_rng(0), shape
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (n, k)))
    c = np.full((m, n), np.nan, np.float32)
    assert dots(m, n, k, k, 1, a, b, c) == 0
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def dots() -> Any:
    c = Buffer("c", "f32", (_M, _N), access="out")
    body = gemm.dots(_M, _N, _K, _OF_A, gemm.Matrix("b", _K), _put)
    return machine.callable_kernel(Kernel("dots", (*_SIZES, _A, _B, c), body, helpers=gemm.dots_helpers()))


def test_blocks_are_of_whole_tiles_and_about_the_same_size() -> None:
    tile = gemm.Tile(12, 2, "f32x16")
    assert [gemm.block_for(rows, tile) for rows in (1, 240, 256, 300, 512, 1000)] == [240, 240, 132, 156, 180, 204]
