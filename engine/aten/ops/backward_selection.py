"""Gradients of embedding, gather and scatter operators: see `backward`.

In: the gradient of a result, indices, and what else the formula passes along.  Out: the gradient of an argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import cast, run, sum_over
from engine.aten.dispatch.table import op
from engine.aten.kernels.rules import wrap_dim
from engine.aten.ops.backward import narrow_backward
from engine.aten.ops.lookup import bags_of
from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.xp import Array

Pair = tuple[Tensor, Tensor]

# ------------------------------------------------------------------ rows of a table


def embedding_backward(grad: Tensor, indices: Tensor, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Gradients of the rows that were looked up, added up."""
    places = indices.array.reshape(-1)
    flat = grad.reshape([places.size, -1])
    weights = np.ones(places.size)
    if scale_grad_by_freq:
        weights = weights / np.bincount(places, minlength=rows)[places]
    if padding_idx >= 0:
        weights = np.where(places == padding_idx, 0, weights)
    if np.any(weights != 1):
        flat = flat * from_numpy(weights.astype(grad.array.dtype)[:, None])
    zeros = from_numpy(np.zeros((rows, grad.shape[-1]), grad.array.dtype))
    summed: Tensor = run("index_add", zeros, 0, from_numpy(places), flat, 1)
    return summed


