"""Less common rearrangements: stack, split, flip, roll, shuffles, copies of views.

In: tensors.  Out: views where the schema marks them, else new tensors.  Most are made of other operators, from which
their gradients come.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.rules import infer_size, wrap_dim
from engine.aten.ops.parts import chunk, narrow, select, slice_, split
from engine.aten.ops.shape import squeeze, squeeze_dim, squeeze_dims, transpose, view_dtype
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorTypeError

OUT: Final = "function out"
METHOD: Final = "function method"

# ------------------------------------------------------------------ minimum number of dimensions


def at_least(count: int) -> Callable[[Tensor], Tensor]:
    """Tensors of fewer dimensions get dimensions of size 1: (n) becomes (1, n), then (1, n, 1)."""

    def atleast(self: Tensor) -> Tensor:
        if self.ndim >= count:
            return self
        shape = list(self.shape) or [1]
        if count > 1 and len(shape) == 1:
            shape = [1, *shape]
        if count > 2 and len(shape) == 2:
            shape = [*shape, 1]
        reshaped: Tensor = self.reshape(shape)
        return reshaped

    return atleast


def each(function: Callable[[Tensor], Tensor]) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    return lambda tensors: [function(t) for t in tensors]


def _check_some(name: str, tensors: Sequence[Tensor]) -> None:
    if not tensors:
        raise OperatorError(f"{name} expects a non-empty TensorList")


def stacked(name: str, count: int, dim: int) -> Callable[[Sequence[Tensor]], Tensor]:
    def body(tensors: Sequence[Tensor]) -> Tensor:
        _check_some(name, tensors)
        joined: Tensor = run("cat", [at_least(count)(t) for t in tensors], dim)
        return joined

    return body


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    _check_some("hstack", tensors)
    joined: Tensor = run("cat", [at_least(1)(t) for t in tensors], 0 if tensors[0].ndim < 2 else 1)
    return joined


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    _check_some("column_stack", tensors)
    joined: Tensor = run("cat", [t.reshape([t.array.size, 1]) if t.ndim < 2 else t for t in tensors], 1)
    return joined


for _n in (1, 2, 3):
    op(f"aten::atleast_{_n}d(Tensor self) -> Tensor", python=at_least(_n), hands_on=True)
    op(f"aten::atleast_{_n}d.Sequence(Tensor[] tensors) -> Tensor[]", python=each(at_least(_n)), hands_on=True)
op("aten::hstack(Tensor[] tensors) -> Tensor", python=hstack, variants=OUT)
op("aten::vstack(Tensor[] tensors) -> Tensor", python=stacked("vstack", 2, 0), variants=OUT)
op("aten::dstack(Tensor[] tensors) -> Tensor", python=stacked("dstack", 3, 2), variants=OUT)
op("aten::column_stack(Tensor[] tensors) -> Tensor", python=column_stack, variants=OUT)

# ------------------------------------------------------------------ splits


def tensor_split(self: Tensor, sections: int, dim: int) -> list[Tensor]:
    """`sections` parts whose sizes differ by at most one."""
    axis = _split_axis(self, dim)
    if sections <= 0:
        raise OperatorError(f"number of sections must be larger than 0, got {sections}")
    check_memory((sections,), xp.COMPLEX128)
    size, rest = divmod(self.shape[axis], sections)
    ends = list(itertools.accumulate(size + (i < rest) for i in range(sections)))
    return _between(self, [0, *ends], axis)


def _split_axis(self: Tensor, dim: int) -> int:
    if self.ndim == 0:
        raise OperatorError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    return wrap_dim(dim, self.ndim)


def _between(self: Tensor, bounds: Sequence[int | None], axis: int) -> list[Tensor]:
    return [run("slice.Tensor", self, axis, a, b, 1) for a, b in itertools.pairwise(bounds)]


def tensor_split_at(self: Tensor, indices: Sequence[int], dim: int) -> list[Tensor]:
    axis = _split_axis(self, dim)
    starts: list[int | None] = [0, *indices]
    return [run("slice.Tensor", self, axis, a, b, 1) for a, b in zip(starts, [*indices, None], strict=True)]


def tensor_split_by(self: Tensor, tensor_indices_or_sections: Tensor, dim: int) -> list[Tensor]:
    given = tensor_indices_or_sections.array
    if given.dtype != xp.INT64:
        raise OperatorError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {xp.ir_name(given.dtype)}"
        )
    if given.ndim > 1:
        raise OperatorError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
            f"but got a tensor with {given.ndim} dims"
        )
    return tensor_split_at(self, given.tolist(), dim) if given.ndim else tensor_split(self, int(given), dim)


def split_along(name: str, axis: int, needed: int, at: bool) -> Callable[[Tensor, Any], list[Tensor]]:
    """hsplit, vsplit and dsplit: `tensor_split` along a fixed dimension, into equal parts or at places."""

    def body(self: Tensor, given: Any) -> list[Tensor]:
        if self.ndim < needed:
            raise OperatorError(
                f"torch.{name} requires a tensor with at least {needed} dimension, "
                f"but got a tensor with {self.ndim} dimensions!"
            )
        dim = 0 if name == "hsplit" and self.ndim == 1 else axis
        if at:
            return tensor_split_at(self, given, dim)
        if given == 0 or self.shape[dim] % given:
            raise OperatorError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                f"{self.shape[dim]} is not divisible by the split_size {given}!"
            )
        return tensor_split(self, given, dim)

    return body


_VIEWS: Final = "Tensor(a -> *) self"
op(f"aten::tensor_split.sections({_VIEWS}, SymInt sections, int dim=0) -> Tensor(a)[]", python=tensor_split,
   variants=METHOD, data_dependent=True)  # fmt: skip
op(f"aten::tensor_split.indices({_VIEWS}, SymInt[] indices, int dim=0) -> Tensor(a)[]", python=tensor_split_at,
   variants=METHOD, data_dependent=True)  # fmt: skip
op(f"aten::tensor_split.tensor_indices_or_sections({_VIEWS}, Tensor tensor_indices_or_sections, int dim=0) "
   "-> Tensor(a)[]", python=tensor_split_by, variants=METHOD, data_dependent=True)  # fmt: skip
for _name, _axis, _needed in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    op(f"aten::{_name}.int({_VIEWS}, int sections) -> Tensor(a)[]", variants=METHOD,
       python=split_along(_name, _axis, _needed, at=False))  # fmt: skip
    op(f"aten::{_name}.array({_VIEWS}, int[] indices) -> Tensor(a)[]", variants=METHOD,
       python=split_along(_name, _axis, _needed, at=True))  # fmt: skip


def unsafe_split_out(self: Tensor, split_size: int, dim: int, out: list[Tensor]) -> None:
    for target, part in zip(out, run("split.Tensor", self, split_size, dim), strict=True):
        target.copy_(part)


# Parts in the same memory that autograd does not know to be views: writing to them is the caller's risk.
op("aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", kernel=chunk, variants=METHOD,
   gradient={"self": "cat(grads, dim)"}, hands_on=True)  # fmt: skip
op("aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", kernel=split,
   variants=METHOD, gradient={"self": "cat(grads, dim)"}, hands_on=True)  # fmt: skip
op("aten::unsafe_split.Tensor_out(Tensor self, SymInt split_size, int dim=0, *, Tensor(a!)[] out) -> ()",
   python=unsafe_split_out)  # fmt: skip

# ------------------------------------------------------------------ views of the whole


def turned(x: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    if x.ndim == 0:
        return x
    if x.ndim < 2:
        raise OperatorError(f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor.")
    result: Tensor = x.transpose(-2, -1)
    return result


def numpy_T(self: Tensor) -> Tensor:
    result: Tensor = self.permute(list(range(self.ndim))[::-1])
    return result


def matrix_H(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        raise OperatorError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
            + " For batches of matrices, consider using tensor.mH" * (self.ndim > 2)
        )
    result: Tensor = self.conj() if self.ndim == 0 else self.transpose(0, 1).conj()
    return result


def mH(self: Tensor) -> Tensor:
    result: Tensor = turned(self).conj() if self.ndim else self.conj()
    return result


for _name, _body in (("numpy_T", numpy_T), ("mT", turned), ("matrix_H", matrix_H), ("mH", mH)):
    op(f"aten::{_name}(Tensor(a) self) -> Tensor(a)", python=_body)
    op(f"aten::{_name}.a(Tensor(a) self) -> Tensor(a)", python=_body)


def ravel(self: Tensor) -> Tensor:
    result: Tensor = self.contiguous().view([-1])
    return result


op("aten::ravel(Tensor(a) self) -> Tensor(a)", python=ravel, variants=METHOD)


def exchange(self: Tensor, dim0: int, dim1: int) -> Tensor:
    result: Tensor = self.transpose_(dim0, dim1)
    return result


op("aten::swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", python=exchange, variants="method",
   inplace_view=True)  # fmt: skip
op("aten::swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", python=exchange, variants="method",
   inplace_view=True)  # fmt: skip


def copying(kernel: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *args: np.array(kernel(*args), order="C")


def reshaped_copy(self: Array, size: Sequence[int]) -> Array:
    return np.array(self, order="C").reshape(infer_size(size, self.size))


op("aten::view_copy(Tensor self, SymInt[] size) -> Tensor", kernel=reshaped_copy, variants=OUT,
   gradient={"self": "grad.reshape(self.size())"})  # fmt: skip
op("aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", kernel=copying(view_dtype), variants=OUT)
for _suffix, _rest, _kernel in (
    ("", "", squeeze), (".dim", ", int dim", squeeze_dim), (".dims", ", int[] dim", squeeze_dims),
):  # fmt: skip
    op(f"aten::squeeze_copy{_suffix}(Tensor self{_rest}) -> Tensor", kernel=copying(_kernel), variants=OUT,
       gradient={"self": "grad.reshape(self.size())"})  # fmt: skip
op("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", kernel=copying(transpose), variants=OUT,
   gradient={"self": "grad.transpose(dim0, dim1)"})  # fmt: skip
op("aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", kernel=copying(narrow),
   variants="function method out",
   gradient={"self": "slice_backward(grad, self.size(), dim, start, start + length, 1)"})  # fmt: skip

# ------------------------------------------------------------------ turned, shuffled, combined


def rot90(self: Tensor, k: int, dims: Sequence[int]) -> Tensor:
    """Quarter turns in the plane of two dimensions."""
    if len(dims) != 2:
        raise OperatorError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise OperatorError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    first, second = (wrap_dim(d, self.ndim) for d in dims)
    if first == second:
        raise OperatorError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns: dict[int, Callable[[], Tensor]] = {
        0: self.clone,
        1: lambda: self.flip([second]).transpose_(first, second),
        2: lambda: self.flip([first, second]),
        3: lambda: self.flip([first]).transpose_(first, second),
    }
    return turns[k % 4]()


def fliplr(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise OperatorError("Input must be >= 2-d.")
    result: Tensor = self.flip([1])
    return result


def flipud(self: Tensor) -> Tensor:
    if self.ndim < 1:
        raise OperatorError("Input must be >= 1-d.")
    result: Tensor = self.flip([0])
    return result


def diagflat(self: Tensor, offset: int) -> Tensor:
    result: Tensor = run("diag_embed", self.reshape([-1]), offset, 0, 1)
    return result


def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    """Channels of the groups in turn: (g, c) becomes (c, g)."""
    if self.ndim < 3:
        raise OperatorError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    batch, channels, *rest = self.shape
    if groups <= 0:
        raise OperatorError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise OperatorError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    grouped = self.reshape([batch, groups, channels // groups, *rest])
    shuffled: Tensor = grouped.transpose(1, 2).clone(memory_format=0).view(list(self.shape))
    return shuffled


def combinations(self: Tensor, r: int, with_replacement: bool) -> Tensor:
    """Every choice of r elements, in order, as rows."""
    if self.ndim != 1:
        raise OperatorError("Expect a 1D vector, but got shape [" + ", ".join(map(str, self.shape)) + "]")
    if r < 0:
        raise OperatorError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return Tensor(np.empty(0, self.array.dtype))
    count = (
        (math.comb(self.shape[0] + r - 1, r) if self.shape[0] else 0)
        if with_replacement
        else math.comb(self.shape[0], r)
    )
    check_memory((count, r), xp.INT64)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(self.shape[0]), r)), np.int64).reshape(-1, r)
    result: Tensor = run("index_select", self, 0, Tensor(rows.reshape(-1))).reshape(list(rows.shape))
    return result


def cartesian_prod(tensors: Sequence[Tensor]) -> Tensor:
    for t in tensors:
        if t.ndim != 1:
            raise OperatorError(f"Expect a 1D vector, but got shape [{', '.join(map(str, t.shape))}]")
    if len(tensors) == 1:
        return tensors[0]
    check_memory((*(t.shape[0] for t in tensors), len(tensors)), tensors[0].array.dtype)
    grids = run("meshgrid.indexing", list(tensors), "ij")
    result: Tensor = run("stack", [g.flatten() for g in grids], 1)
    return result


def sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    """Summed over the dimensions that broadcasting `size` to the tensor's shape repeats."""
    lead = self.ndim - len(size)
    fits = lead >= 0 and all(n in (1, m) for n, m in zip(size, self.shape[max(lead, 0) :], strict=True))
    if not fits:
        raise OperatorError(f"size {{{list(size)}}} is not expandable to size {{{list(self.shape)}}}.")
    if self.ndim == 0:
        whole: Tensor = run("sum", self, None)
        return whole
    dims = [*range(lead), *(lead + i for i, n in enumerate(size) if n == 1 and self.shape[lead + i] != 1)]
    if not dims:
        return self
    result: Tensor = run("sum.dim_IntList", self, dims, True, None).reshape(list(size))
    return result


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool, padding_value: float, padding_side: str) -> Tensor:
    """Sequences of different lengths in one tensor."""
    if not sequences:
        raise OperatorError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise OperatorError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if any(s.ndim == 0 for s in sequences):
        raise OperatorError("pad_sequence: every sequence needs a dimension to be padded along")
    first = sequences[0]
    longest = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        missing = longest - s.shape[0]
        spread = [missing, 0] if padding_side == "left" else [0, missing]
        along = run("constant_pad_nd", s, [0, 0] * (s.ndim - 1) + spread, padding_value)
        padded.append(along.to(first.dtype).expand([longest, *first.shape[1:]]))
    result: Tensor = run("stack", padded, 0 if batch_first else 1)
    return result


