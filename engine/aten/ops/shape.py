"""Other shapes of the same elements.

In: arrays.  Out: arrays that show the same memory where the schema marks the result as an alias.  Operators that
turn a tensor itself into another view of its memory receive the tensor.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.exceptions import AxisError

from engine.aten.dispatch.table import op
from engine.aten.kernels import shapes
from engine.aten.kernels.blocks import contiguous_copy
from engine.aten.kernels.rules import broadcast_message, infer_size, view_strides, wrap_dim, wrap_dims
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

VIEW: Final = "function method"

# ------------------------------------------------------------------ another shape


def view(self: Array, size: Sequence[int]) -> Array:
    shown = _in_order(self, size)
    if shown is not None:
        return shown
    shape = infer_size(size, self.size)
    strides = view_strides(self, shape)
    if strides is None:
        raise OperatorError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return xp.as_strided(self, shape, strides)


def _in_order(self: Array, size: Sequence[int]) -> Array | None:
    """The view of an array without gaps in another shape; None for other arrays, and where sizes do not fit."""
    if not self.flags.c_contiguous or not self.size:
        return self.reshape(infer_size(size, self.size)) if self.flags.c_contiguous else None
    if size and min(size) < -1:
        return None
    try:
        return self.reshape(size)
    except ValueError:
        return None


def view_dtype(self: Array, dtype: int) -> Array:
    d = xp.numpy_dtype(dtype)
    if d.itemsize != self.itemsize and self.ndim == 0:
        raise OperatorError(
            f"self.dim() cannot be 0 to view {xp.ir_name(self.dtype)} as {xp.ir_name(d)} (different element sizes)"
        )
    return self.view(d)


def reshape(self: Array, shape: Sequence[int]) -> Array:
    shown = _in_order(self, shape)
    if shown is not None:
        return shown
    wanted = infer_size(shape, self.size)
    if wanted == self.shape:
        return xp.as_strided(self, self.shape, self.strides)
    strides = view_strides(self, wanted)
    return xp.as_strided(self, wanted, strides) if strides is not None else contiguous_copy(self).reshape(wanted)


def flatten(self: Array, start_dim: int, end_dim: int) -> Array:
    if start_dim == 0 and end_dim == -1 and self.ndim > 1 and self.flags.c_contiguous:
        return self.reshape(-1)
    start, end = wrap_dim(start_dim, self.ndim), wrap_dim(end_dim, self.ndim)
    if start > end:
        raise OperatorError("flatten() has invalid args: start_dim cannot come after end_dim")
    if self.ndim == 0:
        return self.reshape(1)
    if start == end:
        return self
    size = 1
    for part in self.shape[start : end + 1]:
        size *= part
    return reshape(self, (*self.shape[:start], size, *self.shape[end + 1 :]))


def unflatten(self: Array, dim: int, sizes: Sequence[int]) -> Array:
    dim = wrap_dim(dim, self.ndim)
    if not sizes:
        raise OperatorError("unflatten: sizes must be non-empty")
    whole = self.shape[dim]
    try:
        parts = infer_size(sizes, whole)
    except OperatorError:
        raise OperatorError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({whole}) "
            "in the input tensor"
        ) from None
    return view(self, (*self.shape[:dim], *parts, *self.shape[dim + 1 :]))


def view_as(self: Array, other: Array) -> Array:
    return view(self, other.shape)


def reshape_as(self: Array, other: Array) -> Array:
    return reshape(self, other.shape)


# ------------------------------------------------------------------ dimensions of size 1, order


def _restrided(self: Array, dims: Sequence[int]) -> Array:
    """The view with just these dimensions, in this order."""
    return xp.as_strided(self, tuple(self.shape[d] for d in dims), tuple(self.strides[d] for d in dims))


def squeeze(self: Array) -> Array:
    if self.flags.c_contiguous and self.size:
        return self.reshape([n for n in self.shape if n != 1])
    return _restrided(self, [d for d in range(self.ndim) if self.shape[d] != 1])


def squeeze_dim(self: Array, dim: int) -> Array:
    shape = self.shape
    if dim < 0 or dim >= len(shape):
        dim = wrap_dim(dim, len(shape))
    if not shape or shape[dim] != 1:
        return xp.as_strided(self, shape, self.strides)
    strides = self.strides
    return xp.as_strided(self, shape[:dim] + shape[dim + 1 :], strides[:dim] + strides[dim + 1 :])


def squeeze_dims(self: Array, dim: Sequence[int]) -> Array:
    dropped = wrap_dims(dim, self.ndim)
    return _restrided(self, [d for d in range(self.ndim) if d not in dropped or self.shape[d] != 1])


def unsqueeze(self: Array, dim: int) -> Array:
    shape, strides = self.shape, self.strides
    if dim < 0 or dim > len(shape):
        dim = wrap_dim(dim, len(shape) + 1)
    step = shape[dim] * strides[dim] if dim < len(shape) else self.itemsize
    return xp.as_strided(self, (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]))


def transpose(self: Array, dim0: int, dim1: int) -> Array:
    if dim0 != dim1:
        try:
            return self.swapaxes(dim0, dim1)
        except AxisError:
            pass
    a, b = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    return self.swapaxes(a, b) if a != b else self[...]


def t(self: Array) -> Array:
    if self.ndim > 2:
        raise OperatorError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self.T


def permute(self: Array, dims: Sequence[int]) -> Array:
    if len(dims) != self.ndim:
        raise OperatorError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
        )
    try:
        return self.transpose(dims)
    except (AxisError, ValueError):
        for dim in dims:
            wrap_dim(dim, self.ndim)
        raise OperatorError("permute(): duplicate dims are not allowed.") from None


def movedim(self: Array, source: Sequence[int] | int, destination: Sequence[int] | int) -> Array:
    sources = [source] if isinstance(source, int) else source
    targets = [destination] if isinstance(destination, int) else destination
    if len(sources) != len(targets):
        raise OperatorError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain the same "
            f"number of dims as destination ({list(targets)} dims)"
        )
    order: list[int | None] = [None] * max(self.ndim, 1)
    taken = _distinct(sources, self.ndim, "source")
    for place, dim in zip(_distinct(targets, self.ndim, "destination"), taken, strict=True):
        order[place] = dim
    rest = iter([d for d in range(self.ndim) if d not in taken])
    return self.transpose([next(rest) if dim is None else dim for dim in order]) if self.ndim else self[...]


def _distinct(dims: Sequence[int], ndim: int, name: str) -> list[int]:
    wrapped = [wrap_dim(dim, ndim) for dim in dims]
    if len(set(wrapped)) != len(wrapped):
        raise OperatorError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    return wrapped


# ------------------------------------------------------------------ repetition


def expand(self: Array, size: Sequence[int], implicit: bool) -> Array:
    extra = len(size) - self.ndim
    if extra < 0:
        raise OperatorError(
            f"expand({xp.FROM_NUMPY[self.dtype]}{{{list(self.shape)}}}, size={list(size)}): the number of sizes "
            f"provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor ({self.ndim})"
        )
    have, steps = (1,) * extra + self.shape, (0,) * extra + self.strides
    repeated = [step if n == m else 0 if n == 1 else None for n, m, step in zip(have, size, steps, strict=True)]
    if None not in repeated and -1 not in size:
        return xp.as_strided(self, tuple(size), tuple(repeated))  # type: ignore[arg-type]
    shape, strides = [], []
    for i, (wanted, size_here, step) in enumerate(zip(size, have, steps, strict=True)):
        if wanted == -1 and i < extra:
            raise OperatorError(
                f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {i}"
            )
        final = size_here if wanted == -1 else wanted
        if size_here != 1 and size_here != final:
            raise OperatorError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({size_here}) at "
                f"non-singleton dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: {list(self.shape)}"
            )
        shape.append(final)
        strides.append(step if size_here == final else 0)
    return xp.as_strided(self, tuple(shape), tuple(strides))


def expand_as(self: Array, other: Array) -> Array:
    return expand(self, other.shape, False)


def broadcast_to(self: Array, size: Sequence[int]) -> Array:
    return expand(self, size, False)


# ------------------------------------------------------------------ in place


def _becomes(kernel: Callable[..., Array]) -> Callable[..., Tensor]:
    """The in-place form of a view: the tensor itself shows its memory in the new way."""

    def body(self: Tensor, *args: Any) -> Tensor:
        storage = self.memory
        self.array = kernel(self.array, *args)
        self._storage = storage
        return self

    return body


def broadcast_size(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """The sizes to which tensors of these sizes broadcast.  Raises OperatorError."""
    message = broadcast_message(tuple(a), tuple(b))
    if message is None and min([*a, *b, 0]) < 0:
        message = f"sizes are not negative: {list(a)}, {list(b)}"
    if message is not None:
        raise OperatorError(message)
    return list(np.broadcast_shapes(tuple(a), tuple(b)))


op("aten::_infer_size(int[] a, int[] b) -> int[]", python=broadcast_size)
op("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", kernel=view, variants="method",
   gradient={"self": "grad.reshape(self.size())"}, shape=shapes.reshaped("size"), dtype="same")  # fmt: skip
op("aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", kernel=view_dtype, variants="method",
   shape=shapes.reshaped("size"), dtype="same")  # fmt: skip
op("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", kernel=reshape, variants=VIEW,
   gradient={"self": "grad.reshape(self.size())"}, shape=shapes.reshaped("shape"), dtype="same")  # fmt: skip
op("aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", kernel=flatten,
   variants=VIEW, gradient={"self": "grad.reshape(self.size())"}, shape=shapes.flatten, dtype="same")  # fmt: skip
op("aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", kernel=unflatten, variants=VIEW,
   gradient={"self": "grad.reshape(self.size())"})  # fmt: skip
for _suffix, _rest, _kernel in (
    ("", "", squeeze), (".dim", ", int dim", squeeze_dim), (".dims", ", int[] dim", squeeze_dims),
):  # fmt: skip
    op(f"aten::squeeze{_suffix}(Tensor(a) self{_rest}) -> Tensor(a)", kernel=_kernel, variants=VIEW,
       gradient={"self": "grad.reshape(self.size())"}, dtype="same")  # fmt: skip
    op(f"aten::squeeze_{_suffix}(Tensor(a!) self{_rest}) -> Tensor(a!)", python=_becomes(_kernel), variants="method",
       gradient={"self": "grad.reshape(self.size())"}, inplace_view=True)  # fmt: skip
op("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", kernel=unsqueeze, variants=VIEW,
   gradient={"self": "grad.squeeze(dim)"}, shape=shapes.unsqueeze, dtype="same")  # fmt: skip
op("aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", python=_becomes(unsqueeze), variants="method",
   gradient={"self": "grad.squeeze(dim)"}, inplace_view=True)  # fmt: skip
op("aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", kernel=transpose, variants=VIEW,
   gradient={"self": "grad.transpose(dim0, dim1)"}, shape=shapes.transpose, dtype="same")  # fmt: skip
op("aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", python=_becomes(transpose), variants="method",
   gradient={"self": "grad.transpose(dim0, dim1)"}, inplace_view=True)  # fmt: skip
op("aten::t(Tensor(a) self) -> Tensor(a)", kernel=t, variants=VIEW, gradient={"self": "grad.t()"}, shape=shapes.t,
   dtype="same")  # fmt: skip
op("aten::t_(Tensor(a!) self) -> Tensor(a!)", python=_becomes(t), variants="method", gradient={"self": "grad.t()"},
   inplace_view=True)  # fmt: skip
op("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", kernel=permute, variants=VIEW,
   gradient={"self": "_permute_backward(grad, dims)"}, shape=shapes.permute, dtype="same")  # fmt: skip
op("aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", kernel=movedim, variants=VIEW,
   gradient={"self": "grad.movedim(destination, source)"})  # fmt: skip
op("aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", kernel=movedim,
   variants=VIEW, gradient={"self": "grad.movedim(destination, source)"})  # fmt: skip
op("aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", kernel=expand,
   variants="method", gradient={"self": "grad"}, dtype="same")  # fmt: skip
op("aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", kernel=expand_as, variants="method",
   gradient={"self": "grad"}, dtype="same")  # fmt: skip
op("aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", kernel=broadcast_to, variants=VIEW,
   gradient={"self": "grad"})  # fmt: skip
op(
    "aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    hands_on=True,
    composite="""
    size = torch.jit.annotate(List[int], [])
    for each in tensors:
        size = torch._infer_size(size, each.size())
    return [each.expand(size) for each in tensors]
""",
)
op("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)", kernel=view_as, variants="method",
   gradient={"self": "grad.reshape(self.size())"})  # fmt: skip
op("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", kernel=reshape_as, variants="method",
   gradient={"self": "grad.reshape(self.size())"})  # fmt: skip
