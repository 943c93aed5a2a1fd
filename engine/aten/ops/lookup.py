"""Tables looked up by index or by value: embedding, one_hot, searchsorted.

In: arrays.  Out: arrays.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten import xp
from engine.aten.op import op
from engine.aten.promotion import result_type, wide
from engine.aten.xp import Array
from engine.lang.errors import OperatorError, OperatorIndexError

# ------------------------------------------------------------------ embedding


def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Array:
    if weight.ndim != 2:
        raise OperatorError("'weight' must be 2-D")
    _check_rows(weight, indices, "embedding")
    return weight[indices]


def _check_rows(weight: Array, indices: Array, name: str) -> None:
    if indices.dtype not in (xp.INT64, xp.INT32):
        raise OperatorError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"CPU{xp.ir_name(indices.dtype)}Type instead (while checking arguments for {name})"
        )
    if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        raise OperatorIndexError("index out of range in self")


def one_hot(self: Array, num_classes: int) -> Array:
    if self.dtype != xp.INT64:
        raise OperatorError(
            f"one_hot is only applicable to index tensor of type LongTensor, got {xp.ir_name(self.dtype)}"
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
    return np.asarray(self[..., np.newaxis] == np.arange(num_classes)).astype(np.int64)


def embedding_bag(
    weight: Array, indices: Array, offsets: Array, scale_grad_by_freq: bool, mode: int, sparse: bool,
    per_sample_weights: Array | None, include_last_offset: bool, padding_idx: int | None = -1,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Sums (mode 0), means (1) or maxima (2) of rows, bag by bag; offsets say where bags start."""
    _check_rows(weight, indices, "embedding_bag")
    if offsets.size and offsets.reshape(-1)[0] != 0:
        raise OperatorError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {int(offsets.reshape(-1)[0])}"
        )
    if per_sample_weights is not None and mode != 0:
        raise OperatorError("embedding_bag: per_sample_weights was not None, only mode='sum' is supported")
    starts = offsets[:-1] if include_last_offset else offsets
    count = starts.size
    bag = (np.searchsorted(starts, np.arange(indices.size), side="right") - 1).astype(np.int64)
    used = np.ones(indices.size, np.bool_) if padding_idx in (None, -1) else indices != padding_idx
    rows = weight[indices].astype(wide(weight.dtype))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.astype(rows.dtype)[:, np.newaxis]
    sizes = np.zeros(count, np.int64)
    np.add.at(sizes, bag[used], 1)
    result = _bags(rows[used], bag[used], count, mode)
    if mode == 1:
        result = result / np.maximum(sizes, 1)[:, np.newaxis]
    maxima = np.zeros((count, weight.shape[1]) if mode == 2 else (0,), np.int64)
    return np.asarray(result).astype(weight.dtype), bag, sizes, maxima


def _bags(rows: Array, bag: Array, count: int, mode: int) -> Array:
    if mode != 2:
        sums = np.zeros((count, rows.shape[1]), rows.dtype)
        np.add.at(sums, bag, rows)
        return sums
    largest = np.full((count, rows.shape[1]), -np.inf, rows.dtype)
    np.maximum.at(largest, bag, rows)
    return np.where(np.isneginf(largest), 0, largest)


def _bag_gradient(padding_idx: str) -> dict[str, str]:
    both = (
        "_embedding_bag_backward(grad, weight, indices, result1, result2, result0, mode, per_sample_weights, "
        f"{padding_idx}, scale_grad_by_freq)"
    )
    return {"weight": f"{both}[0]", "per_sample_weights": f"{both}[1]"}


_BAG: Final = "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq"
op("aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "
   "bool sparse=False) -> Tensor", kernel=embedding, variants="function out",
   gradient={"weight": "_embedding_backward(grad, indices, weight.size(0), padding_idx, scale_grad_by_freq)"}
   )  # fmt: skip
op(f"aten::embedding_bag({_BAG}=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
   "bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)", kernel=embedding_bag,
   gradient=_bag_gradient("None"))  # fmt: skip
op(f"aten::embedding_bag.padding_idx({_BAG}, int mode, bool sparse, Tensor? per_sample_weights, "
   "bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)", kernel=embedding_bag,
   gradient=_bag_gradient("padding_idx"))  # fmt: skip
op("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", kernel=one_hot)

# ------------------------------------------------------------------ search


def searchsorted(
    sorted_sequence: Array, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Array | None
) -> Array:
    if side not in (None, "left", "right"):
        raise OperatorError(f"side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise OperatorError("side and right can't be set to opposites, got side of left while right was True")
    ordered = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, -1)
    values = np.asarray(self)
    where_: Any = "right" if right or side == "right" else "left"
    if ordered.ndim != 1 and (ordered.ndim != values.ndim or ordered.shape[:-1] != values.shape[:-1]):
        raise OperatorError(
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
            f"tensor must match, but we got boundaries tensor {list(ordered.shape)} and input value tensor "
            f"{list(values.shape)}"
        )
    return _search(ordered, values, where_).astype(np.int32 if out_int32 else np.int64)


def _search(ordered: Array, values: Array, side: Any) -> Array:
    """How many of the sorted numbers stand before each value, row by row."""
    d = result_type((ordered, values))
    ordered, values = ordered.astype(wide(d)), values.astype(wide(d))
    if ordered.ndim == 1:
        return np.asarray(np.searchsorted(ordered, values, side=side))
    before = np.less_equal if side == "right" else np.less
    return np.asarray(before(ordered[..., np.newaxis, :], values[..., np.newaxis]).sum(axis=-1))


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
