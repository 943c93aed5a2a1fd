"""Normalization over the last dimensions.  In: `(..., *normalized_shape)`.  Out: the same shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn import init
from engine.torch.nn.modules.configured import configured
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter


class _Scaled(Module):
    """The base of normalizations with an optional weight and bias."""

    def _make(self, shape: Sequence[int], dtype: Any, device: Any, **wanted: bool) -> None:
        """Make weight and bias of that shape, or None where they are switched off."""
        for name, is_wanted in wanted.items():
            self.register_parameter(name, Parameter(init.empty(shape, dtype, device)) if is_wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for name, parameter in self.named_parameters(recurse=False):
            (init.ones_ if name == "weight" else init.zeros_)(parameter)


class LayerNorm(_Scaled):
    """Normalizes the last dimensions to mean zero and variance one, then `* weight + bias`."""

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
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self._make(shape, dtype, device, weight=elementwise_affine, bias=elementwise_affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_Scaled):
    """Divides by the root of the mean square over the last dimensions, then multiplies by `weight`."""

    __constants__ = ("normalized_shape", "eps", "elementwise_affine")
    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self._make(shape, dtype, device, weight=elementwise_affine)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Scaled):
    """Normalizes groups of channels to mean zero and variance one, then `* weight + bias` for each channel."""

    __constants__ = ("num_groups", "num_channels", "eps", "affine")
    num_groups: int
    num_channels: int
    eps: float
    affine: bool

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make([num_channels], dtype, device, weight=affine, bias=affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        shown = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}"


@configured
class LocalResponseNorm(Module):
    """Divides by the energy of the neighbouring channels."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
