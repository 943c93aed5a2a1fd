"""Forms of operators for quantized tensors.

In: an operator and its arguments, arrays or tensors, some of them quantized.  Out: its result.  What only moves numbers
runs as ever (`MOVING`), the rest has a function here by its name (`FORMS`), over arrays; all other operators refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values.quantizer import is_quantized, quantizer_of
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorDtypeError, OperatorError

_F = TypeVar("_F", bound=Callable[..., Any])
STRIDED: Final = frozenset(
    f"aten::{name}"
    for name in "transpose permute slice narrow expand expand_as unsqueeze squeeze t as_strided split chunk unbind "
    "split_with_sizes unsafe_split unsafe_chunk unsafe_split_with_sizes tensor_split movedim moveaxis swapaxes "
    "swapdims swapaxes_ transpose_ squeeze_ unsqueeze_ t_ numpy_T matrix_H mT unfold diagonal".split()
)
"""Views that only tensors with one scale have."""
MOVING: Final = STRIDED | {
    f"aten::{name}"
    for name in "view reshape _reshape_alias _unsafe_view view_as reshape_as flatten unflatten ravel contiguous clone "
    "detach detach_ alias size sym_size stride numel dim len is_contiguous is_floating_point is_complex is_signed "
    "is_same_size storage_offset element_size nelement get_device is_inference _version data set_data requires_grad_ "
    "retain_grad _is_view flip index index_select masked_select gather roll repeat_interleave channel_shuffle "
    "pixel_shuffle pixel_unshuffle __is__ __isnot__ __contains__ empty_cache cpu broadcast_to tile repeat flipud "
    "fliplr rot90 take is_nonzero_ dropout feature_dropout alpha_dropout identity native_channel_shuffle".split()
}
"""Operators that look at a tensor's form, or put its numbers in other places."""
FORMS: Final[dict[str, Callable[..., Any]]] = {}
"""Operator, with or without its overload -> what it does over arrays."""


def form(*names: str) -> Callable[[_F], _F]:
    """Note what the operators of these names do."""

    def note(function: _F) -> _F:
        FORMS.update((f"aten::{name}", function) for name in names)
        return function

    return note


def holds_quantized(args: Sequence[Any]) -> bool:
    return any(map(is_quantized, arrays_in(args)))


def arrays_in(args: Sequence[Any]) -> Iterator[Any]:
    for value in args:
        if isinstance(value, Tensor):
            value = value.array
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from arrays_in(value)


def form_of(op: Op, work: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """The operator's form for these arguments, over arrays; `work` itself if it only moves numbers.

    Raises OperatorDtypeError where there is no such thing.
    """
    found = FORMS.get(op.qualified_name) or FORMS.get(op.name)
    if found is None and op.functional is not None:
        found = FORMS.get(op.functional.qualified_name) or FORMS.get(op.functional.name)
    if found is not None:
        return found
    if op.name in MOVING or not op.name.startswith("aten::"):
        if op.name in STRIDED and any(is_quantized(a) and quantizer_of(a).axis is not None for a in arrays_in(args)):
            raise OperatorError("Setting strides is possible only on uniformly quantized tensor")
        return work
    if op.is_composed:
        return work
    raise OperatorDtypeError(
        f"Could not run '{op.qualified_name}' with arguments from the 'QuantizedCPU' backend.",
        hints=("x.dequantize() gives the numbers", f"in {op.qualified_name}"),
    )


def computed(op: Op, kernel: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The result, arrays as the operator's kernel gives them, of arrays."""
    function = form_of(op, kernel, args)
    if function is kernel:
        return _fitting(kernel(*args))
    return function(*_given(op, args))


def worked(op: Op, work: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The result of tensors, for operators whose body takes those."""
    function = form_of(op, work, args)
    if function is work:
        return _fitting(work(*args))
    result = function(*_given(op, _unwrapped(args)))
    if op.schema.arguments and op.schema.arguments[0].is_write:
        return _written(args[0], result)
    return _rewrapped(result)


def _fitting(result: Any) -> Any:
    """The result.  Raises OperatorError for one whose scales do not fit its shape."""
    for array in arrays_in([result]):
        how = quantizer_of(array) if is_quantized(array) else None
        if how is None or how.axis is None:
            continue
        size = array.shape[how.axis] if how.axis < array.ndim else 1
        if size != how.scale.size:
            raise OperatorError(f"length of scales must equal to channel, expected {size} got, {how.scale.size}")
    return result


def _given(op: Op, args: Sequence[Any]) -> list[Any]:
    """The arguments without those that results are written to."""
    kept = [not (a.kwarg_only and a.is_write) for a in op.schema.arguments]
    return [value for value, keep in zip(args, [*kept, *[True] * len(args)], strict=False) if keep]


def _written(target: Tensor, result: Any) -> Tensor:
    target.array[...] = result
    target.bump_version()
    return target


def _unwrapped(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_unwrapped, value)) if type(value) in (list, tuple) else value
    return value.array if isinstance(value, Tensor) else value


def _rewrapped(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_rewrapped, value))
    return Tensor(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value
