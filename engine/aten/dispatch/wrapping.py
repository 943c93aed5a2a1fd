"""Wrapping of results: arrays become new tensors, views of an argument, or values written into one.

In: arrays, and the tensors whose memory they show or go to.  Out: tensors.  Writes refuse, with OperatorError, what
does not fit and memory that they would overwrite while it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.out_checks import Check
from engine.aten.kernels.overlap import may_overlap, write_in_order
from engine.aten.kernels.rules import is_dense, overlaps_partly
from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.libraries import as_array, beside, device_of, moved
from engine.aten.values.promotion import check_cast
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

may_share: Final = np.may_share_memory
_new: Final[Callable[..., Any]] = object.__new__


def refuse_overlap(target: Tensor, inputs: Sequence[Tensor]) -> None:
    """Raise OperatorError if an input shows part of the memory that is written."""
    for tensor in inputs:
        if tensor._storage is target._storage and overlaps_partly(target.array, tensor.array):
            raise _overlap()


def refuse_shared(target: Tensor, inputs: Sequence[Tensor]) -> None:
    """Raise OperatorError if an input shows any of the memory that is written."""
    for tensor in inputs:
        if tensor.array.size and tensor._storage is target._storage and may_share(tensor.array, target.array):
            raise _overlap()


def _overlap() -> OperatorError:
    return OperatorError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
        "memory location. Please clone() the tensor before performing the operation."
    )


def fresh(result: Any) -> Tensor:
    """A new tensor of a result that shares no memory with an argument."""
    made: Tensor = _new(Tensor)
    made.array = result if type(result) is np.ndarray else as_array(result)
    made._requires_grad = False
    made._grad_fn = made._storage = made._base = None
    made.output_nr = 0
    return made


def view(result: Array, source: Tensor) -> Tensor:
    """A result that may be a view of `source`: itself, a tensor on the same storage, or a new one."""
    array = source.array
    if result is array:
        return source
    tensor: Tensor = _new(Tensor)
    tensor.array = result if type(result) is np.ndarray else as_array(result)
    tensor._requires_grad = False
    tensor._grad_fn = tensor._storage = tensor._base = None
    tensor.output_nr = 0
    base = result.base
    if base is None and array.base is not result and type(result) is np.ndarray and result.flags.owndata:
        return tensor  # memory of its own
    if (base is not None and (base is array or base is array.base)) or (
        type(result) is type(array) and may_share(result, array)
    ):
        storage = source._storage
        tensor._storage = storage = source.memory if storage is None else storage
        tensor._base = source if source._base is None else source._base
        tensor._seen = storage.version
    return tensor


def part(result: Array, source: Tensor) -> Tensor:
    """One of the views that an operator returns together: none of them may be written to while gradients flow."""
    tensor = view(result, source)
    tensor._view_kind = "many"
    return tensor


def store(target: Tensor, result: Any) -> None:
    """Write an in-place result; raises OperatorError where shape, dtype or memory do not allow it."""
    result = as_array(result)
    _check_shape(target.array, result)
    check_cast(result.dtype, target.array.dtype)
    overwrite(target, result)


def store_again(target: Tensor, result: Any) -> None:
    """`store` for operators that may write elements of the same memory more than once: what they change is written."""
    array = target.array
    if array.flags.c_contiguous or not _has_overlap(array) or type(array) is not np.ndarray:
        store(target, result)
        return
    _check_shape(array, result)
    np.copyto(array, xp.cast(result, array.dtype), casting="unsafe", where=np.asarray(result != array))
    target.bump_version()


def overwrite(target: Tensor, result: Array) -> None:
    """`store` whatever the dtype of the result."""
    array = target.array
    _check_shape(array, result)
    _check_no_overlap(array)
    _beside(array, _copy, array, _brought(result, array))
    target.bump_version()


def _copy(array: Array, result: Array) -> None:
    values = xp.cast(result, array.dtype)
    if not array.flags.c_contiguous and type(array) is np.ndarray and may_overlap(array):
        write_in_order(array, values)
    else:
        np.copyto(array, values, casting="unsafe")


def _brought(result: Array, target: Array) -> Array:
    """The result on the device of the target."""
    return moved(result, device_of(target)) if HOOKS.several or type(result) is not type(target) else result


def _beside(array: Array, function: Callable[..., Any], *args: Any) -> Any:
    """Call it with the device of the array as the current one."""
    return beside((array,), function, *args) if HOOKS.several else function(*args)


def _check_shape(array: Array, result: Array) -> None:
    if result.shape != array.shape:
        raise OperatorError(
            f"output with shape {list(array.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )


def check_writable(target: Tensor, result: Array) -> None:
    _check_shape(target.array, result)
    check_cast(result.dtype, target.array.dtype)


def store_out(target: Tensor, result: Any, check: Check = check_cast) -> None:
    """Write an out= result; the target takes the result's shape, and `check` says what its dtype may be."""
    result = as_array(result)
    check(result.dtype, target.array.dtype)
    array = target.array
    if result.shape != array.shape:
        order = "K" if is_dense(result) else "C"
        target.array = _beside(array, np.empty_like, _brought(result, array), array.dtype, order)
        target._storage = None
    overwrite(target, result)


def dtype_number(tensor: Tensor) -> int:
    return xp.FROM_NUMPY[tensor.array.dtype].number


def _has_overlap(array: Array) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True))


def _check_no_overlap(array: Array) -> None:
    if not array.flags.c_contiguous and _has_overlap(array):
        raise OperatorError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
