"""Layers as kernels equal numpy's: sizes around tiles, strides, batches, geometries; and when they are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.fuser import layers, tiering


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile at once, and however little work there is."""
    monkeypatch.setattr(tiering, "mode", lambda: "eager")
    monkeypatch.setattr(layers, "LEAST", 0)


def _array(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def _close(found: Any, expected: Any) -> None:
    assert found is not None
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("m", [1, 5, 17, 33, 70])
def test_linear(m: int, has_bias: bool) -> None:
    for n, k in ((1, 1), (65, 300), (250, 513)):
        x, w, bias = _array(m, k), _array(n, k), _array(n) if has_bias else None
        _close(layers.linear(x, w, bias), x @ w.T + (0 if bias is None else bias))


def test_linear_leaves_the_rest_to_numpy() -> None:
    x, w = _array(4, 6), _array(5, 6)
    assert layers.linear(x.astype(np.float64), w.astype(np.float64), None) is None
    assert layers.linear(_array(6, 4).T, w, None) is None
    assert layers.linear(x, w, _array(1)) is None
    assert layers.linear(_array(4, 0), _array(5, 0), None) is None


@pytest.mark.parametrize("before", [(), (3,), (2, 5)])
def test_matmul(before: tuple[int, ...]) -> None:
    for m, n, k in ((1, 1, 1), (7, 30, 5), (13, 70, 520), (250, 16, 9)):
        a, b = _array(*before, m, k), _array(*before, k, n)
        _close(layers.matmul(a, b), a @ b)
        transposed = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        _close(layers.matmul(a, transposed), a @ b)
        _close(layers.matmul(_array(*before, k, m).swapaxes(-1, -2), b), _array(*before, k, m).swapaxes(-1, -2) @ b)


def test_matmul_of_heads() -> None:
    """Batches that are views: dimensions before the last two in another order."""
    q, k = (_array(2, 40, 3, 16, seed=seed).transpose(0, 2, 1, 3) for seed in (0, 1))
    _close(layers.matmul(q, k.swapaxes(-1, -2)), q @ k.swapaxes(-1, -2))


def test_matmul_leaves_the_rest_to_numpy() -> None:
    assert layers.matmul(_array(3, 4), _array(2, 4, 5)) is None
    assert layers.matmul(_array(1, 3, 4), _array(2, 4, 5)) is None
    assert layers.matmul(_array(3, 0), _array(0, 5)) is None
    assert layers.matmul(_array(3, 4), _array(4, 5).astype(np.float64)) is None


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "groups"), [
    (3, 1, 1, 1, 1), (1, 1, 0, 1, 1), (3, 2, 1, 1, 4), (3, 1, 2, 2, 8), (5, 1, 0, 1, 2),
])  # fmt: skip
def test_convolution(kernel: int, stride: int, padding: int, dilation: int, groups: int) -> None:
    x, w, bias = _array(2, 8, 13, 15), _array(8, 8 // groups, kernel, kernel), _array(8)
    options = [[stride] * 2, [padding] * 2, [dilation] * 2, groups]
    tensors = [torch.from_numpy(each) for each in (x, w, bias)]
    found = layers.convolution(x, w, bias, *options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiering, "mode", lambda: "off")
        _close(found, torch.conv2d(*tensors, *options).numpy())


def test_kernels_come_once_there_was_enough_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path))
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    monkeypatch.setattr(layers, "_LAYERS", {})
    monkeypatch.setattr(layers, "WORTH", 3 * 2 * 20 * 30 * 40)
    monkeypatch.setattr(layers, "WORTH_A_LOOK", 2 * 2 * 20 * 30 * 40)
    x, w = _array(20, 40), _array(30, 40)
    for _ in range(3):
        assert layers.linear(x, w, None) is None
    tiering.wait()
    _close(layers.linear(x, w, None), x @ w.T)
    layers._LAYERS.clear()  # as in another process, which finds the code on disk
    assert layers.linear(x, w, None) is None
    _close(layers.linear(x, w, None), x @ w.T)


def test_nothing_is_compiled_where_that_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert layers.linear(_array(4, 6), _array(5, 6), None) is not None
    monkeypatch.setattr(tiering, "mode", lambda: "off")
    assert layers.linear(_array(4, 6), _array(5, 6), None) is None
