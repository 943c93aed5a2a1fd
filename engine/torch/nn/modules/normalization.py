"""Normalization over the last dimensions.  In: `(..., *normalized_shape)`.  Out: the same shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.aten.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn import init
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter


class LayerNorm(Module):
    """Mean zero and variance one over the last dimensions, then `* weight + bias`."""

    __constants__ = ("normalized_shape", "eps", "elementwise_affine")
    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        make = Parameter(init.empty(shape, dtype)) if elementwise_affine else None
        self.register_parameter("weight", make)
        self.register_parameter("bias", Parameter(init.empty(shape, dtype)) if elementwise_affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )
