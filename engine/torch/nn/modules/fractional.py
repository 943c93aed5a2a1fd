"""Max pooling over windows at random places.  In: `(N, C, *space)` or without N.  Out: the same with less space."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.module import Module

Sizes = int | tuple[int, ...]
Ratios = float | tuple[float, ...]


class _FractionalMaxPool(Module):
    """The output has `output_size`, or `output_ratio` of the input's.  Raises ValueError unless just one is given."""

    __constants__ = ("kernel_size", "return_indices", "output_size", "output_ratio")
    _dims: ClassVar[int]

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: Ratios | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{type(self).__name__} takes either an output_size or an output_ratio")
        self.kernel_size, self.return_indices = self._each(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._each(output_size)
        self.output_ratio = None if output_ratio is None else self._each(output_ratio)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _each(self, value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._dims


class FractionalMaxPool2d(_FractionalMaxPool):
    """Over images."""

    _dims = 2

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool3d(_FractionalMaxPool):
    """Over volumes."""

    _dims = 3

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip
