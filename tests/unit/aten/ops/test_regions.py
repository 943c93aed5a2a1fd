"""Pooled and position-sensitive regions, turned boxes; numbers from torchvision 0.28."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import gradcheck
from engine.aten.dispatch import table
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError


def run(name: str, *args: Any) -> Any:
    entry = table.find(f"torchvision::{name}")
    assert entry is not None
    return entry.run(*args)


IMAGES = Tensor(np.sin(np.arange(2 * 4 * 5 * 6, dtype=np.float32) * np.float32(0.7)).reshape(2, 4, 5, 6))
REGIONS = Tensor(np.array([[0, 0.5, 1, 3.5, 4], [1, -2, -1, 9, 3], [1, 20, 20, 21, 21]], np.float32))
BOXES = np.array([[0, 0, 4, 2, 0], [1, 0.5, 3, 2, 30], [0, 0, 2, 2, 45], [9, 9, 1, 1, 0]], np.float32)

ROI_POOL = [[0.3191, 0.657], [0.9906, 0.8457]]
ROI_POOL_PLACES = [[13, 10], [20, 21]]
PS = {
    "ps_roi_pool": [[[-0.4153, 0.3321], [0.0675, 0.07]], [[-0.1617, 0.5579], [-0.3576, 0.4605]]],
    "ps_roi_align": [[[-0.411, 0.4218], [-0.3744, 0.3586]], [[-0.1475, 0.4468], [-0.2374, 0.1571]]],
}
TURNED = [[1.0, 0.3745, 0.4383, 0.0], [0.3745, 1.0, 0.2635, 0.0], [0.4383, 0.2635, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]


def numbers(x: Tensor) -> Any:
    return np.round(x.array.astype(np.float64), 4).tolist()


def test_the_largest_of_each_bin_and_its_place() -> None:
    found, places = run("roi_pool", IMAGES, REGIONS, 1.0, 2, 2)
    assert (found.array.shape, places.array.dtype) == ((3, 4, 2, 2), np.int32)
    assert numbers(found[0, 0]) == ROI_POOL
    assert places.array[0, 0].tolist() == ROI_POOL_PLACES
    assert (places.array[2] == -1).all()
    assert not found.array[2].any()


@pytest.mark.parametrize(("name", "more"), [("ps_roi_pool", ()), ("ps_roi_align", (2,))])
def test_each_bin_has_its_own_channels(name: str, more: tuple[int, ...]) -> None:
    found, channels = run(name, IMAGES, REGIONS, 1.0, 2, 2, *more)
    assert channels.array.tolist() == [[[[0, 1], [2, 3]]]] * 3
    assert numbers(found[:2, 0]) == PS[name]


@pytest.mark.parametrize(("name", "more"), [("roi_pool", ()), ("ps_roi_pool", ()), ("ps_roi_align", (2,))])
def test_gradients_are_those_of_differences(name: str, more: tuple[int, ...]) -> None:
    images = Tensor(np.sin(np.arange(80) * 0.7).reshape(1, 4, 4, 5)).requires_grad_(True)
    regions = Tensor(np.array([[0, 0.0, 1, 3, 4], [0, 1, 0, 3, 2]]))
    assert gradcheck(lambda x: run(name, x, regions, 1.0, 2, 2, *more)[0], [images])


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("roi_pool", (IMAGES, Tensor(np.zeros((1, 4), np.float32)), 1.0, 2, 2), "shape as Tensor"),
        ("roi_pool", (IMAGES, Tensor(np.zeros((1, 5))), 1.0, 2, 2), "to have the same type"),
        ("roi_pool", (IMAGES, Tensor(np.full((1, 5), 7, np.float32)), 1.0, 2, 2), "not among the 2"),
        ("ps_roi_pool", (IMAGES, REGIONS, 1.0, 3, 3), "multiple of pooling height"),
        ("ps_roi_align", (IMAGES, REGIONS, 1.0, 0, 2, 2), "must be positive"),
        ("box_iou_rotated", (Tensor(BOXES[:, :4]), Tensor(BOXES)), "boxes1 should have shape"),
        ("box_iou_rotated", (Tensor(BOXES), Tensor(BOXES.astype(np.float64))), "same dtype"),
    ],
)
def test_what_is_refused(name: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        run(name, *args)


def test_turned_boxes() -> None:
    assert numbers(run("box_iou_rotated", Tensor(BOXES), Tensor(BOXES))) == TURNED


def test_no_turned_boxes() -> None:
    assert run("box_iou_rotated", Tensor(np.zeros((0, 5))), Tensor(np.zeros((3, 5)))).array.shape == (0, 3)
    assert run("box_iou_rotated", Tensor(np.zeros((1, 5))), Tensor(np.zeros((1, 5)))).array.tolist() == [[0]]
