"""Random tensors of rarer distributions.

In: tensors to fill, or rates.  Out: numbers drawn from the generator's stream, PyTorch's for the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import rejection
from engine.aten.kernels.random import Generator, Stream, generator
from engine.aten.kernels.rules import no_kernel
from engine.aten.ops.random import filling, in_place
from engine.aten.values import xp
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorValueError

Draw = Callable[..., Array]


def _fill(name: str, arguments: str, draw: Draw) -> None:
    """Register `name_` and its other forms, which give the samples of `draw(generator, shape, *arguments)`."""

    def drawn(self: Array, *rest: Any) -> Array:
        *parameters, source = rest
        if self.dtype not in xp.FLOATING and (name != "geometric" or self.dtype not in xp.INTEGERS):
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
    return np.asarray(np.exp(source.normals(math.prod(shape)) * std + mean)).reshape(shape)


def _each(source: Any, sample: Callable[..., float], *parameters: Array) -> Array:
    """Float64 samples for parameters of the same sizes, one after the other in C order."""
    shape = parameters[0].shape
    stream = Stream(generator(source), 4 * parameters[0].size)
    rows = zip(*(each.reshape(-1) for each in parameters), strict=True)
    drawn = [sample(*row, stream) for row in rows]
    stream.close()
    return np.array(drawn, np.float64).reshape(shape)


def poisson(self: Array, source: Any) -> Array:
    """Counts with these rates."""
    if self.dtype not in xp.FLOATING:
        raise no_kernel("poisson_cpu", self.dtype)
    if not np.all((self >= 0) & np.isfinite(self)):
        raise OperatorError("invalid Poisson rate, expected rate to be non-negative")
    return _each(source, rejection.poisson, np.asarray(self.astype(np.float64))).astype(self.dtype)


def binomial(count: Array, prob: Array, source: Any) -> Array:
    """Samples of the binomial distribution."""
    for name, given in (("count", count), ("prob", prob)):
        if given.dtype not in xp.FLOATING:
            raise OperatorValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {xp.ir_name(given.dtype)}"
            )
    if count.dtype != prob.dtype:
        names = xp.ir_name(count.dtype), xp.ir_name(prob.dtype)
        raise OperatorError(f"Found dtype {names[1]} but expected {names[0]}")
    _check_floats("binomial_cpu", count)
    counts, probs = np.broadcast_arrays(count, prob)
    return _each(source, rejection.binomial, counts, probs).astype(count.dtype)


def gamma(self: Array, source: Any) -> Array:
    """Numbers of gamma distributions with these shapes."""
    _check_floats("gamma_cpu", self)
    _check_shapes(self)
    drawn = _each(source, rejection.standard_gamma, self).astype(self.dtype)
    return np.asarray(np.maximum(drawn, xp.limits(self.dtype).tiny))


def dirichlet(self: Array, source: Any) -> Array:
    """Shares that sum to one along the last dimension."""
    _check_floats("dirichlet", self)
    _check_shapes(self)
    drawn = np.maximum(_each(source, rejection.standard_gamma, self.astype(np.float64)), xp.limits(xp.FLOAT64).tiny)
    shares = (drawn / drawn.sum(-1, keepdims=True)).astype(self.dtype)
    below_one = np.nextafter(self.dtype.type(1), self.dtype.type(0))
    return np.asarray(np.clip(shares, xp.limits(self.dtype).tiny, below_one))


def _check_shapes(array: Array) -> None:
    """Raise OperatorError for shapes with which rejection would never end, as it does not in PyTorch."""
    if not np.all((array >= 0) & np.isfinite(array)):
        raise OperatorError("shapes of gamma distributions are finite and not negative")


def _check_floats(name: str, array: Array) -> None:
    if array.dtype not in xp.FLOATS:
        raise no_kernel(name, array.dtype)


_fill("exponential", "float lambd=1.", exponential)
_fill("geometric", "float p", geometric)
_fill("cauchy", "float median=0., float sigma=1.", cauchy)
_fill("log_normal", "float mean=1., float std=2.", log_normal)
_COUNTS: Final = "Generator? generator=None"
op(f"aten::poisson(Tensor self, {_COUNTS}) -> Tensor", kernel=poisson, nondeterministic=True,
   variants="function out")  # fmt: skip
op(f"aten::binomial(Tensor count, Tensor prob, {_COUNTS}) -> Tensor", kernel=binomial, nondeterministic=True,
   variants="function out")  # fmt: skip
op(f"aten::_standard_gamma(Tensor self, {_COUNTS}) -> Tensor", kernel=gamma, nondeterministic=True,
   variants="function out")  # fmt: skip
op(f"aten::_sample_dirichlet(Tensor self, {_COUNTS}) -> Tensor", kernel=dirichlet, nondeterministic=True,
   variants="function out")  # fmt: skip

# ------------------------------------------------------------------ layouts

describe("poisson binomial _standard_gamma _sample_dirichlet", layout="contiguous")
