"""The layout of results whose operands do not lie in C order.

In: an operator, and the kernel of its results.  Out: the kernel, whose results are in C order where PyTorch's are.
numpy lets many results lie as its operands do; a `view` of one that is not contiguous would be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.kernels.rules import ordered_like


def laid_out(op: Op, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel with its results in the operator's order; arrays of other devices stay as they lie."""
    if not op.layout:
        return kernel
    if op.layout == "operands":
        return _as_operands(kernel)
    keeps_images = op.layout == "channels last"

    def placed(result: Any) -> Any:
        if not isinstance(result, np.ndarray) or result.flags.c_contiguous or (keeps_images and _are_images(result)):
            return result
        return result.copy(order="C")

    def ordered(*args: Any) -> Any:
        result = kernel(*args)
        if type(result) is np.ndarray and result.flags.c_contiguous:
            return result
        return tuple(map(placed, result)) if isinstance(result, tuple) else placed(result)

    return ordered


def _as_operands(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def ordered(*args: Any) -> Any:
        result = kernel(*args)
        arrays = [each for each in args if type(each) is np.ndarray]
        if all(each.flags.c_contiguous for each in arrays):
            return result
        return tuple(laid(each, arrays) for each in result) if isinstance(result, tuple) else laid(result, arrays)

    def laid(result: Any, arrays: list[Any]) -> Any:
        alike = [each for each in arrays if _spreads(each.shape, result.shape)]
        return ordered_like(result, alike) if type(result) is np.ndarray else result

    return ordered


def _spreads(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """True if an array of this shape is an operand of a pointwise operator whose result has the whole one."""
    pairs = zip(shape[::-1], whole[::-1], strict=False)
    return len(shape) <= len(whole) and all(a in (1, b) for a, b in pairs)


def _are_images(array: Any) -> bool:
    """True if the channels (dimension 1) lie innermost, the rest in C order around them."""
    return array.ndim in (4, 5) and np.moveaxis(array, 1, -1).flags.c_contiguous
