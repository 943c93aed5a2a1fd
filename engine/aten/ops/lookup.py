"""Tables looked up by index or by value: embedding, one_hot, searchsorted.

In: arrays.  Out: arrays.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import shapes
from engine.aten.kernels.accumulate import accumulate
from engine.aten.kernels.rules import are_within, no_kernel, tensor_type
from engine.aten.stepwise.language import worth
from engine.aten.stepwise.scattering import sum_bags, sum_weighted_bags
from engine.aten.values import xp
from engine.aten.values.promotion import result_type, wide
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorIndexError

# ------------------------------------------------------------------ embedding


def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Array:
    if weight.ndim != 2:
        raise OperatorError("'weight' must be 2-D")
    check_rows(weight, indices, "embedding")
    return weight[indices]


def check_rows(weight: Array, indices: Array, name: str, place: int = 1) -> None:
    """Raise OperatorError unless the indices, the argument at that place, are of whole numbers that rows have."""
    if indices.dtype not in (xp.INT64, xp.INT32):
        raise OperatorError(
            f"Expected tensor for argument #{place} 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {tensor_type(indices.dtype)} instead (while checking arguments for {name})"
        )
    if not are_within(indices, weight.shape[0]):
        raise OperatorIndexError("index out of range in self")


def one_hot(self: Array, num_classes: int) -> Array:
    if self.dtype != xp.INT64:
        raise OperatorError(
            "one_hot is only applicable to index tensor of type LongTensor.",
            hints=(f"this one holds {xp.ir_name(self.dtype)}",),
        )
    if self.size == 0 and num_classes <= 0:
        raise OperatorError("Can not infer total number of classes from empty tensor.")
    if self.size and self.min() < 0:
        raise OperatorError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(self.max()) + 1
    elif num_classes < 1 and num_classes != 0:
        raise OperatorError("num_classes should be positive")
    elif self.size and self.max() >= num_classes:
        raise OperatorError("Class values must be smaller than num_classes.")
    result = np.zeros((*self.shape, num_classes), np.int64)
    result.reshape(-1)[self.ravel() + np.arange(0, result.size, num_classes or 1)] = 1
    return result


def embedding_bag(
    weight: Array, indices: Array, offsets: Array, scale_grad_by_freq: bool, mode: int, sparse: bool,
    per_sample_weights: Array | None, include_last_offset: bool, padding_idx: int | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Sums (mode 0), means (1) or maxima (2) of rows, bag by bag; offsets say where bags start."""
    check_rows(weight, indices, "embedding_bag")
    if weight.dtype not in xp.FLOATING:
        raise OperatorError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {tensor_type(weight.dtype)} instead (while checking arguments for embedding_bag)"
        )
    if offsets.size and offsets.reshape(-1)[0] != 0:
        raise OperatorError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {int(offsets.reshape(-1)[0])}"
        )
    if per_sample_weights is not None and mode != 0:
        raise OperatorError("embedding_bag: per_sample_weights was not None, only mode='sum' is supported")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise OperatorError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #2 "
            f"'per_sample_weights'; but type {xp.ir_name(weight.dtype)} does not equal "
            f"{xp.ir_name(per_sample_weights.dtype)}"
        )
    if padding_idx is not None:
        padding_idx = _wrapped_row(padding_idx, len(weight))
    count = offsets.size - int(include_last_offset)
    bag = bags_of(indices, offsets, include_last_offset)
    used: Any = slice(None) if padding_idx is None else indices != padding_idx
    sizes = np.bincount(bag[used], minlength=count).astype(np.int64, copy=False)
    rows, result = weight[:0], None
    if mode != 2 and padding_idx is None:
        result = _summed(weight, indices, _ends(indices, offsets, include_last_offset), per_sample_weights)
    if result is None:
        rows = weight[indices].astype(wide(weight.dtype))
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.astype(rows.dtype)[:, np.newaxis]
        result = _bags(rows[used], bag[used], count, mode)
    if mode == 1:
        result = result / np.maximum(sizes, 1).astype(result.dtype)[:, np.newaxis]
    if mode == 0:
        sizes = np.zeros(count, np.int64)
        bag = bag if padding_idx is not None else np.empty(0, np.int64)
    maxima = _first_maxima(rows[used], bag[used], indices[used], result) if mode == 2 else sizes.copy()
    return np.asarray(result).astype(weight.dtype), bag, sizes, maxima


