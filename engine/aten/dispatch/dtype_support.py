"""Dtypes that operators have no code for, and how they say so.

In: an operator's entry and its kernel or body.  Out: the same function, behind a look at the dtype of its operands
where this table has rows for its name.  A shape that does not fit is found before a dtype that does not.

A row names the kinds of dtype refused: b(ool), i(ntegers), n(arrow integers, all but int64), s(igned ones),
f(ractions, half types included), h(alf types), c(omplex); and the operators, by name or with overload, also those that
are another's alias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.kernels.checks import CHECKS
from engine.aten.kernels.rules import no_kernel, shapes_message
from engine.aten.values import xp
from engine.aten.values.promotion import result_type
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorDtypeError, OperatorError
from engine.lang.schema import Argument
from engine.lang.types import NUMBER, TensorType

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
    ("threshold_cpu", "bc", "threshold threshold_backward"),
    ("softplus_backward_cpu", "bic", "softplus_backward"),
    ("polygamma_kernel", "c", "polygamma"),
    ("max_values_cpu", "c", "amax"),
    ("min_values_cpu", "c", "amin"),
    ("aminmax_cpu", "c", "aminmax"),
    ("kthvalue_cpu", "bc", "kthvalue"),
    ("median_out", "bc", "median.dim nanmedian.dim"),
    ("mode_cpu", "c", "mode"),
    ("unique", "c", "_unique _unique2"),
    ("unique_dim", "c", "unique_dim"),
    ("glu_cpu", "c", "glu"),
    ("logit_cpu", "c", "logit special_logit"),
    ("prelu_cpu", "bic", "prelu _prelu_kernel"),
    ("trace", "b", "trace"),
    ("log_softmax_lastdim_kernel_impl", "c", "_log_softmax"),
    ("softmax_lastdim_kernel_impl", "c", "_softmax scaled_dot_product_attention"),
    ("log_softmax_backward_lastdim_kernel_impl", "bic", "_log_softmax_backward_data"),
    ("softmax_backward_lastdim_kernel_impl", "bic", "_softmax_backward_data"),
    ("avg_pool2d", "n", "avg_pool1d avg_pool2d"),
    ("avg_pool2d_backward", "bnc", "avg_pool2d_backward"),
    ("avg_pool3d_out_frame", "nh", "avg_pool3d"),
    ("max_pool2d_backward", "bic", "max_pool2d_with_indices_backward"),
    ("slow_conv_transpose2d_out_cpu", "n", "conv_transpose1d conv_transpose2d"),
    ("slow_conv_transpose3d_out_cpu", "n", "conv_transpose3d"),
    ("max_unpool2d", "bic", "max_unpool2d"),
    ("max_unpool3d", "bic", "max_unpool3d"),
    ("im2col_out_cpu", "i", "im2col"),
    ("col2im_out_cpu", "i", "col2im"),
    ("grid_sampler_2d_cpu_kernel_impl", "bic", "grid_sampler_2d grid_sampler"),
    ("grid_sampler3d_cpu", "bic", "grid_sampler_3d"),
    ("compute_index_ranges_weights", "shc", "_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa"),
    ("compute_indices_weights_linear", "i", "upsample_linear1d upsample_trilinear3d"),
    ("GroupNormKernelImpl", "bic", "group_norm native_group_norm"),
    ("LayerNormKernelImpl", "bic", "layer_norm native_layer_norm"),
    ("layer_norm_backward", "bic", "native_layer_norm_backward"),
    ("batch_norm", "bic", "instance_norm"),
    ("batch_norm_backward_cpu", "bic", "native_batch_norm_backward"),
    ("rms_norm", "bi", "rms_norm"),
    ("weight_norm_kernel", "bic", "_weight_norm"),
    ("cdist", "h", "cdist _cdist_forward"),
    ("pdist", "h", "pdist"),
    ("ctc_loss_cpu", "bihc", "ctc_loss"),
    ("binary_cross_entropy", "bic", "binary_cross_entropy"),
    ("multilabel_margin_loss_forward_out_frame", "bih", "multilabel_margin_loss multilabel_margin_loss_forward"),
    ("nll_loss_out_frame", "bic", "nll_loss nll_loss_forward nll_loss_nd nll_loss2d nll_loss2d_forward"),
    ("nll_loss_backward_out_frame", "bic", "nll_loss_backward"),
    ("fake_quantize_tensor_cachemask_kernel_type_handling", "bic", "fake_quantize_per_tensor_affine"),
    ("_segment_reduce_cpu", "bic", "segment_reduce"),
    ("bessel_j0_cpu", "h", "special_bessel_j0"),
    ("bessel_j1_cpu", "h", "special_bessel_j1"),
    ("bessel_y0_cpu", "h", "special_bessel_y0"),
    ("bessel_y1_cpu", "h", "special_bessel_y1"),
    ("erfcx_cpu", "h", "special_erfcx"),
    ("log_ndtr_cpu", "h", "special_log_ndtr"),
    ("ndtri_cpu", "h", "special_ndtri"),
    ("orgqr_cpu", "bih", "linalg_householder_product orgqr"),
)
_NO_FACTORIZATION: Final = (
    # the same for matrices; those without elements need none
    ("cholesky_cpu", "bih", "cholesky"),
    ("cholesky_cpu", "h", "linalg_cholesky linalg_cholesky_ex"),
    ("cholesky_inverse_out_cpu", "bih", "cholesky_inverse"),
    ("cholesky_solve_cpu", "bih", "cholesky_solve"),
    ("triangular_solve_cpu", "bih", "linalg_solve_triangular triangular_solve"),
    ("geqrf_cpu", "bih", "geqrf"),
    ("geqrf_cpu", "h", "linalg_qr qr"),
    ("lu_cpu", "bih", "linalg_lu linalg_lu_factor linalg_lu_factor_ex"),
    ("lu_cpu", "h", "linalg_det det linalg_solve linalg_solve_ex linalg_tensorsolve"),
    ("linalg.lu_solve_cpu", "h", "linalg_lu_solve"),
    ("linalg_eigh_cpu", "bih", "linalg_eigh linalg_eigvalsh"),
    ("linalg_eig_out_cpu", "h", "linalg_eig linalg_eigvals"),
    ("linalg_svd_cpu", "h", "linalg_svd linalg_svdvals svd linalg_cond linalg_matrix_rank"),
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
    ("igamma_cpu", "bi", "igamma special_gammainc"),
    ("igammac_cpu", "bi", "igammac special_gammaincc"),
    ("zeta_cpu", "h", "special_zeta"),
    ("sigmoid_backward_cpu", "i", "sigmoid_backward"),
    ("tanh_backward_cpu", "bi", "tanh_backward"),
    ("mse_cpu", "bic", "mse_loss"),
    ("huber_cpu", "bic", "huber_loss"),
    ("smooth_l1_cpu", "bic", "smooth_l1_loss"),
    ("mse_backward_cpu_out", "bc", "mse_loss_backward"),
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
     OperatorDtypeError),
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
    ("pdist only supports floating-point dtypes", "bic", "pdist", OperatorError),
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
    empty: bool = True  # whether operands without elements are refused, too

    @property
    def dtypes(self) -> frozenset[xp.NumpyDtype]:
        return frozenset(d for d in xp.TO_NUMPY.values() if set(kinds_of(d)) & set(self.kinds))


Guard = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Puts a function over the operator's arguments behind the refusals of the operator."""


