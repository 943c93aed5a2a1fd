"""The layout of results whose operands do not lie in C order.

In: an operator, and the kernel of its results.  Out: the kernel, whose results lie as PyTorch's do.  numpy lets many
results lie as its operands do; a `view` of one that is not contiguous would be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.kernels.rules import ordered_like
from engine.aten.values.tensor import Tensor
from engine.lang.schema import Argument
from engine.lang.types import ListType, OptionalType, TensorType


def laid_out(op: Op, work: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of arrays or of tensors, with its results in the operator's order; arrays of other devices stay as
    they lie, and tensors that are written to."""
    if not op.layout or any(a.is_write for a in op.schema.arguments):
        return work
    place = _PLACES[op.layout.partition(":")[0]]
    asked = [op.schema.index_of(name) or 0 for name in operands_of(op)]

    def ordered(*args: Any) -> Any:
        result = work(*args)
        if isinstance(result, tuple):
            return tuple(placed(each, args) for each in result)
        return placed(result, args)

    def placed(result: Any, args: tuple[Any, ...]) -> Any:
        if isinstance(result, Tensor):
            result.array = placed(result.array, args)
        elif type(result) is np.ndarray and result.ndim > 1:
            return place(result, [args[i] for i in asked])
        return result

    return ordered


def operands_of(op: Op) -> tuple[str, ...]:
    """The tensors that decide how the results lie, the first to be asked first."""
    named = tuple(name.strip() for name in op.layout.partition(":")[2].split(",") if name.strip())
    return named or tuple(a.name for a in op.schema.arguments if _is_operand(a) and not a.is_write)


def _is_operand(argument: Argument) -> bool:
    type = argument.type.element if isinstance(argument.type, (OptionalType, ListType)) else argument.type
    return isinstance(type, TensorType)


def ordering_line(arrays: Sequence[str]) -> str:
    """A statement that lays out the array `result` as these operands ask for, which costs little in C order."""
    is_in_order = f"result.flags.c_contiguous and {arrays[0]}.flags.c_contiguous"
    return f"if not ({is_in_order}): result = ordered_like(result, ({', '.join(arrays)},))"


def _contiguous(result: Any, asked: list[Any]) -> Any:
    return result if result.flags.c_contiguous else result.copy(order="C")


def _as_operands(result: Any, asked: list[Any]) -> Any:
    arrays = [each for each in _arrays(asked) if _spreads(each.shape, result.shape)]
    if not arrays or (result.flags.c_contiguous and all(each.flags.c_contiguous for each in arrays)):
        return result
    return ordered_like(result, arrays)


def _as_images(result: Any, asked: list[Any]) -> Any:
    """Channels last if that is how the first argument lies, each of its tensors if it is a list."""
    given = _arrays(asked[0] if isinstance(asked[0], (list, tuple)) else asked[:1])
    if not (given and result.ndim in (4, 5) and all(map(_are_images, given))):
        return _contiguous(result, asked)
    channels_last = np.moveaxis(result, 1, -1)
    ordered = channels_last if channels_last.flags.c_contiguous else channels_last.copy(order="C")
    return np.moveaxis(ordered, -1, 1)


def _arrays(values: Sequence[Any]) -> list[Any]:
    arrays = (each.array if isinstance(each, Tensor) else each for each in values)
    return [each for each in arrays if type(each) is np.ndarray]


def _spreads(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """True if an array of this shape is an operand of a pointwise operator whose result has the whole one."""
    pairs = zip(shape[::-1], whole[::-1], strict=False)
    return len(shape) <= len(whole) and all(a in (1, b) for a, b in pairs)


def _are_images(array: Any) -> bool:
    """True if the channels (dimension 1) lie innermost, as the strides tell where dimensions of one element leave it
    open (c10's `is_channels_last_strides_2d_s4` and `_3d_s5`)."""
    if array.ndim not in (4, 5) or array.strides[1] == 0 or array.size == 0:
        return False
    least = 0
    for dim in (1, *range(array.ndim - 1, 1, -1), 0):
        stride = array.strides[dim]
        if stride < least or (dim == 0 and least == array.strides[1]):
            return False
        least = stride * array.shape[dim]
    return True


_PLACES: Final = {"contiguous": _contiguous, "operands": _as_operands, "channels last": _as_images}
