"""Pooling.  In: `(N, C, *space)` or `(C, *space)`.  Out: the same with less space."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.configured import configured
from engine.torch.nn.modules.module import Module

Sizes = int | tuple[int, ...]


class _Pool(Module):
    """The base of poolings: the default stride is the kernel's size."""

    @staticmethod
    def _settled(given: dict[str, Any]) -> dict[str, Any]:
        return given if given["stride"] is not None else {**given, "stride": given["kernel_size"]}


@configured
class _MaxPool(_Pool):
    """The largest element under the kernel at every position."""

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Max pooling over sequences."""

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool2d(_MaxPool):
    """Max pooling over images."""

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool3d(_MaxPool):
    """Max pooling over volumes."""

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class _MaxUnpool(Module):
    """Puts elements back to their positions before a max pool, with zeros elsewhere."""

    __constants__ = ("kernel_size", "stride", "padding")
    dims: ClassVar[int]
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, self.dims)
        self.stride = self.kernel_size if stride is None else _each(stride, self.dims)
        self.padding = _each(padding, self.dims)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Max unpooling over sequences."""

    dims = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpool):
    """Max unpooling over images."""

    dims = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpool):
    """Max unpooling over volumes."""

    dims = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


@configured
class _AvgPool(_Pool):
    """The mean of the elements under the kernel at every position."""

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """Average pooling over sequences."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(
            _each(kernel_size, 1),
            None if stride is None else _each(stride, 1),
            _each(padding, 1),
            ceil_mode,
            count_include_pad,
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPool):
    """Average pooling over images."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class AvgPool3d(_AvgPool):
    """Average pooling over volumes."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


@configured
class _LPPool(Module):
    """The norm of the elements under the kernel at every position."""

    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class LPPool1d(_LPPool):
    """Power-average pooling over sequences."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPool):
    """Power-average pooling over images."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPool):
    """Power-average pooling over volumes."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


@configured
class _AdaptivePool(Module):
    """The base of adaptive poolings, which divide the input into as many parts as the output has positions."""

    output_size: Sizes


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means over parts of sequences."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means over parts of images."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means over parts of volumes."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


@configured
class _AdaptiveMaxPool(_AdaptivePool):
    """The largest element of each part, and, with `return_indices`, its index."""

    output_size: Sizes
    return_indices: bool = False


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Adaptive max pooling over sequences."""

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.adaptive_max_pool1d(input, self.output_size, return_indices=self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Adaptive max pooling over images."""

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.adaptive_max_pool2d(input, self.output_size, return_indices=self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Adaptive max pooling over volumes."""

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.adaptive_max_pool3d(input, self.output_size, return_indices=self.return_indices)


def _each(size: Sizes, dims: int) -> tuple[int, ...]:
    return (size,) * dims if isinstance(size, int) else tuple(size)


Ratios = float | tuple[float, ...]


class _FractionalMaxPool(Module):
    """Max pooling over windows at random positions, with `output_size` or `output_ratio`.

    Raises ValueError unless exactly one of these is given.
    """

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
    """Fractional max pooling over images."""

    _dims = 2

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool3d(_FractionalMaxPool):
    """Fractional max pooling over volumes."""

    _dims = 3

    def forward(self, input: Tensor):  # type: ignore[no-untyped-def]
        return F.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip
