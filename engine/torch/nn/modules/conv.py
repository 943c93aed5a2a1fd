"""Convolutions and transposed ones.  In: `(N, in_channels, *space)` or without N.  Out: `(N, out_channels, *smaller
space)`; a transposed convolution makes the space larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn import init
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter

Sizes = int | tuple[int, ...]


class Convolution(Module):
    """The base of convolutions and transposed convolutions in any number of dimensions."""

    dims: ClassVar[int]
    bias: Tensor | None

    def _set_channels(self, in_channels: int, out_channels: int, groups: int) -> None:
        """Set the numbers of channels.  Raises ValueError if they are not divisible by the groups."""
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"in_channels and out_channels must be divisible by groups: {in_channels}, {out_channels} by {groups}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups

    def _make_weights(
        self, channels: Sequence[int], kernel_size: Sequence[int], bias: bool, dtype: Any, device: Any
    ) -> None:
        self.weight = Parameter(init.empty([*channels, *kernel_size], dtype, device))
        self.register_parameter("bias", Parameter(init.empty([self.out_channels], dtype, device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = init._calculate_fan_in_and_fan_out(self.weight)[0]
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def _each(self, size: Sizes) -> tuple[int, ...]:
        return (size,) * self.dims if isinstance(size, int) else tuple(size)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        none, one = (0,) * self.dims, (1,) * self.dims
        usual = {"padding": none, "dilation": one, "output_padding": none, "groups": 1}
        found = {name: getattr(self, name, value) for name, value in usual.items()}
        parts += [f"{name}={value}" for name, value in found.items() if value != usual[name]]
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(Convolution):
    """The base of convolutions in any number of dimensions."""

    __constants__ = (
        "stride", "padding", "dilation", "groups", "padding_mode", "in_channels", "out_channels", "kernel_size",
    )  # fmt: skip

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._set_channels(in_channels, out_channels, groups)
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode must be zeros, reflect, replicate or circular, but got '{padding_mode}'")
        if isinstance(padding, str) and padding not in ("valid", "same"):
            raise ValueError(f"padding must be 'valid', 'same' or a number for each side, but got '{padding}'")
        if padding == "same" and any(step != 1 for step in self._each(stride)):
            raise ValueError("padding='same' is not supported for strided convolutions")
        self.kernel_size, self.stride = self._each(kernel_size), self._each(stride)
        self.dilation = self._each(dilation)
        self.padding = padding if isinstance(padding, str) else self._each(padding)
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_amounts()
        self._make_weights((out_channels, in_channels // groups), self.kernel_size, bias, dtype, device)

    def _pad_amounts(self) -> list[int]:
        """The amounts that `pad` adds at both ends of every dimension, the last one first."""
        amounts: list[int] = []
        for at in reversed(range(self.dims)):
            if isinstance(self.padding, str):
                total = self.dilation[at] * (self.kernel_size[at] - 1) if self.padding == "same" else 0
                amounts += [total // 2, total - total // 2]
            else:
                amounts += [self.padding[at]] * 2
        return amounts


class Conv1d(_Conv):
    """Convolution over sequences."""

    dims = 1

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return F.conv1d(padded, weight, bias, self.stride, (0,), self.dilation, self.groups)
        return F.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv2d(_Conv):
    """Convolution over images."""

    dims = 2

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return F.conv2d(padded, weight, bias, self.stride, (0, 0), self.dilation, self.groups)
        return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv3d(_Conv):
    """Convolution over volumes."""

    dims = 3

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return F.conv3d(padded, weight, bias, self.stride, (0, 0, 0), self.dilation, self.groups)
        return F.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTranspose(Convolution):
    """The gradient of a convolution, as a layer: every input element adds a kernel to the output."""

    __constants__ = (
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    )  # fmt: skip

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
        self._set_channels(in_channels, out_channels, groups)
        self.kernel_size: Any = self._each(kernel_size)
        self.stride: Any = self._each(stride)
        self.padding: Any = self._each(padding)
        self.dilation: Any = self._each(dilation)
        self.output_padding: Any = self._each(output_padding)
        self.padding_mode = padding_mode
        self._make_weights((in_channels, out_channels // groups), self.kernel_size, bias, dtype, device)

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
        """The padding at one end for an output of the requested size.  Raises ValueError for an impossible size."""
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


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution over sequences."""

    dims = 1

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        added = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.output_padding, self.dilation
        )
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation
        )  # fmt: skip


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution over images."""

    dims = 2

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        added = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.output_padding, self.dilation
        )
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation
        )  # fmt: skip


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution over volumes."""

    dims = 3

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        added = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.output_padding, self.dilation
        )
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation
        )  # fmt: skip