def _summed(weight: Array, indices: Array, ends: Array | None, shares: Array | None) -> Array | None:
    """The sums of consecutive bags in machine code; None if it is not compiled."""
    if ends is None or not (worth(weight) or worth(indices)) or weight.dtype not in xp.FLOATS or not indices.size:
        return None
    if shares is not None and shares.dtype is not weight.dtype:
        return None
    count = ends.size - 1
    result = np.empty((count, weight.shape[1]), weight.dtype)
    work = indices.size * weight.shape[1]
    given = (np.ascontiguousarray(weight), np.ascontiguousarray(indices), ends)
    if shares is None:
        done = sum_bags.run(work, *given, result, count, weight.shape[1])
    else:
        done = sum_weighted_bags.run(work, *given, np.ascontiguousarray(shares), result, count, weight.shape[1])
    return None if done is None else result


def _ends(indices: Array, offsets: Array, include_last_offset: bool) -> Array | None:
    """Where each bag begins, then where the last one ends; None unless they follow one another."""
    starts = offsets.reshape(-1)[: offsets.size - int(include_last_offset)]
    ends = np.empty(starts.size + 1, np.int64)
    ends[:-1], ends[-1] = starts, indices.size
    return ends if starts.size and ends[0] == 0 and (ends[:-1] <= ends[1:]).all() else None


def bags_of(indices: Array, offsets: Array, include_last_offset: bool) -> Array:
    """The bag of each index."""
    ends = _ends(indices, offsets, include_last_offset)
    if ends is not None:
        return np.arange(ends.size - 1).repeat(ends[1:] - ends[:-1])
    starts = offsets[:-1] if include_last_offset else offsets
    return (np.searchsorted(starts, np.arange(indices.size), side="right") - 1).astype(np.int64)


def _first_maxima(rows: Array, bag: Array, indices: Array, result: Array) -> Array:
    """For each element of a bag's maxima, the row that it is from, the first of several; 0 in empty bags."""
    found = np.zeros(result.shape, np.int64)
    for row, place, index in zip(rows[::-1], bag[::-1], indices[::-1], strict=True):
        found[place] = np.where(row == result[place], index, found[place])
    return found


def _wrapped_row(row: int, count: int) -> int:
    if not -count <= row < count:
        raise OperatorError(
            f"padding_idx must be within the number of embeddings, {-count} through {count - 1} but got {row}"
        )
    return row % count


def _bags(rows: Array, bag: Array, count: int, mode: int) -> Array:
    if mode != 2 and count and len(bag) and len(bag) % count == 0:
        each = len(bag) // count
        if np.array_equal(bag, np.arange(count).repeat(each)):
            return np.asarray(np.add.reduce(rows.reshape(count, each, -1), 1))
    if mode != 2:
        sums = np.zeros((count, rows.shape[1]), rows.dtype)
        accumulate(np.add, sums, bag, rows)
        return sums
    largest = np.full((count, rows.shape[1]), -np.inf, rows.dtype)
    accumulate(np.maximum, largest, bag, rows)
    return np.where(np.isneginf(largest), 0, largest)


def _bag_gradient(padding_idx: str) -> dict[str, str]:
    both = (
        "_embedding_bag_gradient(grad, weight, indices, result1, result2, result0, mode, per_sample_weights, "
        f"{padding_idx}, scale_grad_by_freq, offsets, include_last_offset)"
    )
    return {"weight": f"{both}[0]", "per_sample_weights": f"{both}[1]"}


_BAG: Final = "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq"
op("aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "
   "bool sparse=False) -> Tensor", kernel=embedding, variants="function out",
   gradient={"weight": "_embedding_backward(grad, indices, weight.size(0), padding_idx, scale_grad_by_freq)"},
       shape=shapes.embedding,
       dtype="same weight",
   )  # fmt: skip
op(f"aten::embedding_bag({_BAG}=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
   "bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)", kernel=embedding_bag,
   gradient=_bag_gradient("None"), data_dependent=True)  # fmt: skip
op(f"aten::embedding_bag.padding_idx({_BAG}, int mode, bool sparse, Tensor? per_sample_weights, "
   "bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)", kernel=embedding_bag,
   gradient=_bag_gradient("padding_idx"), data_dependent=True)  # fmt: skip
op("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", kernel=one_hot, data_dependent=True, layout="contiguous")

# ------------------------------------------------------------------ search


