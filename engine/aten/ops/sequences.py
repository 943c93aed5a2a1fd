"""Numbers in sequence, index pairs of triangles, empty tensors of given strides, and tensors given other memory.

In: numbers, sizes.  Out: tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.table import op
from engine.aten.dispatch.wrapping import store_out
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.rules import contiguous_strides, no_kernel
from engine.aten.ops.creation import OPTIONS, check_device, check_ends, check_size, creator, full
from engine.aten.ops.parts import as_strided_view
from engine.aten.values import xp
from engine.aten.values.promotion import converted, default_complex, default_dtype, operand, result_type, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array, as_strided
from engine.lang.errors import OperatorError

# ------------------------------------------------------------------ sequences


def logspace(start: Any, end: Any, steps: int, base: float, d: xp.NumpyDtype) -> Array:
    """Powers of the base with evenly spaced exponents."""
    check_ends("logspace", start, end, steps, d)
    used = xp.COMPLEX128 if d in xp.COMPLEX else xp.FLOAT64
    first, last = (v.item() if isinstance(v, np.ndarray) else v for v in (start, end))
    if steps == 1:
        return full((1,), np.power(base, first.real if first.imag == 0 else first).item(), d)
    if d == xp.BOOL:
        raise no_kernel("logspace_cpu", d)
    counted = xp.INT64 if d in xp.INTEGERS else d
    start, end = (np.asarray(converted(v, d)).astype(wide(d)).astype(counted) for v in (first, last))
    length = np.asarray(operand(end, counted) - operand(start, counted)).astype(counted).astype(used)
    step, places = length / max(steps - 1, 1), np.arange(steps)
    ahead, behind = start.astype(used) + step * places, end.astype(used) - step * (steps - 1 - places)
    exponents = np.where(places < steps // 2, ahead, behind)
    return xp.cast(np.power(np.asarray(base, used), exponents), d)


def _floating(start: Any, end: Any, *_: Any) -> xp.NumpyDtype:
    return default_complex() if result_type((start, end)) in xp.COMPLEX else default_dtype()


def inclusive_range(start: Any, end: Any, step: Any, d: xp.NumpyDtype) -> Array:
    """From start to end, both included."""
    used = xp.INT64 if d in xp.INTEGERS else xp.FLOAT64
    start, end, step = (int(v) if d in xp.INTEGERS else v for v in (converted(v, used) for v in (start, end, step)))
    if step == 0 or step != step:
        raise OperatorError("step must be nonzero")
    if not all(math.isfinite(v) for v in (start, end)):
        raise OperatorError(f"unsupported range: {start} -> {end}")
    if d not in xp.REAL:
        raise no_kernel("range_cpu", d)
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise OperatorError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    check_memory((count,), d)
    return xp.cast(start + np.arange(count) * step, d)


for _overload, _first, _second in (
    ("Tensor_Tensor", "Tensor", "Tensor"), ("Tensor_Scalar", "Tensor", "Scalar"),
    ("Scalar_Tensor", "Scalar", "Tensor"), ("", "Scalar", "Scalar"),
):  # fmt: skip
    creator(f"logspace{'.' if _overload else ''}{_overload}",
            f"{_first} start, {_second} end, int steps, float base=10.", logspace, _floating, in_order=True,
            out=f"{_overload}_out" if _overload else "out")  # fmt: skip
creator("range.step", "Scalar start, Scalar end, Scalar step=1", inclusive_range, _floating, out="out", in_order=True)
creator("range", "Scalar start, Scalar end", lambda a, b, d: inclusive_range(a, b, 1, d), _floating, out="out_",
        in_order=True)  # fmt: skip

# ------------------------------------------------------------------ triangles


def triangle(name: str, places: Callable[..., tuple[Array, ...]]) -> Callable[..., Array]:
    """Rows and columns of a triangle's elements."""

    def kernel(
        row: int, col: int, offset: int, dtype: int | None = None, layout: Any = None, device: Any = None,
        pin_memory: Any = None,
    ) -> Array:  # fmt: skip
        check_device(device)
        if row < 0 or col < 0:
            raise OperatorError(f"{'row' if row < 0 else 'col'} must be non-negative, got{min(row, col)}")
        d = xp.INT64 if dtype is None else xp.numpy_dtype(dtype)
        check_memory((row, col), xp.INT64)
        if d not in (xp.INT64, xp.INT32):
            raise no_kernel(name, d)
        return np.stack(places(row, offset, col)).astype(d)

    return kernel


