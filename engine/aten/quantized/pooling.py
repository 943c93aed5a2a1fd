"""Pooling and resizing of quantized images.

In: quantized arrays.  Out: such with the same quantizer.  Greatest values and nearest neighbours are those of the
integers; averages are rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.quantized_forms import form
from engine.aten.kernels.affine import is_channels_last, laid_out_like, limited
from engine.aten.quantized.pointwise import rewrapped, uniform
from engine.aten.values.quantizer import integers_of, wrapped
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array


def _exact(x: Array) -> Array:
    """The integers as floats that hold them all."""
    integers = integers_of(x)
    return integers.astype(np.float32 if integers.itemsize == 1 else np.float64)


def _of_integers(name: str) -> Callable[..., Array]:
    """Greatest of the integers are those of the numbers."""

    def apply(x: Array, *args: Any) -> Array:
        result: Tensor = run(name, Tensor(_exact(x)), *args)
        return laid_out_like(rewrapped(result.array, x), x)

    return apply


for _n in (1, 2, 3):
    for _name in (f"max_pool{_n}d", f"quantized_max_pool{_n}d"):
        form(_name)(_of_integers(f"max_pool{_n}d"))
for _name in ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
              "_upsample_nearest_exact2d", "reflection_pad1d", "reflection_pad2d", "replication_pad1d",
              "replication_pad2d"):  # fmt: skip
    form(_name)(_of_integers(_name))
    if "upsample" in _name:
        form(f"{_name}.vec")(_of_integers(f"{_name}.vec"))


def _averaged(name: str) -> Callable[..., Array]:
    """Averages of the integers minus the zero point, rounded when the zero point is added."""

    def apply(x: Array, *args: Any) -> Array:
        quantizer = uniform(x)
        result: Tensor = run(name, Tensor(_exact(x) - quantizer.zero_point), *args)
        is_late = name.startswith("adaptive") and is_channels_last(
            x
        )  # of images that lie so, it is added after rounding
        offset = np.float32(0 if is_late else quantizer.zero_point)
        integers = limited(np.rint(result.array + offset), quantizer.zero_point if is_late else 0, quantizer)
        return laid_out_like(wrapped(integers, quantizer), x)

    return apply


for _n in (1, 2, 3):
    form(f"avg_pool{_n}d")(_averaged(f"avg_pool{_n}d"))
    for _name in (f"adaptive_avg_pool{_n}d", f"_adaptive_avg_pool{_n}d"):
        form(_name)(_averaged(f"adaptive_avg_pool{_n}d"))
for _name in ("upsample_bilinear2d", "upsample_bilinear2d.vec"):
    form(_name)(_averaged(_name))
