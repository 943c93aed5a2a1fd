"""Argument checks of operators beyond dtype support.

In: a call's arguments, tensors as arrays.  Out: nothing, or OperatorError.  A row names its check, which runs before
the kernel (`dispatch.dtype_support`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.aten.kernels.rules import c_name, no_kernel
from engine.aten.values import xp
from engine.aten.values.promotion import result_type
from engine.lang.errors import OperatorError

Check = Callable[..., None]


def _is_bool(value: Any) -> bool:
    return value.dtype == xp.BOOL if isinstance(value, np.ndarray) else isinstance(value, bool)


def no_bool_difference(self: Any, other: Any, *_: Any) -> None:
    if not (_is_bool(self) or _is_bool(other)):
        return
    if _is_bool(self) and _is_bool(other):
        raise OperatorError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )
    raise OperatorError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. "
        "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    )


def no_bool_negation(self: Any) -> None:
    if _is_bool(self):
        raise OperatorError(
            "Negation, the `-` operator, on a bool tensor is not supported. "
            "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )


def same_dtypes(self: Any, end: Any, weight: Any) -> None:
    """Of three tensors; one number may have any dtype that does not make the result complex."""
    for name, value in (("end", end), ("weight", weight)):
        is_number = value is weight and np.ndim(value) == 0
        if is_number and (np.asarray(value).dtype not in xp.COMPLEX or self.dtype in xp.COMPLEX):
            continue
        if isinstance(value, np.ndarray) and value.dtype != self.dtype:
            raise OperatorError(f"expected dtype {c_name(self.dtype)} for `{name}` but got dtype {c_name(value.dtype)}")


def no_whole_quotient(self: Any, tensor1: Any, tensor2: Any, value: Any) -> None:
    if tensor1.dtype in xp.INTEGRAL and tensor2.dtype in xp.INTEGRAL:
        raise OperatorError(
            "Integer division with addcdiv is no longer supported.",
            hints=("write self + value * (tensor1 / tensor2), or round the quotient with torch.trunc",),
        )


def not_in_place(self: Any) -> None:
    if self.dtype in xp.COMPLEX:
        raise OperatorError("In-place abs is not supported for complex tensors.")


def is_double(self: Any, exponent: Any) -> None:
    needed = xp.COMPLEX128 if result_type((self, exponent)) in xp.COMPLEX else xp.FLOAT64
    if self.dtype != needed:
        raise OperatorError(
            f"the base given to float_power_ has dtype {xp.ir_name(self.dtype)} but the operation's result requires "
            f"dtype {xp.ir_name(needed)}"
        )


def keeps_dtype(name: str) -> Check:
    """Running sums and products in place: in the tensor's own dtype, which is not bool."""

    def check(self: Any, dim: int, dtype: int | None) -> None:
        if self.dtype == xp.BOOL and dtype is None:
            raise no_kernel(f"{name}_out_cpu", self.dtype)
        if dtype is not None and xp.numpy_dtype(dtype) != self.dtype:
            raise OperatorError(
                f"Bad in-place call: input tensor dtype {c_name(self.dtype)} and output tensor dtype "
                f"{c_name(xp.numpy_dtype(dtype))} should match"
            )

    return check


def limits_of_its_sign(self: Any, low: Any, high: Any) -> None:
    if self.dtype == xp.UINT8 and (_negative(low) or _negative(high)):
        raise OperatorError("cannot do hardtanh on an unsigned type with negative limits")


def _negative(value: Any) -> bool:
    return not isinstance(value, complex) and value < 0


def alpha_not_zero(self: Any, alpha: Any) -> None:
    if alpha == 0:
        raise OperatorError("ZeroDivisionError: alpha cannot be 0 for CELU")


def bounds_in_order(self: Any, lower: Any, upper: Any, *_: Any) -> None:
    if not lower <= upper:
        raise OperatorError("Lower bound should be less than or equal to the upper bound")


def whole_as_it_is(self: Any, decimals: int) -> None:
    if self.dtype in xp.INTEGRAL:
        raise no_kernel("round_cpu" if decimals else "round_vml_cpu", self.dtype)


def limit_of_shrinking(self: Any, lambd: Any) -> None:
    if not isinstance(lambd, complex) and not lambd >= 0:
        largest = float(xp.limits(self.dtype).max) if self.dtype in xp.FLOATING else 0.0
        raise OperatorError(
            f"lambda must be in range [0, {largest:g}] for input dtype {xp.ir_name(self.dtype)}, but found {lambd:g}"
        )
