"""Activations: functions of every element, as modules.  In: any shape.  Out: the same shape, halved by GLU."""

from __future__ import annotations

from typing import Any

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn import init
from engine.torch.nn.modules.configured import configured
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter


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


class ReLU6(Hardtanh):
    """`x` kept between 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class SELU(_Inplace):
    """A scaled ELU that keeps mean and variance."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Hardsigmoid(_Inplace):
    """`clamp(x + 3, 0, 6) / 6`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Mish(_Inplace):
    """`x * tanh(softplus(x))`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


@configured
class CELU(Module):
    """`x` above zero, `alpha * (exp(x / alpha) - 1)` below."""

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


@configured
class RReLU(Module):
    """LeakyReLU whose slope is random for each element in training."""

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Module):
    """LeakyReLU whose slope is learned, one for all or one for each channel."""

    __constants__ = ("num_parameters",)
    num_parameters: int
    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_empty([num_parameters], dtype, device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


_empty = init.empty


@configured
class Threshold(Module):
    """`x` above the threshold, a value below."""

    threshold: float
    value: float
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


@configured
class GLU(Module):
    """One half of the input times the sigmoid of the other."""

    dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


@configured
class Softmin(Module):
    """Softmax of the negated input."""

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of images."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class LogSigmoid(Module):
    """`log(sigmoid(x))`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """`x / (1 + |x|)`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """`x - tanh(x)`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


@configured
class Hardshrink(Module):
    """Zero within `lambd` of zero, `x` elsewhere."""

    lambd: float = 0.5

    def forward(self, input: Tensor) -> Tensor:
        return torch.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Hardshrink):
    """`x` moved towards zero by `lambd`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)
