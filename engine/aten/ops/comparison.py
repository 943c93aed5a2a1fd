"""Comparisons.  In: arrays.  Out: arrays of bool, or one bool."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import broadcast_shapes
from engine.aten.values import xp
from engine.aten.values.promotion import result_type, wide
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

ALL: Final = "function method inplace out"


def isclose(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    if self.dtype != other.dtype:
        raise OperatorError(
            f"{xp.ir_name(self.dtype)} did not match {xp.ir_name(other.dtype)}",
            hints=("convert one to the other's dtype",),
        )
    if rtol < 0 or atol < 0:
        name, value = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise OperatorError(f"{name} must be greater than or equal to zero, but got {value}")
    broadcast_shapes(self.shape, other.shape)
    used = np.dtype(np.int64) if self.dtype in xp.INTEGRAL else wide(self.dtype)
    a, b = (v.astype(used, copy=False) for v in (self, other))
    close = a == b
    if a.dtype in xp.INEXACT and equal_nan:
        close |= np.isnan(a) & np.isnan(b)
    if rtol == 0 and atol == 0:
        return np.asarray(close)
    allowed = atol + np.abs(rtol * b)
    return np.asarray(close | (np.isfinite(a - b) & (np.abs(a - b) <= allowed)))


def allclose(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> bool:
    return bool(isclose(self, other, rtol, atol, equal_nan).all())


def equal(self: Array, other: Array) -> bool:
    if self.dtype is other.dtype:
        return self.shape == other.shape and bool((self == other).all())
    d = result_type((self.reshape(-1)[:1], other.reshape(-1)[:1]))
    return self.shape == other.shape and bool(np.array_equal(xp.cast(self, d), xp.cast(other, d)))


def is_nonzero(self: Array) -> bool:
    if self.size == 0:
        raise OperatorError("Boolean value of Tensor with no values is ambiguous")
    if self.size > 1:
        raise OperatorError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(self.reshape(()))


def _list_equal(a: list[Array], b: list[Array]) -> bool:
    if len(a) != len(b):
        return False
    pairs = zip(a, b, strict=True)
    return all(is_nonzero(np.asarray(x.astype(d) == y.astype(d))) for x, y in pairs for d in [result_type((x, y))])


_SIGNS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
for _name, _sign in _SIGNS.items():
    op(f"aten::{_name}.Tensor(Tensor self, Tensor other) -> Tensor", scalar=f"self {_sign} other", dtype="bool",
       variants=ALL, gradient_in_place={"self": "zeros_like(grad)", "other": "zeros_like(grad)"})  # fmt: skip
    op(f"aten::{_name}.Scalar(Tensor self, Scalar other) -> Tensor", scalar=f"self {_sign} other", dtype="bool",
       variants=ALL, gradient_in_place={"self": "zeros_like(grad)"})  # fmt: skip
op("aten::eq.Tensor_list(Tensor[] a, Tensor[] b) -> bool", kernel=_list_equal, data_dependent=True)
op(
    "aten::ne.Tensor_list(Tensor[] a, Tensor[] b) -> bool",
    kernel=lambda a, b: not _list_equal(a, b),
    data_dependent=True,
)
op("aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, "
   "bool equal_nan=False) -> Tensor", kernel=isclose, variants="function method", layout="operands")  # fmt: skip
op("aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, "
   "bool equal_nan=False) -> bool", kernel=allclose, variants="function method", data_dependent=True)  # fmt: skip
op(
    "aten::equal(Tensor self, Tensor other) -> bool",
    kernel=equal,
    variants="function method",
    jit_autocast="widest",
    data_dependent=True,
)
op("aten::is_nonzero(Tensor self) -> bool", kernel=is_nonzero, variants="function method", data_dependent=True)

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("ge.Tensor ge.Scalar", refuses=no_code("c", "ge_cpu", common=True))
describe("gt.Tensor gt.Scalar", refuses=no_code("c", "gt_cpu", common=True))
describe("le.Tensor le.Scalar", refuses=no_code("c", "le_cpu", common=True))
describe("lt.Tensor lt.Scalar", refuses=no_code("c", "lt_cpu", common=True))
