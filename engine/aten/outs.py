"""What may be written into the tensor that a call gives as `out`.

In: an operator's out form, the dtype of its result and that of the tensor.  Out: nothing, or OperatorError.  Most
operators convert as long as no kind of number is lost; some want the very dtype of the result; some reductions
compute in the dtype of the tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.aten import xp
from engine.aten.promotion import can_cast, check_cast
from engine.aten.rules import c_name
from engine.lang.errors import OperatorError

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


def _cast_in_words(words: str) -> Check:
    def check(source: xp.NumpyDtype, target: xp.NumpyDtype) -> None:
        if not can_cast(source, target):
            raise OperatorError(f"{words} can't be cast to the desired output type {xp.ir_name(target)}")

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
}  # fmt: skip

_SAME: Final = frozenset(
    f"aten::{name}"
    for name in (
        "__lshift__.Scalar_out __lshift__.Tensor_out __rshift__.Scalar_out __rshift__.Tensor_out _log_softmax.out "
        "_softmax.out _unique2.out add.Scalar_out aminmax.out argmax.out argmin.out argsort.stable_out "
        "bernoulli.Tensor_out bernoulli.float_out bincount.out bitwise_and.Scalar_Tensor_out "
        "bitwise_left_shift.Scalar_Tensor_out bitwise_or.Scalar_Tensor_out bitwise_right_shift.Scalar_Tensor_out "
        "bitwise_xor.Scalar_Tensor_out bucketize.Scalar_out celu.out channel_shuffle.out clone.out "
        "count_nonzero.dim_IntList_out count_nonzero.out diag.out diag_embed.out div.Scalar_mode_out div.Scalar_out "
        "embedding.out fill.Scalar_out fill.Tensor_out flip.out floor_divide.Scalar_out gather.out index_add.out "
        "index_copy.out index_fill.int_Scalar_out index_fill.int_Tensor_out index_put.out isin.Scalar_Tensor_out "
        "isin.Tensor_Scalar_out isin.Tensor_Tensor_out isinf.out isnan.out log_softmax.int_out "
        "masked_fill.Scalar_out masked_fill.Tensor_out masked_scatter.out mean.out median.out msort.out "
        "mul.Scalar_out nanmedian.out norm.ScalarOpt_dtype_out norm.Scalar_out normal.out pixel_shuffle.out "
        "pixel_unshuffle.out put.out relu.out remainder.Scalar_Tensor_out repeat.out repeat_interleave.Tensor_out "
        "roll.out rot90.out rsub.Scalar_out rsub.Tensor_out scatter.reduce_out scatter.src_out scatter.value_out "
        "scatter.value_reduce_out scatter_add.out scatter_reduce.two_out select_backward.out slice_backward.out "
        "slice_scatter.out softmax.int_out squeeze_copy.dim_out squeeze_copy.dims_out squeeze_copy.out "
        "std_mean.correction_out sub.Scalar_out sum.out prod.out max.dim_max min.dim_min sort.values "
        "sort.values_stable topk.values take_along_dim.out tril.out triu.out unique_consecutive.out "
        "unique_dim.out var_mean.correction_out view_copy.dtype_out view_copy.out"
    ).split()
)
_FOUND: Final = frozenset(
    f"aten::{name}.out"
    for name in (
        "bitwise_not ceil clamp clamp_max clamp_min clip conj_physical elu fix floor frac gelu hardshrink hardsigmoid "
        "hardswish hardtanh leaky_relu mish neg negative round sgn sign silu softplus softshrink trunc"
    ).split()
) | {"aten::round.decimals_out"}
_OWN_WORDS: Final[dict[str, Check]] = {
    **{f"aten::{name}.out": _check_matching for name in ("amax", "amin")},
    **{f"aten::{n}.{o}": _only_bool(n) for n in ("all", "any") for o in ("all_out", "out", "dims_out")},
    **{f"aten::{n}.out": _no_other_than_bool(n) for n in ("isposinf", "isneginf", "signbit")},
    **{
        f"aten::{name}.out": _cast_in_words("torch.cat(): input types")
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


WRITE_APART: Final = frozenset(f"aten::{name}" for name in "cat gather take index_select masked_select".split())
"""Operators that may not write into any of the memory they read."""


def check_of(qualified_name: str) -> Check:
    """What is asked of the dtype of the tensor that this form writes."""
    if qualified_name in _SAME or qualified_name in IN_DTYPE_OF_OUT:
        return check_same
    if qualified_name in _FOUND:
        return check_found
    return _OWN_WORDS.get(qualified_name, check_cast)
