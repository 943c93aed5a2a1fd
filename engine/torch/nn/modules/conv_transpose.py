"""Transposed convolutions.  In: `(N, in_channels, *space)` or without N.  Out: `(N, out_channels, *larger space)`."""

from __future__ import annotations

from typing import Any

from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.conv import Convolution, Sizes


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
        self._make_weights((in_channels, out_channels // groups), self.kernel_size, bias, dtype)

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
