"""Discrete distributions.  In: probabilities or logits, or a rate.  Out: samples and probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.aten.autograd import no_grad
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.torch.distributions.distribution import Distribution, together


def _one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Bernoulli(Distribution):
    """1 with probability `probs`, else 0."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one_of(probs, logits)
        self._names = ("probs",) if logits is None else ("logits",)
        if logits is None:
            (self.probs,) = together(probs)
            if validate_args is not False and not bool(self.probs.ge(0).logical_and(self.probs.le(1)).all()):
                raise ValueError("Bernoulli expects probabilities between 0 and 1")
            kept = self.probs.clamp(*_EDGES)
            self.logits = kept.log() - (-kept).log1p()
        else:
            (self.logits,) = together(logits)
            self.probs = self.logits.sigmoid()
        super().__init__(self.probs.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (-self.probs + 1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn: Tensor = call("bernoulli", (self.probs.expand(list(self._extended(sample_shape))),), {})
            return drawn

    def _allows(self, value: Tensor) -> Tensor:
        return value.eq(0) | value.eq(1)  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        return -self._loss(value)

    def entropy(self) -> Tensor:
        return self._loss(self.probs)

    def _loss(self, target: Tensor) -> Tensor:
        logits, wanted = together(self.logits, target)
        loss: Tensor = call("binary_cross_entropy_with_logits", (logits, wanted, None, None, 0), {})
        return loss


_EDGES = (1.1920928955078125e-07, 1 - 1.1920928955078125e-07)
"""The bounds between which probabilities have finite logits."""


class Categorical(Distribution):
    """A category with weights `probs` along the last dimension (which need not sum to one)."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one_of(probs, logits)
        self._names = ("probs",) if logits is None else ("logits",)
        given = probs if logits is None else logits
        if given.ndim < 1:
            raise ValueError("`probs` and `logits` must be at least one-dimensional.")
        if logits is None:
            if validate_args is not False and not bool((probs >= 0).all()):
                raise ValueError("Categorical expects probabilities that are not negative")
            self.probs = probs / probs.sum(-1, keepdim=True)
            self.logits = self.probs.clamp(*_EDGES).log()
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
            self.probs = self.logits.softmax(-1)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        count = 1
        for size in sample_shape:
            count *= size
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn: Tensor = call("multinomial", (rows, count, True), {}).t()
            return drawn.reshape(list(self._extended(sample_shape)))  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value.ge(0) & value.lt(self._num_events) & value.eq(value.floor())  # type: ignore[no-any-return]

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All categories."""
        values: Tensor = call("arange", (self._num_events,), {}).view([-1, *(1 for _ in self.batch_shape)])
        return values.expand([-1, *self.batch_shape]) if expand else values

    def _log_prob(self, value: Tensor) -> Tensor:
        places = value.to(scalars.int64).unsqueeze(-1)
        shape = list(call("broadcast_tensors", ([places, self.logits],), {})[0].shape)
        found: Tensor = self.logits.expand(shape).gather(-1, places.expand([*shape[:-1], 1]))
        return found.squeeze(-1)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return -(self.logits.clamp(min=_LEAST) * self.probs).sum(-1)  # type: ignore[no-any-return]


_LEAST = -3.4028234663852886e38


class OneHotCategorical(Distribution):
    """A category as a one-hot vector."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self._names = self._categorical._names
        self.probs, self.logits = self._categorical.probs, self._categorical.logits
        super().__init__(self._categorical.batch_shape, self.probs.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        return self.probs * (-self.probs + 1)  # type: ignore[no-any-return]

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample(sample_shape)
        return call("one_hot", (drawn, self.probs.shape[-1]), {}).to(self.probs.dtype)  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._categorical._log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()


class Poisson(Distribution):
    """The number of events where `rate` are expected."""

    _names = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, (), validate_args)
        self._check(self.rate >= 0, "a rate that is not negative")

    @property
    def mean(self) -> Tensor:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()  # type: ignore[no-any-return]

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return call("poisson", (self._like(self.rate, sample_shape).contiguous(),), {})  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value.ge(0) & value.eq(value.floor())  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        rate, counts = together(self.rate, value)
        return call("xlogy", (counts, rate), {}) - rate - (counts + 1).lgamma()  # type: ignore[no-any-return]


class Geometric(Distribution):
    """The number of failures before the first success."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        each = Bernoulli(probs, logits, validate_args)
        self._names, self.probs, self.logits = each._names, each.probs, each.logits
        super().__init__(self.probs.shape, (), validate_args)
        self._check(self.probs > 0, "probabilities greater than 0")

    @property
    def mean(self) -> Tensor:
        return self.probs.reciprocal() - 1  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        return (self.probs.reciprocal() - 1) / self.probs  # type: ignore[no-any-return]

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            u = call("rand", (list(self._extended(sample_shape)),), {"dtype": self.probs.dtype}).clamp(min=1.2e-38)
            return (u.log() / (-self.probs).log1p()).floor()  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value.ge(0) & value.eq(value.floor())  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        return call("xlogy", (value, -self.probs + 1), {}) + self.probs.log()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        rest = -self.probs + 1
        spread = call("xlogy", (self.probs, self.probs), {}) + call("xlogy", (rest, rest), {})
        return -spread / self.probs  # type: ignore[no-any-return]


class Binomial(Distribution):
    """The number of successes in `total_count` trials."""

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        each = Bernoulli(probs, logits, validate_args)
        self._names = ("total_count", *each._names)
        self.total_count, self.probs, self.logits = together(total_count, each.probs, each.logits)
        super().__init__(self.probs.shape, (), validate_args)
        self._check(self.total_count >= 0, "a count that is not negative")

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (-self.probs + 1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        given = (self._like(each, sample_shape).contiguous() for each in (self.total_count, self.probs))
        with no_grad():
            return call("binomial", tuple(given), {})  # type: ignore[no-any-return]

    def _allows(self, value: Tensor) -> Tensor:
        return value.ge(0) & self.total_count.ge(value) & value.eq(value.floor())  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        successes = call("xlogy", (value, self.probs), {})
        return ways + successes + call("xlogy", (n - value, -self.probs + 1), {})  # type: ignore[no-any-return]