op("aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", python=rot90, variants="function method out")
op("aten::fliplr(Tensor self) -> Tensor", python=fliplr, variants=METHOD)
op("aten::flipud(Tensor self) -> Tensor", python=flipud, variants=METHOD)
op("aten::diagflat(Tensor self, int offset=0) -> Tensor", python=diagflat, variants=METHOD)
op("aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor", python=channel_shuffle, variants=OUT)
op("aten::native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", python=channel_shuffle)
op("aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", python=combinations,
   data_dependent=True)  # fmt: skip
op("aten::cartesian_prod(Tensor[] tensors) -> Tensor", python=cartesian_prod, hands_on=True)
op("aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor", python=sum_to_size, variants="method", hands_on=True)
op('aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., '
   'str padding_side="right") -> Tensor', python=pad_sequence)  # fmt: skip

# ------------------------------------------------------------------ gradients of parts


def _zeros(sizes: Sequence[int], like: Array) -> Array:
    return np.zeros(tuple(sizes), like.dtype)


def slice_backward(grad_output: Array, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int) -> Array:
    result = _zeros(input_sizes, grad_output)
    slice_(result, dim, start, end, step)[...] = grad_output
    return result


def select_backward(grad_output: Array, input_sizes: Sequence[int], dim: int, index: int) -> Array:
    result = _zeros(input_sizes, grad_output)
    select(result, dim, index)[...] = grad_output
    return result