def embedding_bag_backward(
    grad: Tensor, weight: Tensor, indices: Tensor, bag: Tensor, sizes: Tensor, result: Tensor, mode: int,
    per_sample_weights: Tensor | None, padding_idx: int | None, scale_grad_by_freq: bool, offsets: Tensor,
    include_last_offset: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients of the rows and of the samples' weights."""
    if bag.array.size != indices.array.size:
        bag = from_numpy(bags_of(indices.array, offsets.array, include_last_offset))
    padding = -1 if padding_idx is None else padding_idx % weight.shape[0]
    of_rows: Tensor = run("index_select", grad, 0, bag)
    rows: Tensor = run("index_select", weight, 0, indices)
    of_samples = sum_over(of_rows * rows, [-1], keep=False)
    if padding >= 0:
        of_samples = of_samples.masked_fill(run("eq.Scalar", indices, padding), 0)
    if per_sample_weights is not None:
        of_rows = of_rows * per_sample_weights.unsqueeze(-1)
    if mode == 1:
        counts = np.maximum(sizes.array, 1)[bag.array].astype(grad.array.dtype)
        of_rows = of_rows / from_numpy(counts[:, None])
    if mode == 2:
        of_rows = of_rows * from_numpy(_first_greatest(rows.array, bag.array, result.array).astype(grad.array.dtype))
    return embedding_backward(of_rows, indices, weight.shape[0], padding, scale_grad_by_freq), of_samples


def _first_greatest(rows: Array, bag: Array, result: Array) -> Array:
    """Mask of the elements that the bags' maxima were taken from, the first of equal ones."""
    chosen = rows == result[bag]
    seen = np.zeros(result.shape, np.bool_)
    for i, place in enumerate(bag):
        chosen[i] &= ~seen[place]
        seen[place] |= chosen[i]
    found: Array = chosen
    return found


def masked_scatter_backward(grad: Tensor, mask: Tensor, size: list[int]) -> Tensor:
    taken: Tensor = run("masked_select", grad, mask)
    count = math.prod(size)
    rest = from_numpy(np.zeros(count - taken.array.size, grad.array.dtype))
    found: Tensor = run("cat", [taken, rest], 0).reshape(list(size))
    return found


def scatter_reduce_backward(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of self and src."""
    if not index.array.size:
        return grad, src * 0
    gathered, given = grad.gather(dim, index), _front(src, index)
    of_self, of_src = _REDUCTIONS[reduce](grad, gathered, self, dim, index, given, include_self, result)
    if not include_self:
        of_self = of_self.scatter(dim, index, 0)
    return of_self, _back(of_src, src)


def index_reduce_backward(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of self and source: the same with an index for every element."""
    if self.ndim == 0:
        parts = [t.reshape([1]) for t in (grad, self, result)]
        of_self, of_source = index_reduce_backward(
            parts[0], parts[1], 0, index, source.reshape([-1]), reduce, include_self, parts[2]
        )
        return of_self.reshape([]), of_source.reshape(list(source.shape))
    shape = [1] * source.ndim
    shape[wrap_dim(dim, self.ndim)] = -1
    places = index.reshape(shape).expand(list(source.shape))
    return scatter_reduce_backward(grad, self, dim, places, source, reduce, include_self, result)


def _front(src: Tensor, index: Tensor) -> Tensor:
    """The part of the source that the indices speak of."""
    for axis, size in enumerate(index.shape):
        src = src if src.shape[axis] == size else src.narrow(axis, 0, size)
    return src


def _back(part: Tensor, src: Tensor) -> Tensor:
    for axis, size in enumerate(part.shape):
        if src.shape[axis] != size:
            shape = [*part.shape[:axis], src.shape[axis], *part.shape[axis + 1 :]]
            part = narrow_backward(part, shape, axis, 0, size)
    return part


def _sum_reduced(grad: Tensor, gathered: Tensor, *_: Any) -> Pair:
    return grad, gathered


def _mean_reduced(
    grad: Tensor, gathered: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, _: Tensor
) -> Pair:
    start = np.full(self.shape, int(include_self), self.array.dtype)
    ones = from_numpy(np.ones(index.shape, self.array.dtype))
    count = run("scatter_add", from_numpy(start), dim, index, ones).clamp_min(1)
    return grad / count, gathered / count.gather(dim, index)


def _prod_reduced(
    grad: Tensor, gathered: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, _: Tensor
) -> Pair:
    """Products without the element itself: zeros are replaced by ones, and count as one zero less."""
    base = self if include_self else self.scatter(dim, index, 1)
    zeros = [cast(run("eq.Scalar", t, 0), t.array.dtype) for t in (base, src)]
    count = run("scatter_add", zeros[0], dim, index, zeros[1])
    plain = [t.masked_fill(run("eq.Scalar", t, 0), 1) for t in (base, src)]
    product = run("scatter_reduce.two", plain[0], dim, index, plain[1], "prod", True)
    found = []
    for own, own_zero, whole, zeros_there in (
        (plain[0], zeros[0], product, count),
        (plain[1], zeros[1], product.gather(dim, index), count.gather(dim, index)),
    ):
        others = cast(run("eq.Tensor", zeros_there, own_zero), own.array.dtype)
        found.append(whole / own * others)
    return grad * found[0], gathered * found[1]


def _extreme_reduced(
    grad: Tensor, gathered: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool,
    result: Tensor,
) -> Pair:  # fmt: skip
    d = self.array.dtype
    of_self = cast(run("eq.Tensor", self, result), d)
    of_self = of_self if include_self else of_self.scatter(dim, index, 0)
    of_src = cast(run("eq.Tensor", src, result.gather(dim, index)), d)
    count = run("scatter_add", of_self, dim, index, of_src).clamp_min(1)
    return grad / count * of_self, (grad / count).gather(dim, index) * of_src


_REDUCTIONS: Final[dict[str, Callable[..., Pair]]] = {
    "sum": _sum_reduced, "mean": _mean_reduced, "prod": _prod_reduced, "amax": _extreme_reduced,
    "amin": _extreme_reduced,
}  # fmt: skip

op("aten::_embedding_backward(Tensor grad, Tensor indices, int rows, int padding_idx, bool scale_grad_by_freq) "
   "-> Tensor", python=embedding_backward)  # fmt: skip
op("aten::_embedding_bag_gradient(Tensor grad, Tensor weight, Tensor indices, Tensor bag, Tensor sizes, Tensor result, "
   "int mode, Tensor? per_sample_weights, int? padding_idx, bool scale_grad_by_freq, Tensor offsets, "
   "bool include_last_offset) -> (Tensor, Tensor)",
   python=embedding_bag_backward)  # fmt: skip
op("aten::_masked_scatter_backward(Tensor grad, Tensor mask, int[] size) -> Tensor", python=masked_scatter_backward)
op("aten::_scatter_reduce_backward(Tensor grad, Tensor self, int dim, Tensor index, Tensor src, str reduce, "
   "bool include_self, Tensor result) -> (Tensor, Tensor)", python=scatter_reduce_backward)  # fmt: skip
op("aten::_index_reduce_backward(Tensor grad, Tensor self, int dim, Tensor index, Tensor source, str reduce, "
   "bool include_self, Tensor result) -> (Tensor, Tensor)", python=index_reduce_backward)  # fmt: skip
