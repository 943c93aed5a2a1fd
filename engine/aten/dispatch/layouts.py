"""How results lie in memory where their operands do not lie in C order.

In: an operator, and the kernel of its results.  Out: the kernel, whose results are in C order where PyTorch's are.
numpy lets many results lie as its operands do; a `view` of one that is not contiguous would be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op

IN_C_ORDER: Final = frozenset(
    "aten::" + name
    for name in (
        "sum mean std var std_mean var_mean prod amax amin aminmax max min argmax argmin any all norm "
        "linalg_vector_norm logsumexp count_nonzero median nanmedian kthvalue mode cumsum cumprod cummax cummin "
        "logcumsumexp glu one_hot roll masked_fill scatter_reduce"
    ).split()
)
"""Operators that give contiguous results for operands of any layout."""
UNLESS_CHANNELS_LAST: Final = frozenset({"aten::cat", "aten::native_batch_norm"})
"""The same, but images whose channels lie innermost stay so."""


def laid_out(op: Op, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel with its results in the operator's order; arrays of other devices stay as they lie."""
    keeps_images = op.name in UNLESS_CHANNELS_LAST
    if not (keeps_images or op.name in IN_C_ORDER):
        return kernel

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
    """Do the channels (dimension 1) lie innermost, the rest in C order around them?"""
    return array.ndim in (4, 5) and np.moveaxis(array, 1, -1).flags.c_contiguous
