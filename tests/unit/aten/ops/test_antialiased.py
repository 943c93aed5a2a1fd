"""Images of whole numbers, resized; recorded with PyTorch 2.13."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor

RECORDED = {
    "bilinear": [[6, 32, 57], [40, 66, 91], [90, 116, 141], [140, 166, 191], [174, 200, 225]],
    "bicubic": [[0, 26, 53], [30, 58, 85], [88, 116, 143], [146, 174, 201], [178, 206, 233]],
    "lanczos": [[0, 26, 54], [22, 51, 79], [87, 116, 144], [152, 181, 209], [177, 206, 234]],
}


@pytest.mark.parametrize("mode", RECORDED)
def test_bytes_are_rounded_as_they_are_there(mode: str) -> None:
    image = Tensor((np.arange(12) * 21).astype(np.uint8).reshape(1, 1, 3, 4))
    found = call(f"_upsample_{mode}2d_aa", (image, [5, 3], False), {})
    assert (found.array[0, 0].tolist(), found.array.dtype) == (RECORDED[mode], np.uint8)
