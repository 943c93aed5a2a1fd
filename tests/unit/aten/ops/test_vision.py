"""Boxes that stay, regions of images and bent convolutions; numbers from torchvision 0.28."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.aten.autograd import gradcheck
from engine.aten.dispatch import table
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError


def run(name: str, *args: Any) -> Any:
    entry = table.find(f"torchvision::{name}")
    assert entry is not None
    return entry.run(*args)


def ramp(*shape: int, scale: float = 0.1) -> Tensor:
    return Tensor(np.sin(np.arange(np.prod(shape)) * 0.7).reshape(shape) * scale)


BOXES = Tensor(np.array([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [0, 0, 4, 4]]))
SCORES = Tensor(np.array([0.5, 0.9, 0.1, 0.5]))


@pytest.mark.parametrize(("threshold", "kept"), [(0.5, [1, 3, 2]), (0.9, [1, 0, 3, 2]), (0.1, [1, 2])])
def test_boxes_that_overlap_a_better_one_go(threshold: float, kept: list[int]) -> None:
    assert run("nms", BOXES, SCORES, threshold).array.tolist() == kept


def test_no_boxes_stay_of_none() -> None:
    found = run("nms", Tensor(np.zeros((0, 4), np.float32)), Tensor(np.zeros(0, np.float32)), 0.5)
    assert (found.array.tolist(), found.array.dtype) == ([], np.int64)


@pytest.mark.parametrize(
    ("boxes", "scores", "message"),
    [
        (np.zeros((2, 5)), np.zeros(2), "boxes should be a 2D tensor"),
        (np.zeros((2, 4)), np.zeros((2, 1)), "scores should be a 1d tensor"),
        (np.zeros((2, 4)), np.zeros(3), "same number of elements"),
        (np.zeros((2, 4)), np.zeros(2, np.float32), "same type"),
    ],
)
def test_boxes_that_are_none(boxes: Any, scores: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        run("nms", Tensor(boxes), Tensor(scores), 0.5)


REGIONS = Tensor(np.array([[0, 0.5, 1.0, 3.5, 4.0], [0, -2.0, -1.0, 1.0, 8.0]]))


@pytest.mark.parametrize(
    ("sampling_ratio", "aligned", "expected"),
    [
        (2, True, [[-0.052209032561602114, 0.05696594138864064], [0.0, -0.3244066399159903]]),
        (-1, False, [[0.0028193997672324445, 0.0004271223265520559], [-0.07303913152646799, -0.11747383937056292]]),
    ],
)
def test_regions_are_means_of_places_between_elements(sampling_ratio: int, aligned: bool, expected: Any) -> None:
    image = ramp(1, 1, 5, 6, scale=1.0)
    found = run("roi_align", image, REGIONS, 1.0, 1, 2, sampling_ratio, aligned)
    np.testing.assert_allclose(found.array.reshape(2, 2), expected, rtol=1e-6)


def test_gradients_of_regions() -> None:
    image = Tensor(ramp(2, 3, 5, 6).array, True)
    regions = Tensor(np.array([[1, 0.5, 1.0, 3.5, 4.0], [0, -2.0, -1.0, 1.0, 8.0]]))
    assert gradcheck(lambda x: run("roi_align", x, regions, 0.5, 2, 2, -1, False), (image,))


def bent(offset: float, mask: float, *, use_mask: bool = True) -> Any:
    image, weight = ramp(1, 2, 4, 5, scale=1.0), ramp(2, 2, 3, 3, scale=1.0)
    offsets, masks = np.full((1, 18, 4, 5), offset), np.full((1, 9, 4, 5), mask)
    sizes = (1, 1, 1, 1, 1, 1, 1, 1)
    return run("deform_conv2d", image, weight, Tensor(offsets), Tensor(masks), ramp(2), *sizes, use_mask)


def test_a_convolution_that_is_not_bent_is_one() -> None:
    image, weight = ramp(1, 2, 4, 5, scale=1.0), ramp(2, 2, 3, 3, scale=1.0)
    plain = call("conv2d", (image, weight, ramp(2), [1, 1], [1, 1]), {})
    np.testing.assert_allclose(bent(0.0, 1.0).array, plain.array)
    np.testing.assert_allclose(bent(0.0, 7.0, use_mask=False).array, plain.array)
    bias = ramp(2).array.reshape(1, 2, 1, 1)
    np.testing.assert_allclose(bent(0.0, 2.0).array - bias, 2 * (plain.array - bias))
    assert abs(bent(0.5, 1.0).array - plain.array).max() > 0.1


def test_gradients_of_bent_convolutions() -> None:
    image, weight, bias = ramp(1, 4, 3, 4), ramp(2, 2, 2, 2), ramp(2)
    offset, mask = ramp(1, 16, 2, 3, scale=0.4), ramp(1, 8, 2, 3)
    given = [Tensor(t.array, True) for t in (image, weight, offset, mask, bias)]
    assert gradcheck(lambda *t: run("deform_conv2d", *t, 1, 1, 0, 0, 1, 1, 2, 2, True), given)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(OperatorError, match="expected offset of the shape"):
        run("deform_conv2d", ramp(1, 2, 4, 5), ramp(2, 2, 3, 3), ramp(1, 2, 4, 5), ramp(1, 9, 4, 5), ramp(2),
            1, 1, 1, 1, 1, 1, 1, 1, True)  # fmt: skip
    with pytest.raises(OperatorError, match="is not among"):
        run("roi_align", ramp(1, 1, 5, 6), Tensor(np.array([[3.0, 0, 0, 1, 1]])), 1.0, 1, 1, 2, True)


def test_programs_call_them() -> None:
    unit = engine.CompilationUnit("""
def f(boxes: Tensor, scores: Tensor) -> Tensor:
    return torch.ops.torchvision.nms(boxes, scores, 0.5)
""")
    assert unit.f(BOXES, SCORES).tolist() == [1, 3, 2]
    assert "torchvision::nms(" in str(unit.f.graph)
