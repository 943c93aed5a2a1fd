"""Joining, repeating and reordering of elements, into new memory.

In: arrays.  Out: new arrays.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import rules, shapes
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.rules import existing_dim, wrap_dim, wrap_dims
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorTypeError, OperatorValueError

VIEW: Final = "function method"

# ------------------------------------------------------------------ repetition


def repeat(self: Array, repeats: Sequence[int]) -> Array:
    if len(repeats) < self.ndim:
        raise OperatorError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    shape = tuple(r * s for r, s in zip(repeats, (1,) * (len(repeats) - self.ndim) + self.shape, strict=True))
    for length in shape:
        if length < 0:
            raise OperatorError(f"Trying to create tensor with negative dimension {length}: {list(shape)}")
    check_memory(shape, self.dtype)
    if 0 in shape:
        return np.empty(shape, self.dtype)
    return np.tile(self, tuple(repeats)).reshape(shape)


def tile(self: Array, dims: Sequence[int]) -> Array:
    return repeat(self, (1,) * (self.ndim - len(dims)) + tuple(dims))


def repeat_interleave(repeats: Array, output_size: int | None) -> Array:
    _check_repeats(repeats)
    check_memory((sum(repeats.tolist()),), repeats.dtype)
    return np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)


def _check_repeats(repeats: Array) -> None:
    if repeats.dtype not in (xp.INT64, xp.INT32):
        raise rules.no_kernel("repeat_interleave_cpu", repeats.dtype)
    if repeats.ndim != 1:
        raise OperatorError("repeat_interleave only accept 1D vector as repeat")
    if repeats.size and repeats.min() < 0:
        raise OperatorError("repeats can not be negative")


def repeat_interleave_self(self: Array, repeats: Array | int, dim: int | None, output_size: int | None) -> Array:
    if isinstance(repeats, np.ndarray):
        if repeats.ndim > 1:
            raise OperatorError("repeats must be 0-dim or 1-dim tensor")
        _check_repeats(repeats.reshape(-1))
        if repeats.size == 1:
            repeats = int(repeats.reshape(()))
    elif repeats < 0:
        raise OperatorError("Repeats must be non-negative")
    source = self.reshape(-1) if dim is None else self
    axis = wrap_dim(dim or 0, source.ndim)
    if isinstance(repeats, np.ndarray) and repeats.size != source.shape[axis]:
        raise OperatorError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.size} and "
            f"input.size({axis}) = {source.shape[axis]}"
        )
    length = repeats * (source.shape[axis] if source.ndim else 1) if isinstance(repeats, int) else sum(repeats.tolist())
    if output_size is not None and output_size != length:
        raise OperatorError(f"repeat_interleave: Invalid output_size, expected {length} but got {output_size}")
    check_memory((*source.shape[:axis], length, *source.shape[axis + 1 :]), source.dtype)
    return np.repeat(np.atleast_1d(source), repeats, axis=axis)


# ------------------------------------------------------------------ joining, reordering


def _are_alike(arrays: list[Array]) -> bool:
    """True if all have the same shape and the identical dtype object."""
    shape, d = arrays[0].shape, arrays[0].dtype
    for each in arrays:  # noqa: SIM110  (quicker than `all`)
        if each.dtype is not d or each.shape != shape:
            return False
    return True


def _have_one_dtype(arrays: list[Array]) -> bool:
    d = arrays[0].dtype
    for each in arrays:  # noqa: SIM110  (quicker than `all`)
        if each.dtype is not d:
            return False
    return True


def cat(tensors: list[Array], dim: int) -> Array:
    if not tensors:
        raise OperatorValueError("torch.cat(): expected a non-empty list of Tensors")
    if _have_one_dtype(tensors):
        try:
            return np.concatenate(tensors, dim)
        except ValueError:  # of shapes that numpy does not join
            pass
    for i, tensor in enumerate(tensors):
        if tensor.ndim == 0:
            raise OperatorError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    d = rules.common_dtype(tensors)
    parts = [tensor for tensor in tensors if tensor.shape != (0,)]
    if not parts:
        return np.empty(0, d)
    first = parts[0]
    dim = wrap_dim(dim, first.ndim)
    for i, part in enumerate(parts[1:], 1):
        _check_joinable(first, part, dim, i)
    return np.concatenate([part.astype(d, copy=False) for part in parts], axis=dim)


def _check_joinable(first: Array, part: Array, dim: int, place: int) -> None:
    if part.ndim != first.ndim:
        raise OperatorError(f"Tensors must have same number of dimensions: got {first.ndim} and {part.ndim}")
    for axis, (expected, size) in enumerate(zip(first.shape, part.shape, strict=True)):
        if axis != dim and expected != size:
            raise OperatorError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {expected} but got size {size} "
                f"for tensor number {place} in the list."
            )


def stack(tensors: list[Array], dim: int) -> Array:
    if not tensors:
        raise OperatorError("stack expects a non-empty TensorList")
    first = tensors[0]
    if dim:
        dim = wrap_dim(dim, first.ndim + 1)
    if _are_alike(tensors):
        return _stacked(tensors, dim)
    for i, tensor in enumerate(tensors):
        if tensor.shape != tensors[0].shape:
            raise OperatorError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(tensor.shape)} at entry {i}"
            )
    d = rules.common_dtype(tensors)
    return _stacked([tensor.astype(d, copy=False) for tensor in tensors], dim)


def _stacked(tensors: list[Array], dim: int) -> Array:
    if dim == 0:
        return np.array(tensors)
    place = (slice(None),) * dim + (None,)
    return np.concatenate([tensor[place] for tensor in tensors], dim)


def flip(self: Array, dims: Sequence[int] | int) -> Array:
    turned = wrap_dims((dims,) if isinstance(dims, int) else dims, self.ndim) if self.ndim else ()
    return self[tuple([_BACKWARDS if dim in turned else _ALL for dim in range(self.ndim)])].copy()


_ALL: Final = slice(None)
_BACKWARDS: Final = slice(None, None, -1)


def roll(self: Array, shifts: Sequence[int], dims: Sequence[int]) -> Array:
    if not shifts:
        raise OperatorError("`shifts` required")
    if not dims and len(shifts) == 1:
        return np.roll(self, shifts[0])
    if len(dims) != len(shifts):
        raise OperatorError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if self.size == 0:
        return self.copy()
    rolled = self
    for shift, dim in zip(shifts, [existing_dim(dim, self.ndim) for dim in dims], strict=True):
        before, cut = _WHOLE * dim, -shift % self.shape[dim]
        rolled = np.concatenate((rolled[(*before, slice(cut, None))], rolled[(*before, slice(cut))]), dim)
    return rolled


_WHOLE: Final = (slice(None),)


_SMALL: Final = 4096


@lru_cache(256)
def _kept(name: str, rows: int, columns: int, diagonal: int) -> Array:
    """Mask of the elements of a matrix that belong to a triangle."""
    mask: Array = np.tri(rows, columns, diagonal if name == "tril" else diagonal - 1, bool)
    return mask if name == "tril" else ~mask


def triangle(keep: Callable[[Array, int], Array], name: str) -> Callable[[Array, int], Array]:
    def kernel(self: Array, diagonal: int) -> Array:
        if self.ndim < 2:
            raise OperatorError(f"{name}: input tensor must have at least 2 dimensions")
        if self.shape[-2] * self.shape[-1] > _SMALL:
            return keep(self, diagonal).astype(self.dtype, copy=False)
        result = np.zeros(self.shape, self.dtype)
        np.copyto(result, self, where=_kept(name, *self.shape[-2:], diagonal))
        return result

    return kernel


def meshgrid(tensors: list[Tensor], indexing: str = "ij") -> list[Tensor]:
    if not tensors:
        raise OperatorError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise OperatorError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for tensor in tensors:
        if tensor.ndim > 1:
            raise OperatorError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tensor.ndim}D")
        if tensor.array.dtype != tensors[0].array.dtype:
            raise OperatorError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) >= 2
    ordered = [tensors[1], tensors[0], *tensors[2:]] if swap else tensors
    sizes = [tensor.numel() for tensor in ordered]
    grids = [
        tensor.reshape([1] * i + [-1] + [1] * (len(sizes) - i - 1)).expand(sizes) for i, tensor in enumerate(ordered)
    ]
    return [grids[1], grids[0], *grids[2:]] if swap else grids


def pixel_shuffle(self: Array, upscale_factor: int) -> Array:
    r = upscale_factor
    _check_pixels("pixel_shuffle", self, r)
    *batch, channels, height, width = self.shape
    if channels % (r * r):
        raise OperatorError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    split_ = self.reshape(*batch, channels // (r * r), r, r, height, width)
    n = len(batch)
    moved = split_.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return moved.copy(order="C").reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(self: Array, downscale_factor: int) -> Array:
    r = downscale_factor
    _check_pixels("pixel_unshuffle", self, r)
    *batch, channels, height, width = self.shape
    for name, size, place in (("height", height, -2), ("width", width, -1)):
        if size % r:
            raise OperatorError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({place})={size} "
                f"is not divisible by {r}"
            )
    split_ = self.reshape(*batch, channels, height // r, r, width // r, r)
    n = len(batch)
    moved = split_.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return moved.copy(order="C").reshape(*batch, channels * r * r, height // r, width // r)


def _check_pixels(name: str, self: Array, factor: int) -> None:
    if self.ndim < 3:
        raise OperatorError(
            f"{name} expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    if factor <= 0:
        raise OperatorError(f"{name} expects a positive factor, but got {factor}")


op("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", kernel=cat, variants="function out", exact=True,
   gradient={"tensors": "_cat_backward(grad, tensors, dim)"}, shape=shapes.cat, dtype="same",
   layout="channels last", autocast="widest")  # fmt: skip
op("aten::stack(Tensor[] tensors, int dim=0) -> Tensor", kernel=stack, variants="function out", exact=True,
   gradient={"tensors": "grad.unbind(dim)"}, shape=shapes.stack, dtype="same", autocast="widest")  # fmt: skip
op("aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", kernel=repeat, variants="method out",
   gradient={"self": "_repeat_backward(grad, self.size(), repeats)"})  # fmt: skip
op("aten::tile(Tensor self, SymInt[] dims) -> Tensor", kernel=tile, variants=VIEW,
   gradient={"self": "_repeat_backward(grad, self.size(), dims)"})  # fmt: skip
op("aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", kernel=repeat_interleave,
   variants="function out", data_dependent=True)  # fmt: skip
op("aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) "
   "-> Tensor", kernel=repeat_interleave_self, variants=VIEW,
   gradient={"self": "_repeat_interleave_backward(grad, self.size(), repeats, dim)"}, data_dependent=True)  # fmt: skip
op("aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) "
   "-> Tensor", kernel=repeat_interleave_self, variants=VIEW,
   gradient={"self": "_repeat_interleave_backward(grad, self.size(), tensor(repeats), dim)"},
   data_dependent=True)  # fmt: skip
op("aten::flip(Tensor self, int[] dims) -> Tensor", kernel=flip, variants="function method out",
   gradient={"self": "grad.flip(dims)"}, shape="self", dtype="same", layout="operands")  # fmt: skip
op("aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", kernel=roll,
   variants="function method out", gradient={"self": "grad.roll([-s for s in shifts], dims)"},
   shape="self", dtype="same", layout="contiguous")  # fmt: skip
for _name in ("tril", "triu"):
    op(f"aten::{_name}(Tensor self, SymInt diagonal=0) -> Tensor", kernel=triangle(getattr(np, _name), _name),
       variants="function method inplace out", gradient={"self": f"grad.{_name}(diagonal)"}, shape="self",
       dtype="same")  # fmt: skip
op("aten::meshgrid(Tensor[] tensors) -> Tensor[]", python=meshgrid, hands_on=True)
op("aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", python=meshgrid, hands_on=True)
op("aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", kernel=pixel_shuffle, variants="function out",
   gradient={"self": "pixel_unshuffle(grad, upscale_factor)"})  # fmt: skip
op("aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", kernel=pixel_unshuffle,
   variants="function out", gradient={"self": "pixel_shuffle(grad, downscale_factor)"})  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe(
    "flip.out pixel_shuffle.out pixel_unshuffle.out repeat.out repeat_interleave.Tensor_out roll.out tril.out triu.out",
    out_check=out_checks.check_same,
)
describe("cat.out stack.out", out_check=out_checks.cast_in_words("torch.cat(): input types", OperatorTypeError))
describe("tril_ triu_", writes_again=True)
describe("cat", writes_apart=True)