for _name, _places in (("tril_indices", np.tril_indices), ("triu_indices", np.triu_indices)):
    op(f"aten::{_name}(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor", kernel=triangle(_name, _places))  # fmt: skip
    op(f"aten::{_name}.out(int row, int col, int offset=0, *, Tensor(a!) out) -> Tensor(a!)",
       kernel=triangle(_name, _places))  # fmt: skip

# ------------------------------------------------------------------ empty


def strided(size: Sequence[int], stride: Sequence[int], d: xp.NumpyDtype) -> Array:
    """A tensor with the given strides; its content is unspecified (zeros)."""
    if len(size) != len(stride):
        raise OperatorError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    shape = check_size(size)
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if span < 0 or any(s < 0 for s in stride) or span * d.itemsize >= 2**63:
        raise OperatorError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    check_memory((span,), d)
    return as_strided(np.zeros(max(span, 1), d), shape, tuple(s * d.itemsize for s in stride))


def new_empty_strided(
    self: Array, size: Sequence[int], stride: Sequence[int], dtype: int | None, layout: Any, device: Any, pin: Any
) -> Array:
    check_device(device)
    return strided(size, stride, self.dtype if dtype is None else xp.numpy_dtype(dtype))


def new_empty_strided_out(self: Tensor, size: Sequence[int], stride: Sequence[int], out: Tensor) -> Tensor:
    store_out(out, strided(size, stride, out.array.dtype))
    return out


creator("empty_strided", "SymInt[] size, SymInt[] stride", strided, lambda *_: default_dtype(), data_dependent=True)
op(f"aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor",
   kernel=new_empty_strided, variants="method", data_dependent=True)  # fmt: skip
op("aten::new_empty_strided.out(Tensor self, SymInt[] size, SymInt[] stride, *, Tensor(a!) out) -> Tensor(a!)",
   python=new_empty_strided_out)  # fmt: skip

# ------------------------------------------------------------------ other memory


def resize_(self: Tensor, size: Sequence[int], memory_format: int | None) -> Tensor:
    """The same memory in another size; more memory if it does not suffice, with the old numbers first."""
    shape = check_size(size, self.array.dtype)
    if shape == self.array.shape:
        return self
    count = math.prod(shape)
    memory = self.memory.flat()
    start = self.memory.offset_of(self.array)
    if start + count <= memory.size:
        itemsize = self.array.itemsize
        self.array = as_strided(memory[start:], shape, contiguous_strides(shape, itemsize))
        return self
    grown = np.zeros(count, self.array.dtype)
    kept = memory[start:]
    grown[: kept.size] = kept
    self.array, self._storage = grown.reshape(shape), None
    return self


def resize_as(self: Tensor, the_template: Tensor, memory_format: int | None) -> Tensor:
    """`resize_` to the size of another tensor."""
    return resize_(self, the_template.shape, memory_format)


def set_to(self: Tensor, source: Tensor) -> Tensor:
    if self.array.dtype != source.array.dtype:
        raise OperatorError(
            f"Could not set tensor of type {xp.ir_name(source.array.dtype)} to a tensor of type "
            f"{xp.ir_name(self.array.dtype)}"
        )
    self._storage = source.memory
    self.array = source.array
    return self


def set_to_nothing(self: Tensor) -> Tensor:
    self.array, self._storage = np.empty(0, self.array.dtype), None
    return self


def set_to_part(
    self: Tensor, source: Tensor, storage_offset: int, size: Sequence[int], stride: Sequence[int]
) -> Tensor:
    steps = list(stride) or [s // source.array.itemsize for s in contiguous_strides(tuple(size), source.array.itemsize)]
    return set_to(self, as_strided_view(source, size, steps, storage_offset))


_PART: Final = "SymInt storage_offset, SymInt[] size, SymInt[] stride=[]"
op("aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", python=resize_,
   variants="method", inplace_view=True)  # fmt: skip
op("aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
   python=resize_as, variants="method", inplace_view=True)  # fmt: skip
op("aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", python=set_to, variants="method",
   inplace_view=True)  # fmt: skip
op("aten::set_(Tensor(a!) self) -> Tensor(a!)", python=set_to_nothing, variants="method", inplace_view=True)
op(f"aten::set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, {_PART}) -> Tensor(a!)",
   python=set_to_part, variants="method", inplace_view=True)  # fmt: skip
