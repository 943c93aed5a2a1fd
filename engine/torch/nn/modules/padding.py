"""Padding.  In: `(N, C, *space)` or `(C, *space)`.  Out: the same with more space at both ends."""

from __future__ import annotations

from typing import ClassVar

from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.module import Module


class _Pad(Module):
    """The base of paddings: amounts for both ends of each dimension, the last one first, or one number for all."""

    __constants__: tuple[str, ...] = ("padding",)
    dims: ClassVar[int]
    padding: tuple[int, ...]

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    __constants__ = ("padding", "value")
    value: float

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class _ReplicationPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class _CircularPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "circular")


class ConstantPad1d(_ConstantPad):
    """Padding of sequences with a constant value."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """Padding of images with a constant value."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """Padding of volumes with a constant value."""

    dims = 3


class ZeroPad1d(_ZeroPad):
    """Padding of sequences with zeros."""

    dims = 1


class ZeroPad2d(_ZeroPad):
    """Padding of images with zeros."""

    dims = 2


class ZeroPad3d(_ZeroPad):
    """Padding of volumes with zeros."""

    dims = 3


class ReflectionPad1d(_ReflectionPad):
    """Padding of sequences with their elements mirrored at the edge."""

    dims = 1


class ReflectionPad2d(_ReflectionPad):
    """Padding of images with their elements mirrored at the edges."""

    dims = 2


class ReflectionPad3d(_ReflectionPad):
    """Padding of volumes with their elements mirrored at the edges."""

    dims = 3


class ReplicationPad1d(_ReplicationPad):
    """Padding of sequences with the value at the edge."""

    dims = 1


class ReplicationPad2d(_ReplicationPad):
    """Padding of images with the values at the edges."""

    dims = 2


class ReplicationPad3d(_ReplicationPad):
    """Padding of volumes with the values at the edges."""

    dims = 3


class CircularPad1d(_CircularPad):
    """Padding of sequences with elements of the opposite end."""

    dims = 1


class CircularPad2d(_CircularPad):
    """Padding of images with elements of the opposite side."""

    dims = 2


class CircularPad3d(_CircularPad):
    """Padding of volumes with elements of the opposite side."""

    dims = 3
