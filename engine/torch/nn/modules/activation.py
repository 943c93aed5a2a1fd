"""Activations: functions of every element, as modules.  In: any shape.  Out: the same shape."""

from __future__ import annotations

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.configured import configured
from engine.torch.nn.modules.module import Module


@configured
class _Inplace(Module):
    """An activation that may write its result into its input."""

    inplace: bool = False


class ReLU(_Inplace):
    """`max(x, 0)`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class SiLU(_Inplace):
    """`x * sigmoid(x)`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Hardswish(_Inplace):
    """`x * clamp(x + 3, 0, 6) / 6`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


@configured
class ELU(Module):
    """`x` above zero, `alpha * (exp(x) - 1)` below."""

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


@configured
class LeakyReLU(Module):
    """`x` above zero, `negative_slope * x` below."""

    negative_slope: float = 0.01
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


@configured
class Hardtanh(Module):
    """`x` kept between two bounds."""

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`."""

    def forward(self, input: Tensor) -> Tensor:
        return torch.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return torch.tanh(input)


@configured
class GELU(Module):
    """`x` times the chance that a normal variable is below `x`; `approximate="tanh"` is the cheaper formula."""

    approximate: str = "none"

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


@configured
class Softplus(Module):
    """`log(1 + exp(beta * x)) / beta`; above the threshold it is `x` itself."""

    beta: float = 1.0
    threshold: float = 20.0

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


@configured
class Softmax(Module):
    """Exponentials that sum to one along `dim`."""

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


@configured
class LogSoftmax(Module):
    """The logarithm of Softmax."""

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)
