"""Transposed convolutions.  In: `(N, in_channels, *space)` or without N.  Out: `(N, out_channels, *larger space)`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from engine.aten.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn import init
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter

Sizes = int | tuple[int, ...]


class _ConvTranspose(Module):
    """The gradient of a convolution, as a layer: every input element adds a kernel to the output."""

    __constants__ = (
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    )  # fmt: skip
    dims: ClassVar[int]
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(f"Only 'zeros' padding mode is supported for {type(self).__name__}")
        if in_channels % groups or out_channels % groups:
            raise ValueError("in_channels and out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size: Any = self._each(kernel_size)
        self.stride: Any = self._each(stride)
        self.padding: Any = self._each(padding)
        self.dilation: Any = self._each(dilation)
        self.output_padding: Any = self._each(output_padding)
        self.padding_mode = padding_mode
        self.weight = Parameter(init.empty([in_channels, out_channels // groups, *self.kernel_size], dtype))
        self.register_parameter("bias", Parameter(init.empty([out_channels], dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = init.fans(self.weight)[0]
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def _each(self, size: Sizes) -> tuple[int, ...]:
        return (size,) * self.dims if isinstance(size, int) else tuple(size)

    def _output_padding(
        self,
        input: Tensor,
        output_size: list[int] | None,
        stride: list[int],
        padding: list[int],
        kernel_size: list[int],
        output_padding: list[int],
        dilation: list[int],
    ) -> list[int]:
        """How much to add at one end so that the output has the size that is asked for.  Raises ValueError."""
        if output_size is None:
            return output_padding
        dims = len(stride)
        wanted = output_size[len(output_size) - dims :]
        added: list[int] = []
        for i in range(dims):
            least = (input.size(i - dims) - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel_size[i] - 1) + 1
            if wanted[i] < least or wanted[i] > least + stride[i] - 1:
                raise ValueError(f"requested an output size of {output_size}, which the input does not lead to")
            added.append(wanted[i] - least)
        return added

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        usual = {
            "padding": (0,) * self.dims,
            "dilation": (1,) * self.dims,
            "output_padding": (0,) * self.dims,
            "groups": 1,
        }
        parts += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([*parts, *(["bias=False"] if self.bias is None else [])])


class ConvTranspose1d(_ConvTranspose):
    """Over sequences."""

    dims = 1

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        added = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.output_padding, self.dilation
        )
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation
        )  # fmt: skip


class ConvTranspose2d(_ConvTranspose):
    """Over images."""

    dims = 2

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        added = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.output_padding, self.dilation
        )
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation
        )  # fmt: skip


class ConvTranspose3d(_ConvTranspose):
    """Over volumes."""

    dims = 3

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        added = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.output_padding, self.dilation
        )
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation
        )  # fmt: skip
