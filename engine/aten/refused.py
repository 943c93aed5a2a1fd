"""Dtypes that operators have no code for, and how they say so.

In: an operator's entry and its kernel or body.  Out: the same function, behind a look at the dtype of its operands
where this table has rows for its name.  A shape that does not fit is found before a dtype that does not.

A row names the kinds of dtype refused: b(ool), i(ntegers), f(ractions, half types included), c(omplex); and the
operators, by name or with overload, also those that are another's alias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.aten import xp
from engine.aten.checks import CHECKS
from engine.aten.errors import shapes_message
from engine.aten.promotion import result_type
from engine.aten.rules import no_kernel
from engine.aten.tensor import Tensor
from engine.lang.errors import OperatorDtypeError, OperatorError
from engine.lang.schema import Argument
from engine.lang.types import NUMBER, TensorType

if TYPE_CHECKING:
    from engine.aten.op import Op

_NO_KERNEL: Final = (
    # what is missing, kinds, operators whose first operand decides
    ("GeluKernelImpl", "ic", "gelu"),
    ("addmm_impl_cpu_", "b", "mm addmm addbmm linear inner tensordot"),
    ("addmv_impl_cpu", "b", "mv addmv"),
    ("bmm", "b", "bmm einsum"),
    ("baddbmm", "b", "baddbmm"),
    ("dot", "b", "dot vdot"),
    ("cross", "b", "cross linalg_cross"),
    ("ceil_vml_cpu", "b", "ceil"),
    ("floor_vml_cpu", "b", "floor"),
    ("trunc_vml_cpu", "b", "trunc fix"),
    ("round_vml_cpu", "b", "round"),
    ("elu_cpu", "bic", "elu celu selu"),
    ("erf_vml_cpu", "c", "erf special_erf"),
    ("erfc_vml_cpu", "c", "erfc special_erfc"),
    ("frac_cpu", "bic", "frac"),
    ("glu_cpu", "bi", "glu"),
    ("hardshrink_cpu", "bic", "hardshrink"),
    ("hardsigmoid_cpu", "bic", "hardsigmoid"),
    ("hardswish_cpu", "bic", "hardswish"),
    ("leaky_relu_cpu", "bic", "leaky_relu"),
    ("log_sigmoid_cpu", "bic", "log_sigmoid"),
    ("mish_cpu", "bic", "mish"),
    ("silu_cpu", "bi", "silu"),
    ("softplus_cpu", "bic", "softplus"),
    ("softshrink_check", "bic", "softshrink"),
    ("threshold_cpu", "bc", "threshold"),
    ("max_values_cpu", "c", "amax"),
    ("min_values_cpu", "c", "amin"),
    ("aminmax_cpu", "c", "aminmax"),
    ("kthvalue_cpu", "bc", "kthvalue"),
    ("median_out", "bc", "median.dim nanmedian.dim"),
    ("mode_cpu", "c", "mode"),
    ("unique", "c", "_unique _unique2"),
    ("unique_dim", "c", "unique_dim"),
)
_NO_COMMON_KERNEL: Final = (
    # the same where the common dtype of the operands decides
    ("addcmul_cpu_out", "b", "addcmul"),
    ("atan2_cpu", "c", "atan2 arctan2"),
    ("copysign_cpu", "c", "copysign"),
    ("div_floor_cpu", "bc", "floor_divide"),
    ("fmod_cpu", "bc", "fmod.Tensor fmod.Scalar"),
    ("remainder_cpu", "bc", "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor"),
    ("lerp_kernel_scalar", "bi", "lerp.Scalar"),
    ("lerp_kernel_tensor", "bi", "lerp.Tensor"),
    ("lshift_cpu", "bfc", "bitwise_left_shift __lshift__"),
    ("rshift_cpu", "bfc", "bitwise_right_shift __rshift__"),
    ("bitwise_and_cpu", "fc", "bitwise_and __and__"),
    ("bitwise_or_cpu", "fc", "bitwise_or __or__"),
    ("bitwise_xor_cpu", "fc", "bitwise_xor __xor__"),
    ("logaddexp_cpu", "bi", "logaddexp"),
    ("logaddexp2_cpu", "bic", "logaddexp2"),
    ("pow", "b", "pow.Tensor_Tensor"),
    ("ge_cpu", "c", "ge.Tensor ge.Scalar greater_equal.Tensor greater_equal.Scalar"),
    ("gt_cpu", "c", "gt.Tensor gt.Scalar greater.Tensor greater.Scalar"),
    ("le_cpu", "c", "le.Tensor le.Scalar less_equal.Tensor less_equal.Scalar"),
    ("lt_cpu", "c", "lt.Tensor lt.Scalar less.Tensor less.Scalar"),
)
_UNSUPPORTED: Final = (
    # message, kinds, operators; of the first operand's dtype
    ("ceil is not supported for complex inputs", "c", "ceil", OperatorDtypeError),
    ("floor is not supported for complex inputs", "c", "floor", OperatorDtypeError),
    ("trunc is not supported for complex inputs", "c", "trunc fix", OperatorDtypeError),
    ("round is not supported for complex inputs", "c", "round", OperatorDtypeError),
    ("clamp is not supported for complex types", "c", "relu relu6 hardtanh", OperatorDtypeError),
    ("Bool inputs not supported for hardtanh", "b", "hardtanh relu6", OperatorError),
    ("deg2rad is not supported for complex tensors.", "c", "deg2rad", OperatorError),
    ("rad2deg is not supported for complex tensors.", "c", "rad2deg", OperatorError),
    ("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.", "c", "sign",
     OperatorError),
    ("The `+` operator, on a bool tensor is not supported.", "b", "positive", OperatorError),
    (" Sort does not support complex dtypes on CPU", "c", "sort argsort msort", OperatorError),
    ("topk does not support complex dtypes on CPU", "c", "topk", OperatorError),
    ("topk does not support bool dtypes on CPU", "b", "topk", OperatorError),
    ("max(): does not support complex input", "c", "max.dim", OperatorError),
    ("min(): does not support complex input", "c", "min.dim", OperatorError),
    ("argmax(): does not support complex input", "c", "argmax", OperatorError),
    ("argmin(): does not support complex input", "c", "argmin", OperatorError),
    ("argmax(): does not support bool input", "b", "argmax", OperatorError),
    ("argmin(): does not support bool input", "b", "argmin", OperatorError),
    ("nansum on CPU does not support complex inputs", "c", "nansum nanmean", OperatorError),
)  # fmt: skip
_UNSUPPORTED_IN_COMMON: Final = (
    ("maximum not implemented for complex tensors.", "c", "maximum max.other", OperatorError),
    ("minimum not implemented for complex tensors.", "c", "minimum min.other", OperatorError),
    ("fmax not implemented for complex tensors.", "c", "fmax", OperatorError),
    ("fmin not implemented for complex tensors.", "c", "fmin", OperatorError),
    ("heaviside is not yet implemented for complex tensors.", "c", "heaviside", OperatorError),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Kinds of dtype that are refused, with what is said."""

    kinds: str
    common: bool
    error: Callable[[xp.NumpyDtype], OperatorError]


