"""Random tensors of rarer distributions.

In: tensors to fill, or rates.  Out: numbers drawn from the generator's stream; for one seed they differ from PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.random import Generator, generator
from engine.aten.kernels.refusals import Refusal, no_code
from engine.aten.kernels.rules import no_kernel
from engine.aten.ops.random import filling, in_place
from engine.aten.values import xp
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

Draw = Callable[..., Array]


def _fill(name: str, arguments: str, draw: Draw) -> None:
    """Register `name_` and its other forms, which give the samples of `draw(generator, shape, *arguments)`."""

    def drawn(self: Array, *rest: Any) -> Array:
        *parameters, source = rest
        if self.dtype not in (xp.REAL if name == "geometric" else xp.FLOATING):
            raise no_kernel(f"{name}_cpu", self.dtype)
        return draw(generator(source), self.shape, *parameters)

    filling(name, "", arguments, in_place(drawn))


def _uniform(source: Generator, shape: tuple[int, ...]) -> Array:
    return source.uniform(shape, xp.FLOAT64)


def exponential(source: Generator, shape: tuple[int, ...], rate: float) -> Array:
    if rate <= 0.0:
        raise OperatorError(f"exponential_ expects lambda > 0.0, but found lambda={rate}")
    drawn: Array = -np.log1p(-_uniform(source, shape)) / rate
    return drawn


def geometric(source: Generator, shape: tuple[int, ...], p: float) -> Array:
    if not 0.0 < p < 1.0:
        raise OperatorError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    with np.errstate(divide="ignore"):
        drawn: Array = np.maximum(np.ceil(np.log(_uniform(source, shape)) / np.log1p(-p)), 1.0)
    return drawn


def cauchy(source: Generator, shape: tuple[int, ...], median: float, sigma: float) -> Array:
    if sigma <= 0.0:
        raise OperatorError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return median + sigma * np.tan(np.pi * (_uniform(source, shape) - 0.5))


def log_normal(source: Generator, shape: tuple[int, ...], mean: float, std: float) -> Array:
    if std <= 0.0:
        raise OperatorError(f"log_normal_ expects std > 0.0, but found std={std}")
    return np.exp(source.normal(shape, xp.FLOAT64) * std + mean)


def _numpy_generator(source: Any) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int(generator(source).words64(1)[0])))


def poisson(self: Array, source: Any) -> Array:
    """Counts with these rates."""
    if self.dtype not in xp.FLOATING:
        raise no_kernel("poisson_cpu", self.dtype)
    if (self < 0).any():
        raise OperatorError("poisson: rates must not be negative")
    return _numpy_generator(source).poisson(self.astype(np.float64)).astype(self.dtype)


def binomial(count: Array, prob: Array, source: Any) -> Array:
    """Samples of the binomial distribution."""
    if (count < 0).any() or not ((prob >= 0) & (prob <= 1)).all():
        raise OperatorError("binomial: counts must not be negative, and probabilities lie in [0, 1]")
    drawn = _numpy_generator(source).binomial(count.astype(np.int64), prob.astype(np.float64))
    return np.asarray(drawn).astype(count.dtype)


def gamma(self: Array, source: Any) -> Array:
    """Numbers of gamma distributions with these shapes."""
    return _numpy_generator(source).standard_gamma(self.astype(np.float64)).astype(self.dtype)


def dirichlet(self: Array, source: Any) -> Array:
    """Shares that sum to one along the last dimension."""
    drawn = gamma(self.astype(np.float64), source)
    shares: Array = (drawn / drawn.sum(-1, keepdims=True)).astype(self.dtype)
    return shares


_fill("exponential", "float lambd=1.", exponential)
_fill("geometric", "float p", geometric)
_fill("cauchy", "float median=0., float sigma=1.", cauchy)
_fill("log_normal", "float mean=1., float std=2.", log_normal)
_COUNTS: Final = "Generator? generator=None"
op(f"aten::poisson(Tensor self, {_COUNTS}) -> Tensor", kernel=poisson, nondeterministic=True)
op(f"aten::binomial(Tensor count, Tensor prob, {_COUNTS}) -> Tensor", kernel=binomial, nondeterministic=True)
op(f"aten::_standard_gamma(Tensor self, {_COUNTS}) -> Tensor", kernel=gamma, nondeterministic=True)
op(f"aten::_sample_dirichlet(Tensor self, {_COUNTS}) -> Tensor", kernel=dirichlet, nondeterministic=True)

# ------------------------------------------------------------------ dtypes refused

describe("_standard_gamma", refuses=no_code("bic", "gamma_cpu"))
describe("_sample_dirichlet", refuses=no_code("bic", "dirichlet"))
describe("binomial", refuses=Refusal("bic", False, lambda d: OperatorError(
    f"binomial only supports floating-point dtypes for count, got: {xp.ir_name(d)}"
)))  # fmt: skip
