"""`torch.nn.utils.parametrizations`: weight normalization, spectral normalization, orthogonal weights.

In: a module with a weight.  Out: the module, its weight computed from the trained parameters.
"""

from __future__ import annotations

from typing import Any

import engine as torch
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.module import Module
from engine.torch.nn.utils.parametrize import register_parametrization


class _WeightNorm(Module):
    """A direction `v` and a length `g`, one for each row (or all, with `dim=None`)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return torch._weight_norm(weight_v, weight_g, self.dim)  # type: ignore[no-any-return]

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return lengths(weight, self.dim), weight


def lengths(weight: Tensor, dim: int) -> Tensor:
    """The norms over all dimensions but one (over all, with -1), kept as dimensions of size one."""
    dims = [d for d in range(weight.ndim) if d != dim] if dim != -1 else None
    norm: Tensor = call("linalg_vector_norm", (weight, 2, dims), {"keepdim": dim != -1})
    return norm


class _SpectralNorm(Module):
    """The weight divided by its largest singular value, estimated by power iteration at every call in training."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps, self.n_power_iterations = eps, n_power_iterations
        if weight.ndim > 1:
            rows, columns = self._matrix(weight).shape
            for name, size in (("_u", rows), ("_v", columns)):
                drawn = weight.detach().new_empty([size]).normal_(0, 1)
                self.register_buffer(name, F.normalize(drawn, dim=0, eps=eps))
            self._iterate(self._matrix(weight), 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        turned = weight if self.dim == 0 else weight.movedim(self.dim, 0)
        return turned.flatten(1)  # type: ignore[no-any-return]

    def _iterate(self, matrix: Tensor, times: int) -> None:
        with torch.no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if not hasattr(self, "_u"):
            return F.normalize(weight, dim=0, eps=self.eps)  # type: ignore[no-any-return]
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / self._u.clone().dot(matrix.mv(self._v.clone()))  # type: ignore[no-any-return]

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


class _Orthogonal(Module):
    """The exponential of a skew-symmetric matrix, times the initial matrix."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.wide = weight.shape[-2] < weight.shape[-1]
        tall = weight.detach().mT if self.wide else weight.detach()
        self.register_buffer("base", call("linalg_qr", (tall, "complete"), {})[0])

    def forward(self, x: Tensor) -> Tensor:
        columns = x.shape[-2] if self.wide else x.shape[-1]
        tall = (x.mT if self.wide else x).tril()
        square = F.pad(tall, [0, tall.shape[-2] - columns])
        turned = self.base @ torch.matrix_exp(square - square.mT)
        found = turned[..., :columns]
        return found.mT if self.wide else found  # type: ignore[no-any-return]

    def right_inverse(self, value: Tensor) -> Tensor:
        """Make an orthogonal basis of the value's columns the initial matrix; the zeros that select it."""
        tall = value.mT if self.wide else value
        self.base.copy_(call("linalg_qr", (tall, "complete"), {})[0])
        return value * 0


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Split the weight into lengths and directions for training."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Keep the weight's largest singular value at one."""
    if dim is None:
        dim = 1 if "ConvTranspose" in type(module).__name__ else 0
    made = _SpectralNorm(getattr(module, name), n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keep the weight's columns (or rows, if there are fewer) orthogonal.  Raises ValueError for a vector."""
    weight = getattr(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    return register_parametrization(module, name, _Orthogonal(weight), unsafe=True)