def guard_of(op: Op) -> Guard:
    """The refusals of the operator; nothing changes where there are none."""
    rows = (*_ROWS.get(op.name, ()), *_ROWS.get(op.qualified_name, ()))
    check = CHECKS.get(op.name) or CHECKS.get(op.qualified_name)
    if not (rows or check) or not any(isinstance(a.type, TensorType) for a in op.schema.arguments):
        return lambda function: function
    places = [i for i, a in enumerate(op.schema.arguments) if _is_operand(a)]
    listed = [(row, row.dtypes) for row in rows]
    dtypes = frozenset(d for _, refused in listed for d in refused)
    first = places[0]

    is_looking = check is not None or any(row.common for row in rows)

    def guard(function: Callable[..., Any]) -> Callable[..., Any]:
        def glancing(*args: Any) -> Any:
            return looking(*args) if _array(args[first]).dtype in dtypes else function(*args)

        def looking(*args: Any) -> Any:
            if check is not None:
                check(*map(_array, args))
            operands = [_array(args[i]) for i in places]
            for row, refused in listed:
                d = result_type(operands) if row.common else operands[0].dtype
                if d in refused and (row.empty or operands[0].size):
                    _refuse(row, d, operands)
            return function(*args)

        return looking if is_looking else glancing

    return guard


def _is_operand(a: Argument) -> bool:
    if isinstance(a.type, TensorType):
        return not (a.is_write and a.kwarg_only)
    return a.type is NUMBER and not a.kwarg_only and a.name not in ("alpha", "weight")


def kinds_of(d: xp.NumpyDtype) -> str:
    """The letters of a dtype: b, i and what else is true of an integer, f or fh, or c."""
    of_integers = ("n" if d != xp.INT64 else "") + ("s" if d.kind == "i" else "")
    return _KINDS[d.kind] + (of_integers if d.kind in "iu" else "h" if d in xp.HALVES else "")


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

    for table, common, empty in (
        (_NO_KERNEL, False, True),
        (_NO_FACTORIZATION, False, False),
        (_NO_COMMON_KERNEL, True, True),
    ):
        for kernel, kinds, names in table:
            add(names, Refusal(kinds, common, lambda d, kernel=kernel: no_kernel(kernel, d), empty))  # type: ignore[misc]
    for unsupported, common in ((_UNSUPPORTED, False), (_UNSUPPORTED_IN_COMMON, True)):
        for message, kinds, names, kind in unsupported:
            add(names, Refusal(kinds, common, lambda d, kind=kind, message=message: kind(message)))  # type: ignore[misc]
    return rows


_ROWS: Final = _rows()