def guarded(op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind the refusals of its operator, if there are any."""
    rows = (*_ROWS.get(op.name, ()), *_ROWS.get(op.qualified_name, ()))
    check = CHECKS.get(op.name) or CHECKS.get(op.qualified_name)
    if not (rows or check) or not any(isinstance(a.type, TensorType) for a in op.schema.arguments):
        return function
    places = [i for i, a in enumerate(op.schema.arguments) if _is_operand(a)]

    kinds = frozenset(kind for kind, name in _KINDS.items() if any(name in row.kinds for row in rows))
    first = places[0]

    def glancing(*args: Any) -> Any:
        return looking(*args) if _array(args[first]).dtype.kind in kinds else function(*args)

    def looking(*args: Any) -> Any:
        if check is not None:
            check(*map(_array, args))
        operands = [_array(args[i]) for i in places]
        for row in rows:
            d = result_type(operands) if row.common else operands[0].dtype
            if kind_of(d) in row.kinds:
                _refuse(row, d, operands)
        return function(*args)

    return looking if check is not None or any(row.common for row in rows) else glancing


def _is_operand(a: Argument) -> bool:
    if isinstance(a.type, TensorType):
        return not (a.is_write and a.kwarg_only)
    return a.type is NUMBER and not a.kwarg_only and a.name not in ("alpha", "weight")


def kind_of(d: xp.NumpyDtype) -> str:
    """b, i, f or c."""
    return _KINDS[d.kind]


def _refuse(row: Refusal, d: xp.NumpyDtype, operands: list[Any]) -> None:
    message = shapes_message([o.shape for o in operands if isinstance(o, np.ndarray)]) if row.common else None
    raise OperatorError(message) if message else row.error(d)


def _array(value: Any) -> Any:
    return value.array if isinstance(value, Tensor) else value


_KINDS: Final = {"b": "b", "i": "i", "u": "i", "f": "f", "V": "f", "c": "c"}


def _rows() -> dict[str, list[Refusal]]:
    rows: dict[str, list[Refusal]] = {}

    def add(names: str, refusal: Refusal) -> None:
        for name in names.split():
            rows.setdefault(f"aten::{name}", []).append(refusal)

    for table, common in ((_NO_KERNEL, False), (_NO_COMMON_KERNEL, True)):
        for kernel, kinds, names in table:
            add(names, Refusal(kinds, common, lambda d, kernel=kernel: no_kernel(kernel, d)))  # type: ignore[misc]
    for unsupported, common in ((_UNSUPPORTED, False), (_UNSUPPORTED_IN_COMMON, True)):
        for message, kinds, names, kind in unsupported:
            add(names, Refusal(kinds, common, lambda d, kind=kind, message=message: kind(message)))  # type: ignore[misc]
    return rows


_ROWS: Final = _rows()
