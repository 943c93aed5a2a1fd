"""Continuous distributions of real numbers: location-scale families, uniform, exponential.

In: parameters.  Out: samples and densities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.torch.distributions.distribution import Distribution, together


class _LocationScale(Distribution):
    """The base of location-scale families, which are shifted by `loc` and scaled by `scale`."""

    _names, has_rsample = ("loc", "scale"), True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)
        self._check(self.scale > 0, "a scale greater than 0")

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _scaled(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _drawn(self, operator: str, sample_shape: Sequence[int]) -> Tensor:
        return call(operator, (list(self._extended(sample_shape)),), {"dtype": self.loc.dtype})  # type: ignore[no-any-return]


class Normal(_LocationScale):
    """The normal distribution with mean `loc` and standard deviation `scale`."""

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self._drawn("randn", sample_shape) * self.scale

    def _log_prob(self, value: Tensor) -> Tensor:
        away = (value - self.loc) ** 2 / (self.scale**2 * 2)
        return -away - self.scale.log() - math.log(math.sqrt(2 * math.pi))  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return self.scale.log() + (0.5 + 0.5 * math.log(2 * math.pi))  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._scaled(value) / math.sqrt(2)).erf() + 1) * 0.5  # type: ignore[no-any-return]

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile of a probability."""
        return self.loc + self.scale * (value * 2 - 1).erfinv() * math.sqrt(2)  # type: ignore[no-any-return]


class LogNormal(Normal):
    """The distribution of the exponential of a normal variable."""

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale**2 / 2).exp()  # type: ignore[no-any-return]

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale**2).exp()  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        square = self.scale**2
        return square.expm1() * (self.loc * 2 + square).exp()  # type: ignore[no-any-return]

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return super().rsample(sample_shape).exp()  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value > 0

    def _log_prob(self, value: Tensor) -> Tensor:
        logarithm = value.log()
        return super()._log_prob(logarithm) - logarithm  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc

    def cdf(self, value: Tensor) -> Tensor:
        return super().cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        return super().icdf(value).exp()  # type: ignore[no-any-return]


class Laplace(_LocationScale):
    """The Laplace distribution: exponential on both sides of `loc`."""

    @property
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(2)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = self._drawn("rand", sample_shape) * 2 - 1
        kept = u.abs().clamp(max=1 - 1.2e-7)
        return self.loc - self.scale * u.sign() * (-kept).log1p()  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        return -(self.scale * 2).log() - self._scaled(value).abs()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return (self.scale * 2).log() + 1  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        away = value - self.loc
        return away.sign() * (-away.abs() / self.scale).expm1() * -0.5 + 0.5  # type: ignore[no-any-return]


class Cauchy(_LocationScale):
    """The Cauchy distribution, of the quotient of two normal variables.  It has no mean."""

    @property
    def mean(self) -> Tensor:
        return self.loc * math.nan

    @property
    def variance(self) -> Tensor:
        return self.loc * 0 + math.inf

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + ((self._drawn("rand", sample_shape) - 0.5) * math.pi).tan() * self.scale  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - (self._scaled(value) ** 2).log1p()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return self.scale.log() + math.log(4 * math.pi)  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        return self._scaled(value).atan() / math.pi + 0.5  # type: ignore[no-any-return]


class Gumbel(_LocationScale):
    """The Gumbel distribution, of the maximum of many variables."""

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * _EULER

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (math.pi**2 / 6)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = self._drawn("rand", sample_shape).clamp(min=1.2e-38, max=1 - 6e-8)
        return self.loc - (-u.log()).log() * self.scale  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        y = -self._scaled(value)
        return y - y.exp() - self.scale.log()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + _EULER)  # type: ignore[no-any-return]


_EULER = 0.57721566490153286060


class HalfNormal(Distribution):
    """The distribution of the absolute value of a normal variable with mean 0."""

    _names, has_rsample = ("scale",), True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._whole = Normal(0.0, scale, validate_args)
        self.scale = self._whole.scale
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._whole.rsample(sample_shape).abs()  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value >= 0

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._whole._log_prob(value) + math.log(2)

    def entropy(self) -> Tensor:
        return self._whole.entropy() - math.log(2)


class Uniform(Distribution):
    """The uniform distribution between `low` and `high`."""

    _names, has_rsample = ("low", "high"), True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = together(low, high)
        super().__init__(self.low.shape, (), validate_args)
        self._check(self.low < self.high, "a low bound below the high one")

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = call("rand", (list(self._extended(sample_shape)),), {"dtype": self.low.dtype})
        return self.low + drawn * (self.high - self.low)  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return self.low.le(value) & self.high.ge(value)  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        inside = self.low.le(value) & self.high.gt(value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)  # type: ignore[no-any-return]


class Exponential(Distribution):
    """The exponential distribution, of waiting times for events at a rate of `rate`."""

    _names, has_rsample = ("rate",), True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, (), validate_args)
        self._check(self.rate > 0, "a rate greater than 0")

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        return self.rate**-2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self.rate.detach().new_empty(list(self._extended(sample_shape))).exponential_()
        return drawn / self.rate  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value >= 0

    def _log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * value  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return -self.rate.log() + 1  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * value).expm1()  # type: ignore[no-any-return]
