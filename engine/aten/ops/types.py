"""Conversions between dtypes, to numbers, and questions about dtypes.

In: arrays or tensors.  Out: the same tensor where nothing changes, else a new one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.dispatch.table import op
from engine.aten.ops.creation import check_device
from engine.aten.ops.layout import laid_out
from engine.aten.values import libraries, xp
from engine.aten.values.promotion import can_cast, promote_types, result_type
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.errors import OperatorError

VIEW: Final = "function method"


def to(self: Array, dtype: int | None, copy: bool = False, memory_format: int | None = None) -> Array:
    """The array in another dtype or memory format; itself when nothing changes and no copy is asked for."""
    d = self.dtype if dtype is None else xp.numpy_dtype(dtype)
    layout = 1 if memory_format is None else memory_format
    if d != self.dtype:
        return xp.cast(self, d) if layout == 1 else laid_out(xp.cast(self, d), layout)
    if copy or (layout in (0, 2, 3) and not _has_layout(self, layout)):
        return laid_out(self, layout)
    return self


def _has_layout(array: Array, memory_format: int) -> bool:
    return laid_out(array, memory_format).strides == array.strides


def to_dtype(self: Array, dtype: int, non_blocking: bool, copy: bool, memory_format: int | None) -> Array:
    return to(self, dtype, copy, memory_format)


def to_device(
    self: Array, device: Any, dtype: int | None, non_blocking: bool, copy: bool, memory_format: int | None = None
) -> Array:
    check_device(device)
    return to(self, dtype, copy, memory_format)


def to_other(self: Array, other: Array, non_blocking: bool, copy: bool, memory_format: int | None) -> Array:
    return to(self, xp.FROM_NUMPY[other.dtype].number, copy, memory_format)


def to_layout(
    self: Array, dtype: int | None, layout: Any, device: Any, pin_memory: Any, non_blocking: bool, copy: bool,
    memory_format: int | None,
) -> Array:  # fmt: skip
    check_device(device)
    return to(self, dtype, copy, memory_format)


def item(self: Array) -> Any:
    if self.size != 1:
        raise OperatorError(f"a Tensor with {self.size} elements cannot be converted to Scalar")
    return xp.to_list(self.reshape(()))


def cpu(self: Tensor) -> Tensor:
    moved: Tensor = self.to(scalars.CPU)
    return moved


def cuda(self: Tensor) -> Tensor:
    moved: Tensor = self.to(scalars.device("cuda"))
    return moved


_OF_ONEDNN: Final = frozenset({xp.FLOAT32, xp.BFLOAT16, xp.FLOAT16, xp.UINT8, np.dtype(np.int8)})


def to_mkldnn(self: Array, dtype: int | None) -> Array:
    """The numbers in memory of their own: here every tensor is dense, so there is no layout of oneDNN's to lie in.

    Raises OperatorError for dtypes that oneDNN has not.
    """
    if self.dtype not in _OF_ONEDNN:
        raise OperatorError(
            "dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input", hints=("x.float() converts",)
        )
    return to(self, dtype, copy=True)


def to_dense(self: Array, dtype: int | None, masked_grad: bool | None) -> Array:
    return to(self, dtype)


def to_reduced(self: Array, cuda_enabled: bool, cpu_enabled: bool, cuda_dtype: int, cpu_dtype: int) -> Array:
    enabled, dtype = (cpu_enabled, cpu_dtype) if libraries.library_of(self) is None else (cuda_enabled, cuda_dtype)
    return to(self, dtype) if enabled and self.dtype == np.float32 else self


def to_full(self: Array, cuda_enabled: bool, cpu_enabled: bool) -> Array:
    enabled = cpu_enabled if libraries.library_of(self) is None else cuda_enabled
    is_reduced = enabled and xp.FROM_NUMPY[self.dtype] in (scalars.float16, scalars.bfloat16)
    return to(self, scalars.float32.number) if is_reduced else self


_TO = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None"
op(f"aten::to.device(Tensor(a) self, Device device, ScalarType dtype, {_TO}) -> Tensor(a)", kernel=to_device,
   variants="method", gradient={"self": "grad"}, shape="self", dtype="same")  # fmt: skip
op(f"aten::to.dtype(Tensor(a) self, ScalarType dtype, {_TO}) -> Tensor(a)", kernel=to_dtype, variants="method",
   gradient={"self": "grad"}, shape="self", dtype="same")  # fmt: skip
op(f"aten::to.other(Tensor(a) self, Tensor other, {_TO}) -> Tensor(a)", kernel=to_other, variants="method",
   gradient={"self": "grad"}, shape="self", dtype="same other")  # fmt: skip
op("aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
   f"bool? pin_memory=None, {_TO}) -> Tensor(a)", kernel=to_layout, variants="method",
   gradient={"self": "grad"}, shape="self", dtype="same")  # fmt: skip
op("aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) "
   "-> Tensor(b|a)", kernel=to_device, variants="method", gradient={"self": "grad"}, shape="self",
   dtype="same")  # fmt: skip
op("aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)",
   kernel=lambda self, dtype, non_blocking, copy: to(self, dtype, copy), variants="method",
   gradient={"self": "grad"}, shape="self", dtype="same")  # fmt: skip
op("aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)",
   kernel=lambda self, non_blocking, copy: to(self, None, copy), variants="method",
   gradient={"self": "grad"}, shape="self", dtype="same")  # fmt: skip
op("aten::type_as(Tensor self, Tensor other) -> Tensor",
   python=lambda self, other: self.to(other), variants="method", shape="self", dtype="same other",
   hands_on=True)  # fmt: skip
op("aten::_autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, ScalarType cuda_dtype, "
   "ScalarType cpu_dtype) -> Tensor(a)", kernel=to_reduced, gradient={"self": "grad"})  # fmt: skip
op("aten::_autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> Tensor(a)",
   kernel=to_full, gradient={"self": "grad"})  # fmt: skip
op("aten::item(Tensor self) -> Scalar", kernel=item, variants="method")
op("aten::cpu(Tensor(a) self) -> Tensor(b|a)", python=cpu, variants="method", shape="self", dtype="same")
op("aten::to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor", kernel=to_mkldnn, variants="method",
   gradient={"self": "grad.to(self.dtype)"}, shape="self", dtype="same", layout="contiguous")  # fmt: skip
op("aten::to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor", kernel=to_dense,
   variants="method", gradient={"self": "grad.to(self.dtype)"}, shape="self", dtype="same", hands_on=True)  # fmt: skip
op("aten::cuda(Tensor(a) self) -> Tensor(b|a)", python=cuda, variants="method", shape="self", dtype="same")

# ------------------------------------------------------------------ questions


def _result_type(a: Any, b: Any) -> int:
    return xp.FROM_NUMPY[result_type((a, b))].number


op("aten::is_floating_point(Tensor self) -> bool", kernel=lambda self: self.dtype in xp.FLOATING, variants=VIEW)
op("aten::is_complex(Tensor self) -> bool", kernel=lambda self: self.dtype in xp.COMPLEX, variants=VIEW)
op("aten::is_signed(Tensor self) -> bool", kernel=lambda self: xp.FROM_NUMPY[self.dtype].is_signed, variants=VIEW)
op("aten::is_conj(Tensor self) -> bool", kernel=lambda self: False, variants=VIEW)
op("aten::is_neg(Tensor self) -> bool", kernel=lambda self: False, variants=VIEW)
op("aten::is_inference(Tensor self) -> bool", kernel=lambda self: False, variants=VIEW)
op("aten::is_same_size(Tensor self, Tensor other) -> bool", kernel=lambda self, other: self.shape == other.shape,
   variants="method")  # fmt: skip
op("aten::can_cast(ScalarType from_, ScalarType to) -> bool",
   python=lambda source, target: can_cast(xp.numpy_dtype(source), xp.numpy_dtype(target)))  # fmt: skip
op("aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType",
   python=lambda a, b: xp.FROM_NUMPY[promote_types(xp.numpy_dtype(a), xp.numpy_dtype(b))].number)  # fmt: skip
op("aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", kernel=_result_type)
op("aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType", kernel=_result_type)
op("aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType", kernel=_result_type)
op("aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType", python=_result_type)

# ------------------------------------------------------------------ to numbers


def _real(value: Any) -> Any:
    if isinstance(value, complex):
        if value.imag:
            raise OperatorError("value cannot be converted to type double without overflow")
        return value.real
    return value


def _implicit(kind: str, refused: frozenset[xp.NumpyDtype], name: str) -> Any:
    """A tensor where a number is wanted: it must have no dimensions and the right kind."""

    def body(a: Tensor) -> Any:
        if a.requires_grad:
            raise OperatorError("Cannot input a tensor that requires grad as a scalar argument")
        if a.array.ndim:
            raise OperatorError("Cannot input a tensor of dimension other than 0 as a scalar argument")
        if a.array.dtype in refused:
            raise OperatorError(f"Cannot input a tensor of type {xp.ir_name(a.array.dtype)} as {name}")
        value = item(a.array)
        return float(_real(value)) if kind == "float" else value

    return body


op("aten::Int.Tensor(Tensor a) -> int", kernel=lambda a: int(_real(item(a))))
op("aten::Float.Tensor(Tensor a) -> float", kernel=lambda a: float(_real(item(a))))
op("aten::Bool.Tensor(Tensor a) -> bool", python=lambda a: bool(a))
for _a, _b in (("Tensor", "Tensor"), ("Tensor", "float"), ("float", "Tensor"), ("Tensor", "int"), ("int", "Tensor"),
               ("Tensor", "bool"), ("bool", "Tensor")):  # fmt: skip
    _names = "a", "b"
    if (_a, _b) != ("Tensor", "Tensor"):
        _names = "x", "y"
    op(f"aten::Complex.{_a}_{_b}({_a} {_names[0]}, {_b} {_names[1]}) -> complex",
       python=lambda a, b: complex(float(a), float(b)))  # fmt: skip
op("aten::ScalarImplicit(Tensor a) -> Scalar", python=_implicit("scalar", frozenset(), "a scalar argument"))
op("aten::IntImplicit(Tensor a) -> int", python=_implicit("int", xp.INEXACT | {xp.BOOL}, "an integral argument"))
op("aten::FloatImplicit(Tensor a) -> float", python=_implicit("float", frozenset(), "a floating point argument"))
