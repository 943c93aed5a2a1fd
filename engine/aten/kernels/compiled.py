"""Slots for kernels of whole layers, which a compiler of kernels offers.

In: nothing.  Out: `COMPILED`, whose slots kernels of operators ask first.  A slot gives None where it has no machine
code (yet) for such arguments, or where numpy is as good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.aten.values.xp import Array

Sizes = Sequence[int]
Arrays = tuple[Array, ...]
Weights = tuple[Array, Array, Array | None, Array | None]
"""Weights of the input and of the state, and the bias of each."""
Recurrent = tuple[Array, Arrays, tuple[Array, Array]]
"""Outputs, last states, and what a backward pass wants."""


@dataclass(slots=True)
class CompiledLayers:
    """`linear(rows, weight, bias)`: (m, k), (n, k), (n) to (m, n).

    `matmul(a, b)`: of matrices, or of two equal-sized batches of them, with any strides.
    `convolution(input, weight, bias, stride, padding, dilation, groups)`: of images.
    `recurrent(kind, x, state, weights, backwards, keeps)`: as `recurrence.layer`.
    """

    linear: Callable[[Array, Array, Array | None], Array | None] | None = None
    matmul: Callable[[Array, Array], Array | None] | None = None
    convolution: Callable[[Array, Array, Array | None, Sizes, Sizes, Sizes, int], Array | None] | None = None
    recurrent: Callable[[str, Array, Arrays, Weights, bool, bool], Recurrent | None] | None = None


COMPILED: Final = CompiledLayers()
LEAST: Final = 1 << 18
"""Operations from which on machine code pays beside numpy."""
