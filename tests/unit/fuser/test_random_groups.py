"""Programs put together at random give the same as kernels: operators, shapes, dtypes and layouts in any company."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.unit.fuser.kernels_of_groups import check_program, tensor
from tests.unit.fuser.random_programs import arguments, program


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    choose = random.Random(seed)
    text = program(choose, choose.randint(2, 9))
    check_program(text, *arguments(4, choose), others=[arguments(10, choose)], tolerance=2e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_])
def test_random_arithmetic_of_dtypes(dtype: Any) -> None:
    choose = random.Random(str(dtype))
    steps = ("{a} + {b}", "{a} * {b}", "torch.maximum({a}, {b})", "torch.where({a} == {b}, {b}, {a})", "{a} + 1")
    for _ in range(3):
        lines, known = [], ["x", "y"]
        for k in range(5):
            lines.append(f"    v{k} = {choose.choice(steps).format(a=choose.choice(known), b=choose.choice(known))}")
            known.append(f"v{k}")
        text = "\n".join(["def f(x, y):", *lines, "    return v4, v3 == v4, v2 / 2", ""])
        x, y = tensor(4, 5, dtype=dtype), tensor(5, dtype=dtype, seed=1)
        check_program(text, x, y, tolerance=3e-2 if dtype is np.float16 else 1e-6)
