"""What may be written into the tensor that a call gives as `out`.

In: an operator's out form, the dtype of its result and that of the tensor.  Out: nothing, or OperatorError.  Most
operators convert as long as no kind of number is lost; some want the very dtype of the result; some reductions
compute in the dtype of the tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.aten.kernels.rules import c_name
from engine.aten.values import xp
from engine.aten.values.promotion import can_cast, check_cast
from engine.lang.errors import OperatorError, OperatorTypeError

Check = Callable[[xp.NumpyDtype, xp.NumpyDtype], None]


def check_same(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
    """Raise OperatorError unless the tensor has the result's dtype."""
    if source != target:
        raise OperatorError(
            f"Expected out tensor to have dtype {c_name(source)}, but got {c_name(target)} instead",
            hints=(f"give a tensor of dtype torch.{xp.FROM_NUMPY[source].name}",),
        )


def check_found(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
    """The same for operators of one tensor, in their words."""
    if source != target:
        raise OperatorError(
            f"Found dtype {xp.ir_name(target)} but expected {xp.ir_name(source)}",
            hints=(f"give a tensor of dtype torch.{xp.FROM_NUMPY[source].name}",),
        )


def _check_size_of(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
    """The absolute values of complex numbers may go into a tensor of these, too."""
    if target.kind != "c" or source.kind == "c" or target.itemsize != 2 * source.itemsize:
        check_found(source, target)


def _check_matching(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
    if source != target:
        raise OperatorError(
            f"Expected the dtype for input and out to match, but got {xp.ir_name(source)} for input's dtype and "
            f"{xp.ir_name(target)} for out's dtype."
        )


def _only_bool(name: str) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if target not in (xp.BOOL, xp.UINT8):
            raise OperatorError(f"{name} only supports bool tensor for result, got: {xp.ir_name(target)}")

    return check


def _no_other_than_bool(name: str) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if target != xp.BOOL:
            raise OperatorError(f"{name} does not support non-boolean outputs.")

    return check


def _cast_in_words(words: str, error: type[OperatorError] = OperatorError) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if not can_cast(source, target):
            raise error(f"{words} can't be cast to the desired output type {xp.ir_name(target)}")

    return check


def _only_same(words: str) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if source != target:
            raise OperatorError(
                words.format(
                    wanted=xp.ir_name(source), given=xp.ir_name(target), c=c_name(source), c_given=c_name(target)
                )
            )

    return check


_EXACT_WORDS: Final = {
    "expected scalar_type {wanted} but found {given}": "cummax.out cummin.out logcumsumexp.out",
    "the output given to float_power has dtype {given} but the operation's result requires dtype {wanted}":
        "float_power.Tensor_Tensor_out float_power.Tensor_Scalar_out float_power.Scalar_out",
    "index_out: self ({wanted}) and result ({given}) must have the same scalar type": "index.Tensor_out",
    "index_select(): self and result must have the same scalar type": "index_select.out",
    "masked_select(): self and result must have the same scalar type": "masked_select.out",
    "take(): self and out expected to have the same dtype, but got self.dtype = {wanted} and out.dtype = {given}":
        "take.out",
    "Expected out type to be {wanted} but got {given}": "where.self_out",
    "nan_to_num: dtype of out: {given} should be same as input: {wanted}": "nan_to_num.out",
    "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {c} and hist {c_given}":
        "histc.out histogram.bin_ct_out histogram.bins_tensor_out",
    "nonzero: Expected out tensor to have scalar type {wanted} but got scalar type{given}": "nonzero.out",
    "nonzero_static: Expected out tensor to have scalar type {wanted} but got scalar type{given}": "nonzero_static.out",
    "quantile() out tensor must be same dtype as the input tensor":
        "quantile.out quantile.scalar_out nanquantile.out nanquantile.scalar_out",
    "heaviside is not yet implemented for tensors with different dtypes.": "heaviside.out",
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
    "whether out_int32 flag is True, but we got output tensor's dtype {given}":
        "bucketize.Tensor_out searchsorted.Tensor_out searchsorted.Scalar_out",
    "Expected object of scalar type {wanted} but got scalar type {given} for argument 'out'": "complex.out polar.out",
    "multinomial expects {wanted} tensor out, got: {given}": "multinomial.out",
    "torch.frexp() expects mantissa to have dtype {c} but got {c_given}": "frexp.Tensor_out",
    "output values must be of same type as input": "kthvalue.values",
    "result dtype {given} does not match input dtype {wanted}": "dot.out vdot.out",
    "multi_dot(): expected out tensor to have dtype {c} but got {c_given}": "linalg_multi_dot.out chain_matmul.out",
    "linalg.matrix_norm expected out tensor dtype {wanted} but got: {given}":
        "linalg_matrix_norm.out linalg_matrix_norm.str_ord_out",
    "linalg.norm expected out tensor dtype {wanted} but got: {given}": "linalg_norm.out linalg_norm.ord_str_out",
    "linalg.vecdot: Expected out of dtype{wanted} but found {given}": "linalg_vecdot.out",
    "tensordot: Expected the output tensor to have dtype {wanted}, but got an output tensor with dtype {given}":
        "tensordot.out",
    "expected dtype {c} for `output` but got dtype {c_given}": "adaptive_avg_pool2d.out adaptive_avg_pool3d.out",
    "expected scalar type {wanted} but found {given}":
        "im2col.out col2im.out multi_margin_loss.out reflection_pad2d.out linalg_solve_triangular.out",
    "self and mat2 must have the same dtype, but got {given} and {wanted}": "addbmm.out",
    "addmv input tensors must have the same dtype, but got {given}, {wanted}, and {wanted}": "mv.out",
}  # fmt: skip

_SAME: Final = frozenset(
    f"aten::{name}"
    for name in (
        "adaptive_avg_pool1d.out add.Scalar_out addmm.out addmv.out affine_grid_generator.out aminmax.out "
        "argmax.out argmin.out argsort.stable_out as_strided_scatter.out avg_pool1d.out avg_pool2d.out "
        "avg_pool2d_backward.grad_input avg_pool3d.out baddbmm.out bernoulli.Tensor_out bernoulli.float_out "
        "bincount.out bitwise_and.Scalar_Tensor_out bitwise_left_shift.Scalar_Tensor_out "
        "bitwise_or.Scalar_Tensor_out bitwise_right_shift.Scalar_Tensor_out bitwise_xor.Scalar_Tensor_out "
        "block_diag.out bmm.out bucketize.Scalar_out _cdist_forward.out celu.out channel_shuffle.out clone.out "
        "constant_pad_nd.out count_nonzero.dim_IntList_out count_nonzero.out cross.out diag.out diag_embed.out "
        "diagonal_scatter.out dist.out div.Scalar_mode_out div.Scalar_out embedding.out fill.Scalar_out "
        "fill.Tensor_out flip.out floor_divide.Scalar_out gather.out grid_sampler_2d.out grid_sampler_3d.out "
        "index_add.out index_copy.out index_fill.int_Scalar_out index_fill.int_Tensor_out index_put.out "
        "index_reduce.out inverse.out isin.Scalar_Tensor_out isin.Tensor_Scalar_out isin.Tensor_Tensor_out "
        "isinf.out isnan.out linalg_cholesky.out linalg_cross.out linalg_det.out linalg_eigvalsh.out "
        "linalg_inv.out linalg_lu_solve.out linalg_matrix_exp.out linalg_matrix_power.out linalg_solve.out "
        "linalg_svdvals.out linalg_vector_norm.out linear.out log_softmax.int_out _log_softmax.out "
        "_log_softmax_backward_data.out __lshift__.Scalar_out __lshift__.Tensor_out lu_solve.out "
        "masked_fill.Scalar_out masked_fill.Tensor_out masked_scatter.out matmul.out max.dim_max mean.out "
        "median.out min.dim_min mm.out msort.out mul.Scalar_out nanmedian.out nll_loss.out "
        "norm.ScalarOpt_dtype_out norm.Scalar_out norm.out normal.out pixel_shuffle.out pixel_unshuffle.out "
        "prod.out put.out reflection_pad1d.out reflection_pad3d.out relu.out remainder.Scalar_Tensor_out "
        "renorm.out repeat.out repeat_interleave.Tensor_out replication_pad1d.out replication_pad2d.out "
        "replication_pad3d.out roll.out rot90.out __rshift__.Scalar_out __rshift__.Tensor_out rsub.Scalar_out "
        "rsub.Tensor_out scatter.reduce_out scatter.src_out scatter.value_out scatter.value_reduce_out "
        "scatter_add.out scatter_reduce.two_out segment_reduce.out select_backward.out select_scatter.out "
        "slice_backward.out slice_scatter.out softmax.int_out _softmax.out _softmax_backward_data.out sort.values "
        "sort.values_stable squeeze_copy.dim_out squeeze_copy.dims_out squeeze_copy.out std_mean.correction_out "
        "sub.Scalar_out sum.out take_along_dim.out topk.values trace.out transpose_copy.int_out tril.out triu.out "
        "unfold_copy.out _unique2.out unique_consecutive.out unique_dim.out upsample_bicubic2d.out "
        "_upsample_bicubic2d_aa.out upsample_bilinear2d.out _upsample_bilinear2d_aa.out upsample_linear1d.out "
        "upsample_nearest1d.out upsample_nearest2d.out upsample_nearest3d.out _upsample_nearest_exact1d.out "
        "_upsample_nearest_exact2d.out _upsample_nearest_exact3d.out upsample_trilinear3d.out "
        "var_mean.correction_out view_copy.dtype_out view_copy.out"
    ).split()
)
_FOUND: Final = frozenset(
    f"aten::{name}.out"
    for name in (
        "binary_cross_entropy "
        "bitwise_not ceil clamp clamp_max clamp_min clip conj_physical elu fix floor frac gelu hardshrink hardsigmoid "
        "hardswish hardtanh leaky_relu mish neg negative round sgn sign silu soft_margin_loss softplus "
        "softshrink trunc"
    ).split()
) | {"aten::round.decimals_out", "aten::lerp.Tensor_out"}
_OWN_WORDS: Final[dict[str, Check]] = {
    **{f"aten::{name}.out": _check_matching for name in ("amax", "amin")},
    **{f"aten::{n}.{o}": _only_bool(n) for n in ("all", "any") for o in ("all_out", "out", "dims_out")},
    **{f"aten::{n}.out": _no_other_than_bool(n) for n in ("isposinf", "isneginf", "signbit")},
    **{
        f"aten::{name}.out": _cast_in_words("torch.cat(): input types", OperatorTypeError)
        for name in "cat column_stack concat dstack hstack row_stack stack vstack".split()
    },
    **{f"aten::{name}": _only_same(words) for words, names in _EXACT_WORDS.items() for name in names.split()},
    "aten::abs.out": _check_size_of,
    "aten::absolute.out": _check_size_of,
    "aten::mean.dtype_out": _cast_in_words("mean.dtype_out(): input types"),
    "aten::ldexp.out": _cast_in_words("ldexp"),
}

IN_DTYPE_OF_OUT: Final = frozenset(
    f"aten::{name}" for name in "sum.IntList_out prod.int_out cumsum.out cumprod.out nansum.out".split()
)
"""Out forms that, asked for no dtype, compute in that of the tensor they write."""
WRITE_AGAIN: Final = frozenset(f"aten::{name}_" for name in "fill masked_fill index_fill index_put tril triu".split())
"""In-place operators that write whatever of their elements share memory."""
WRITE_APART: Final = frozenset(f"aten::{name}" for name in "cat gather take index_select masked_select".split())
"""Operators that may not write into any of the memory they read."""


def check_of(qualified_name: str) -> Check:
    """What is asked of the dtype of the tensor that this form writes."""
    if qualified_name in _SAME or qualified_name in IN_DTYPE_OF_OUT:
        return check_same
    if qualified_name in _FOUND:
        return check_found
    return _OWN_WORDS.get(qualified_name, check_cast)
