"""The layout of results whose operands do not lie in C order.

In: an operator, and the kernel of its results.  Out: the kernel, whose results are in C order where PyTorch's are.
numpy lets many results lie as its operands do; a `view` of one that is not contiguous would be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.aten.dispatch.op import Op


def laid_out(op: Op, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel with its results in the operator's order; arrays of other devices stay as they lie."""
    if not op.layout:
        return kernel
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


def _are_images(array: Any) -> bool:
    """True if the channels (dimension 1) lie innermost, the rest in C order around them."""
    return array.ndim in (4, 5) and np.moveaxis(array, 1, -1).flags.c_contiguous
