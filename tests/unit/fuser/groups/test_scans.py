"""Running sums and products in kernels equal the operators'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from tests.unit.fuser.kernels_of_groups import check, tensor
from tests.unit.fuser.samples_of_groups import SCANS


@pytest.mark.parametrize("text", SCANS)
@pytest.mark.parametrize("shape", [(3, 5, 7), (9, 2, 300), (1, 6, 1)])
def test_scans(text: str, shape: tuple[int, ...]) -> None:
    check(text, tensor(*shape), others=[[tensor(2, 1, 130)], [tensor(*reversed(shape))]])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.bool_])
def test_dtypes(dtype: Any) -> None:
    x = torch.from_numpy((tensor(6, 9).numpy() * 3).astype(dtype))
    for dim in (0, 1):
        check(f"x: x.cumsum({dim})", x, tolerance=0)
        check(f"x: x.cumprod({dim})", x, tolerance=0)


def test_rounding_is_that_of_the_definition() -> None:
    x = tensor(5, 4000) + 1e3
    check("x: x.cumsum(1)", x, tolerance=0)
    check("x: x.t().cumsum(0)", x, tolerance=0)