def masked_select_backward(grad: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    zeros = run("zeros_like", input.expand(list(np.broadcast_shapes(input.shape, mask.shape))), *[None] * 5)
    result: Tensor = run("masked_scatter", zeros, mask, grad)
    return result


op("aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) "
   "-> Tensor", kernel=slice_backward, variants=OUT,
   gradient={"grad_output": "slice(grad, dim, start, end, step)"})  # fmt: skip
op("aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
   kernel=select_backward, variants=OUT, gradient={"grad_output": "grad.select(dim, index)"})  # fmt: skip
op("aten::masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor", python=masked_select_backward)

# ------------------------------------------------------------------ shapes as tensors, as traces for export have them


def shape_as_tensor(self: Tensor) -> Tensor:
    return Tensor(np.array(self.shape, np.int64))


def reshape_from_tensor(self: Tensor, shape: Tensor) -> Tensor:
    if shape.ndim != 1 or shape.array.dtype not in xp.INTEGERS:
        raise OperatorError(f"_reshape_from_tensor: the shape must be whole numbers in a row, got {list(shape.shape)}")
    result: Tensor = self.reshape(shape.array.tolist())
    return result


op("aten::_shape_as_tensor(Tensor self) -> Tensor", python=shape_as_tensor)
op("aten::_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor", python=reshape_from_tensor)


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe(
    "channel_shuffle.out rot90.out select_backward.out slice_backward.out squeeze_copy.dim_out "
    "squeeze_copy.dims_out squeeze_copy.out transpose_copy.int_out view_copy.dtype_out view_copy.out",
    out_check=out_checks.check_same,
)
describe(
    "column_stack.out dstack.out hstack.out vstack.out",
    out_check=out_checks.cast_in_words("torch.cat(): input types", OperatorTypeError),
)
