"""The multivariate normal distribution.  In: means and covariances.  Out: samples and densities."""

from __future__ import annotations

import math
from collections.abc import Sequence

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.torch.distributions.distribution import Distribution


class MultivariateNormal(Distribution):
    """A normal distribution with mean `loc`, given its covariance, the inverse of it, or its lower triangular root."""

    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        known = {name: value for name, value in given.items() if value is not None}
        if len(known) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = known.items()
        if matrix.ndim < 2 or matrix.shape[-2] != matrix.shape[-1] or matrix.shape[-1] != loc.shape[-1]:
            raise ValueError(f"{name} of shape {list(matrix.shape)} does not fit a loc of {list(loc.shape)}")
        self._names = ("loc", name)
        batch = torch.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
        super().__init__(batch, loc.shape[-1:], validate_args)
        self.loc, matrix = loc.expand([*batch, -1]), matrix.expand([*batch, -1, -1])
        setattr(self, name, matrix)
        if name != "scale_tril":
            self.scale_tril = _root(matrix if name == "covariance_matrix" else torch.linalg.inv(matrix))
        if name != "covariance_matrix":
            self.covariance_matrix = self.scale_tril @ self.scale_tril.mT
        if name != "precision_matrix":
            self.precision_matrix = torch.cholesky_inverse(self.scale_tril)

    @property
    def mean(self) -> Tensor:
        return self.loc  # type: ignore[no-any-return]

    mode = mean

    @property
    def variance(self) -> Tensor:
        return (self.scale_tril**2).sum(-1)  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = torch.randn(list(self._extended(sample_shape)), dtype=self.loc.dtype)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        away = (value - self.loc).unsqueeze(-1)
        solved = torch.linalg.solve_triangular(self.scale_tril, away, upper=False).squeeze(-1)
        size = self.loc.shape[-1]
        return ((solved**2).sum(-1) + size * math.log(2 * math.pi)) * -0.5 - self._log_volume()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return self._log_volume() + 0.5 * self.loc.shape[-1] * (1 + math.log(2 * math.pi))  # type: ignore[no-any-return]

    def _log_volume(self) -> Tensor:
        return torch.diagonal(self.scale_tril, dim1=-2, dim2=-1).log().sum(-1)  # type: ignore[no-any-return]


def _root(covariance: Tensor) -> Tensor:
    """The Cholesky root.  Raises ValueError unless the matrix is positive definite."""
    try:
        return torch.linalg.cholesky(covariance)  # type: ignore[no-any-return]
    except RuntimeError as error:
        raise ValueError(f"the covariance of MultivariateNormal must be positive definite: {error}") from None
