"""Calls of operators on tensors that do not lie in C order, and the layouts of their results as text.

In: an operator of the table.  Out: for each way to lay out the tensors of its sample (all, the first, the others) a
call; and for its results a text: the strides of each, `*` for those of dimensions of one element, which say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from tests.table.gradient_samples import gradient_arguments_for

RECORDED = Path(__file__).with_name("strides.txt")
"""Lines of a row's name and the layouts of its results in PyTorch, call by call; `-` where that refuses the call."""


def turned(array: Any) -> Any:
    """The same numbers, the first dimension innermost."""
    return np.ascontiguousarray(array.T).T if array.ndim > 1 else array


def channels_last(array: Any) -> Any:
    """The same numbers, the second dimension innermost."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1) if array.ndim > 2 else array


def calls(op: Op) -> Iterator[list[Any]]:
    """Calls of the operator.  Raises KeyError or TypeError without a sample."""
    sample = gradient_arguments_for(op)
    places = [i for i, value in enumerate(sample) if isinstance(value, (Tensor, list))]
    for way in (turned, channels_last):
        for chosen in (places, places[:1], places[1:]):
            if chosen:
                yield [_laid(value, way) if i in chosen else value for i, value in enumerate(sample)]


def _laid(value: Any, way: Any) -> Any:
    if isinstance(value, list):
        return [_laid(each, way) for each in value]
    return Tensor(way(value.array)) if isinstance(value, Tensor) else value


def layout(shape: Sequence[int], strides: Sequence[int]) -> str:
    return ",".join("*" if n == 1 else str(step) for n, step in zip(shape, strides, strict=True)) or "()"
