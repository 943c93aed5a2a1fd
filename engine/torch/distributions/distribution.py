"""The base of distributions, and independent dimensions.

In: parameters, numbers or tensors that broadcast.  Out: `sample`, `rsample` (through which gradients flow), `log_prob`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.aten.autograd import no_grad
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Size, Tensor, tensor


class Distribution:
    """The base: `_names` are the parameters that `repr` shows; `_log_prob` and `_allows` get values of valid shapes.

    With `validate_args=False` parameters and values are not checked.
    """

    _names: tuple[str, ...] = ()
    has_rsample = False

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)
        self._validate_args = validate_args is not False

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples through which gradients flow to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no samples through which gradients flow")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples of shape `sample_shape + batch_shape + event_shape`."""
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the value's density or probability.  Raises ValueError for values outside the support."""
        if self._validate_args:
            self._check_value(value)
        return self._log_prob(value)

    def _log_prob(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} cannot tell how likely a value is")

    def _allows(self, value: Tensor) -> Tensor | None:
        """The mask of values inside the support; None if it is not known."""
        return None

    def _check_value(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"log_prob takes a tensor, not {type(value).__name__}")
        own = (*self.batch_shape, *self.event_shape)
        for wanted, given in zip(reversed(own), reversed(value.shape), strict=False):
            if wanted != given and 1 not in (wanted, given):
                raise ValueError(f"a value of shape {list(value.shape)} does not fit samples of shape {list(own)}")
        allowed = self._allows(value)
        if allowed is not None and not bool(allowed.all()):
            raise ValueError(f"the value is outside of what {self} can give: {value}")

    def _check(self, holds: Tensor, wish: str) -> None:
        """Check a constraint on a parameter.  Raises ValueError with the constraint's text."""
        if self._validate_args and not bool(holds.all()):
            raise ValueError(f"{type(self).__name__} expects {wish}")

    def entropy(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no formula for its entropy")

    def perplexity(self) -> Tensor:
        found: Tensor = self.entropy().exp()
        return found

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        spread: Tensor = call("sqrt", (self.variance,), {})
        return spread

    def _extended(self, sample_shape: Sequence[int]) -> Size:
        return Size((*sample_shape, *self.batch_shape, *self.event_shape))

    def _like(self, parameter: Tensor, sample_shape: Sequence[int]) -> Tensor:
        """The parameter expanded to the shape of the samples."""
        return parameter.expand(list(self._extended(sample_shape)))  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        shown = ((name, getattr(self, name)) for name in self._names)
        texts = (f"{n}: {v.item() if v.numel() == 1 else tuple(v.shape)}" for n, v in shown)
        return f"{type(self).__name__}({', '.join(_sized(text) for text in texts)})"


def _sized(text: str) -> str:
    name, _, value = text.partition(": ")
    return f"{name}: torch.Size([{value[1:-1].rstrip(',')}])" if value.startswith("(") else text


def together(*values: Any) -> list[Tensor]:
    """Numbers and tensors broadcast to tensors of one shape."""
    tensors = [value if isinstance(value, Tensor) else tensor(float(value)) for value in values]
    found: list[Tensor] = list(call("broadcast_tensors", (tensors,), {}))
    return found


def summed(values: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` dimensions."""
    return values.sum(list(range(-dims, 0))) if dims else values


class Independent(Distribution):
    """A distribution whose last batch dimensions are reinterpreted as event dimensions."""

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if cut < 0:
            raise ValueError(
                f"{base_distribution} has {len(base_distribution.batch_shape)} batch dimensions, "
                f"not {reinterpreted_batch_ndims}"
            )
        super().__init__(shape[:cut], shape[cut:], validate_args)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return summed(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
