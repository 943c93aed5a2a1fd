"""Gradients where operands are infinities, NaN or zeros are those that PyTorch 2.13 gives, in every floating dtype."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values import xp

INF: Final = math.inf
NAN: Final = math.nan
PLACES: Final = (-INF, INF, -0.0, -3.0, 3.0, 6.0)
SLOPES: Final = {
    "leaky_relu(x, 0.125)": (0.125, 1, 0.125, 0.125, 1, 1),
    "relu6(x)": (0, 0, 0, 0, 1, 0),
    "hardtanh(x)": (0, 0, 1, 0, 0, 0),
    "hardsigmoid(x)": (0, 0, 1 / 6, 0, 0, 0),
    "hardswish(x)": (0, 1, 0.5, 0, 1, 1),
    "hardshrink(x)": (1, 1, 0, 1, 1, 1),
    "softshrink(x)": (1, 1, 0, 1, 1, 1),
    "softplus(x)": (0, 1, 0.5, 0.04742587357759476, 0.9525741338729858, 0.9975273609161377),
    "threshold(x, 0.5, 0.0)": (0, 1, 0, 0, 1, 1),
    "relu(x)": (0, 1, 0, 0, 1, 1),
}
"""Functions of torch.nn.functional, and their slopes at `PLACES`."""
PAIRS: Final = [
    ("torch.maximum(x, y)", NAN, 1, (1, 1)), ("torch.maximum(x, y)", INF, INF, (0.5, 0.5)),
    ("torch.maximum(x, y)", -INF, 1, (0, 1)), ("torch.minimum(x, y)", NAN, 1, (1, 1)),
    ("torch.minimum(x, y)", INF, INF, (0.5, 0.5)), ("torch.minimum(x, y)", -INF, 1, (1, 0)),
    ("torch.atan2(x, y)", 0, 0, (0, 0)), ("torch.atan2(x, y)", -0.0, 1, (1, 0)),
    ("torch.atan2(x, y)", INF, 1, (0, NAN)),
    ("x / y", INF, 256, (0.00390625, -INF)), ("x / y", 32768, 32768, (2**-15, -(2**-15))),
    ("x / y", 0, 2**-13, (8192, 0)), ("torch.pow(x, y)", 0, 0, (0, 0)), ("torch.pow(x, y)", NAN, 0, (0, NAN)),
    ("torch.pow(x, y)", 0, -1, (-INF, -INF)), ("torch.pow(x, y)", 0, 2, (0, 0)),
    ("torch.pow(x, y)", 0, NAN, (NAN, NAN)),
    ("torch.pow(x, y)", -INF, 0.5, (0, NAN)), ("torch.pow(0.0, y)", 0, 2, (None, 0)),
    ("torch.pow(0.0, y)", 0, -1, (None, -INF)), ("torch.pow(0.0, y)", 0, 0, (None, 0)),
    ("torch.pow(0.0, y)", 0, INF, (None, 0)),
    ("torch.max(x, y)", NAN, 1, (1, 1)), ("torch.min(x, y)", 1, NAN, (1, 1)),
    ("torch.max(torch.cat([x, y]))", NAN, 1, (1, 0)),
    ("torch.min(torch.cat([x, y]))", NAN, NAN, (0.5, 0.5)), ("torch.xlogy(x, -1.0)", 0, 0, (0, None)),
    ("torch.special.xlog1py(x, -2.0)", 0, 0, (0, None)), ("torch.nextafter(x, y)", INF, INF, (0, 0)),
    ("torch.nextafter(x, y)", 2, 3, (1, 0)), ("torch.digamma(x)", INF, 0, (0, None)),
    ("torch.addcdiv(x * 0, x, torch.full_like(x, 2**-24), value=0)", 1, 0, (0, None)),
]  # fmt: skip
"""Functions of two numbers, these, and the gradients of both."""
DTYPES = pytest.mark.parametrize("dtype", sorted(xp.FLOATING, key=str), ids=str)


def gradients(text: str, dtype: xp.NumpyDtype, *given: list[float]) -> list[Any]:
    """The gradients of the sum of the values."""
    leaves = [torch.tensor(numbers, dtype=xp.FROM_NUMPY[dtype], requires_grad=True) for numbers in given]
    names = dict(zip("xy", leaves, strict=False))
    result = eval(text, {"torch": torch, "F": torch.nn.functional, **names})
    found = torch.autograd.grad(result, leaves, torch.ones_like(result), allow_unused=True)
    return [None if each is None else each.to(torch.float64).tolist() for each in found]


@DTYPES
@pytest.mark.parametrize("text", SLOPES)
def test_slopes(text: str, dtype: xp.NumpyDtype) -> None:
    (found,) = gradients(f"F.{text}", dtype, [*PLACES])
    np.testing.assert_allclose(found, SLOPES[text], rtol=max(1e-6, 4 * float(xp.limits(dtype).eps)))


@DTYPES
@pytest.mark.parametrize(("text", "x", "y", "wanted"), PAIRS)
def test_gradients_of_two(
    text: str, x: float, y: float, wanted: tuple[float | None, float | None], dtype: xp.NumpyDtype
) -> None:
    for found, value in zip(gradients(text, dtype, [x], [y]), wanted, strict=True):
        assert (found is None) == (value is None)
        if found is not None:
            np.testing.assert_array_equal(found, [value])
