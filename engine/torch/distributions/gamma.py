"""Distributions derived from gamma variables: gamma, chi-squared, beta, Dirichlet, Student's.

In: parameters.  Out: samples (through which no gradients flow) and densities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.aten.autograd import no_grad
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor, tensor
from engine.torch.distributions.distribution import Distribution, together


class Gamma(Distribution):
    """The gamma distribution, of the waiting time for `concentration` events at a rate of `rate`."""

    _names: tuple[str, ...] = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = together(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)
        self._check((self.concentration > 0) & (self.rate > 0), "a concentration and a rate greater than 0")  # type: ignore[operator]

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = call("_standard_gamma", (self._like(self.concentration, sample_shape).contiguous(),), {})
            return (drawn / self.rate).clamp(min=1.2e-38)  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value >= 0

    def _log_prob(self, value: Tensor) -> Tensor:
        a, b = self.concentration, self.rate
        return call("xlogy", (a, b), {}) + call("xlogy", (a - 1, value), {}) - b * value - a.lgamma()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (-a + 1) * a.digamma()  # type: ignore[no-any-return]


class Chi2(Gamma):
    """The chi-squared distribution, of the sum of the squares of `df` normal variables."""

    _names = ("df",)

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(df * 0.5, 0.5, validate_args)

    @property
    def df(self) -> Tensor:
        return self.concentration * 2


class Dirichlet(Distribution):
    """The Dirichlet distribution over positive vectors that sum to one."""

    _names = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)
        self._check(concentration > 0, "concentrations greater than 0")

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        total, mean = self.concentration.sum(-1, True), self.mean
        return mean * (-mean + 1) / (total + 1)  # type: ignore[no-any-return]

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return call("_sample_dirichlet", (self._like(self.concentration, sample_shape).contiguous(),), {})  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        return call("xlogy", (a - 1, value), {}).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        a = self.concentration
        count, total = a.shape[-1], a.sum(-1)
        spread = (total * -1 + count) * total.digamma() + ((a - 1) * a.digamma()).sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - spread  # type: ignore[no-any-return]


class Beta(Distribution):
    """The beta distribution over numbers between 0 and 1: the first of two Dirichlet variables."""

    _names = ("concentration1", "concentration0")

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        self._pair = Dirichlet(call("stack", ([self.concentration1, self.concentration0], -1), {}), validate_args)
        super().__init__(self._pair.batch_shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._pair.sample(sample_shape).select(-1, 0)  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value.ge(0) & value.le(1)  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._pair._log_prob(call("stack", ([value, -value + 1], -1), {}))

    def entropy(self) -> Tensor:
        return self._pair.entropy()


class StudentT(Distribution):
    """Student's t-distribution with `df` degrees of freedom, shifted by `loc` and scaled by `scale`."""

    _names = ("df", "loc", "scale")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = together(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)
        self._check((self.df > 0) & (self.scale > 0), "a df and a scale greater than 0")  # type: ignore[operator]

    @property
    def mean(self) -> Tensor:
        return call("where", (self.df > 1, self.loc, tensor(math.nan)), {})  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        finite = self.scale**2 * self.df / (self.df - 2)
        beyond = call("where", (self.df > 1, tensor(math.inf), tensor(math.nan)), {})
        return call("where", (self.df > 2, finite, beyond), {})  # type: ignore[no-any-return]

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = list(self._extended(sample_shape))
            size = Chi2(self.df).sample(sample_shape) / self.df
            drawn = call("randn", (shape,), {"dtype": self.df.dtype}) * size.rsqrt()
            return self.loc + self.scale * drawn  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        y, df = (value - self.loc) / self.scale, self.df
        norm = self.scale.log() + df.log() * 0.5 + 0.5 * math.log(math.pi) + (df * 0.5).lgamma()
        return ((y**2 / df).log1p() * (df + 1) * -0.5) - norm + ((df + 1) * 0.5).lgamma()  # type: ignore[no-any-return]