def searchsorted(
    sorted_sequence: Array, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Array | None
) -> Array:
    values = np.asarray(self)
    _check_search(sorted_sequence, values, right, side, sorter)
    ordered = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, -1)
    where_: Any = "right" if right or side == "right" else "left"
    return _search(ordered, values, where_).astype(np.int32 if out_int32 else np.int64)


def _check_search(bounds: Array, values: Array, right: bool, side: str | None, sorter: Array | None) -> None:
    """Raise OperatorError unless the values can be looked for among the bounds."""

    def refused(words: str) -> OperatorError:
        return OperatorError(f"torch.searchsorted(): {words}")

    if side not in (None, "left", "right"):
        raise refused(f"side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise refused("side and right can't be set to opposites, got side of left while right was True")
    if sorter is not None and sorter.shape != bounds.shape:
        shapes = f"boundary tensor {list(bounds.shape)}and got sorter tensor {list(sorter.shape)}"
        raise refused(f"boundary and sorter must have the same size, but got {shapes}")
    if sorter is not None and sorter.dtype != np.int64:
        raise refused(f"sorter must be a tensor of long dtype but got dtype {xp.ir_name(sorter.dtype)}")
    if sorter is not None and sorter.size and not 0 <= int(sorter.min()) <= int(sorter.max()) < bounds.shape[-1]:
        raise refused("sorter index out of range")
    if values.ndim == 0 and bounds.ndim != 1:
        raise refused(
            "input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
            f"dim({bounds.ndim}) and input value's dim(0) numel(1)"
        )
    if bounds.ndim == 0:
        raise refused("boundaries tensor should have positive dimension, but got 0 dimension")
    if bounds.ndim != 1 and (bounds.ndim != values.ndim or bounds.shape[:-1] != values.shape[:-1]):
        raise refused(
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
            f"tensor must match, but we got boundaries tensor {list(bounds.shape)} and input value tensor "
            f"{list(values.shape)}"
        )
    d = result_type((bounds, values))
    if d not in xp.REAL:
        raise no_kernel("searchsorted_out_cpu", d)


def _search(ordered: Array, values: Array, side: Any) -> Array:
    """Insertion position of each value among the sorted numbers, row by row."""
    d = wide(result_type((ordered, values)))
    count = ordered.shape[-1]
    rows = ordered.astype(d).reshape(-1, count) if ordered.ndim > 1 else ordered.astype(d).reshape(1, count)
    wanted = values.astype(d).reshape(len(rows), -1) if values.size else np.empty((len(rows), 0), d)
    return _halving(rows, wanted, side).reshape(values.shape)


def _halving(rows: Array, values: Array, side: str) -> Array:
    """Insertion positions by binary search in PyTorch's steps, so that unsorted rows give equal results too."""
    count = rows.shape[1]
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, count, np.int64)
    while np.any(unsettled := low < high):
        middle = low + ((high - low) >> 1)
        at = np.take_along_axis(rows, np.minimum(middle, count - 1), 1)
        before = ~(at > values) if side == "right" else ~(at >= values)
        low = np.where(unsettled & before, middle + 1, low)
        high = np.where(unsettled & ~before, middle, high)
    return low


def bucketize(self: Any, boundaries: Array, out_int32: bool, right: bool) -> Array:
    if boundaries.ndim != 1:
        raise OperatorError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, self, out_int32, right, None, None)


_SIDES: Final = "*, bool out_int32=False, bool right=False"
op(f"aten::bucketize.Tensor(Tensor self, Tensor boundaries, {_SIDES}) -> Tensor", kernel=bucketize,
   variants="function out:Tensor_out")  # fmt: skip
op(f"aten::bucketize.Scalar(Scalar self, Tensor boundaries, {_SIDES}) -> Tensor", kernel=bucketize,
   variants="function out")  # fmt: skip
for _kind in ("Tensor", "Scalar"):
    op(f"aten::searchsorted.{_kind}(Tensor sorted_sequence, {_kind} self, {_SIDES}, str? side=None, "
       "Tensor? sorter=None) -> Tensor", kernel=searchsorted, variants=f"function out:{_kind}_out")  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("bucketize.Scalar_out embedding.out", out_check=out_checks.check_same)
describe(
    "bucketize.Tensor_out searchsorted.Tensor_out searchsorted.Scalar_out",
    out_check=out_checks.only_same(
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
        "depending on whether out_int32 flag is True, but we got output tensor's dtype {given}"
    ),
)
