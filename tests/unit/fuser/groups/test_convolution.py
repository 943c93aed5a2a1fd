"""Convolutions as products equal those over numpy: kernels, steps, borders, gaps, groups, sizes around panels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.fuser.backend import machine
from engine.fuser.groups import convolution, gemm
from engine.fuser.ir.kernel import Buffer, Expression, Kernel, Load, Name, Store, apply

_GEOMETRIES = [
    # (images, channels, rows, columns), (channels of the result, rows, columns), stride, padding, dilation, groups
    ((1, 3, 9, 11), (4, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 3, 9, 70), (7, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 4, 31, 29), (6, 3, 2), (2, 3), (1, 2), (1, 1), 2),
    ((2, 2, 40, 33), (5, 5, 3), (1, 2), (4, 0), (2, 3), 1),
    ((1, 70, 6, 6), (250, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 2, 3, 200), (3, 1, 7), (1, 1), (0, 3), (1, 1), 1),
    ((0, 3, 9, 11), (4, 3, 3), (1, 1), (1, 1), (1, 1), 1),
]


def _put(channel: Expression, value: Expression) -> list[Store]:
    place = convolution.place(channel, Name("column_", "i64"))
    return [Store("y", (place,), apply("add", value, Load("bias", (channel,), "f32")))]


def _convolved(g: convolution.Geometry, x: Any, w: Any, bias: Any, shape: tuple[int, ...]) -> Any:
    result = Buffer("y", "f32", None, access="out")
    parameters = (*convolution.SIZES, *convolution.operands(), Buffer("bias", "f32", None), result)
    kernel = machine.callable_kernel(
        Kernel("convolution", parameters, convolution.convolution(g, _put), helpers=convolution.helpers(g))
    )
    y = np.full(shape, np.nan, np.float32)
    assert kernel(*x.shape, shape[1], *shape[2:], x, w, bias, y) == 0
    return y


_DEPTHWISE = [
    ((2, 5, 9, 21), (5, 3, 3), (1, 1), (1, 1), (1, 1), 5),
    ((1, 3, 30, 20), (6, 5, 3), (2, 3), (2, 1), (1, 1), 3),
    ((2, 4, 12, 19), (4, 3, 2), (1, 2), (0, 0), (2, 3), 4),
    ((1, 2, 7, 6), (2, 1, 1), (1, 1), (0, 3), (1, 1), 2),
]


@pytest.mark.parametrize(("of", "kernel", "stride", "padding", "dilation", "groups"), _DEPTHWISE)
@pytest.mark.parametrize("is_depthwise", [True, False])
def test_a_kernel_for_each_channel(
    of: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int, is_depthwise: bool
) -> None:
    g = convolution.Geometry(kernel[1:], stride, padding, dilation, groups, block=48, is_depthwise=is_depthwise)
    _check(replace(g, tile=replace(g.tile, reaches=True)), of, kernel[0])


@pytest.mark.parametrize("is_compact", [True, False])
@pytest.mark.parametrize("block", [gemm.BLOCK, 48])
@pytest.mark.parametrize(("of", "kernel", "stride", "padding", "dilation", "groups"), _GEOMETRIES)
def test_convolutions(
    of: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int, block: int, is_compact: bool
) -> None:
    g = convolution.Geometry(kernel[1:], stride, padding, dilation, groups, block=block, is_compact=is_compact)
    _check(replace(g, tile=replace(g.tile, reaches=not g.is_pointwise)), of, kernel[0])


def test_positions_that_are_no_places_are_few() -> None:
    """Of small images, and of those that windows go over in steps, columns of the kernel are copied each."""
    of = partial(convolution.Geometry, kernel=(3, 3), padding=(1, 1), dilation=(1, 1), groups=1)
    for side, step, is_compact in ((56, 1, False), (28, 1, False), (14, 1, True), (28, 2, False), (14, 2, True)):
        g = convolution.fitted(of(stride=(step, step)), 64, (side, side))
        assert g.is_compact == is_compact
        assert g.spread == ((3 - 1) // step, int(not is_compact))
        assert len(g.phases) == (3 if is_compact else step) * step


def test_few_panels_are_shared_in_blocks_of_rows() -> None:
    of = convolution.Geometry((3, 3), (1, 1), (1, 1), (1, 1), 1)
    many, few = (convolution.fitted(of, 512, (side, side)) for side in (56, 7))
    assert gemm.FEWEST_OF_BLOCK <= few.block <= many.block <= gemm.BLOCK
    assert -(-512 // few.block) * -(-49 // few.tile.width) >= 8


def _check(g: convolution.Geometry, of: tuple[int, ...], channels: int) -> None:
    random = np.random.default_rng(0)
    shapes = (of, (channels, of[1] // g.groups, *g.kernel), (channels,))
    x, w, bias = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
    tensors = map(torch.from_numpy, (x, w, bias))
    expected = torch.conv2d(*tensors, g.stride, g.padding, g.dilation, g.groups).numpy()
    np.testing.assert_allclose(_convolved(g, x, w, bias, expected.shape), expected, rtol=1e-3, atol=1e-4)
