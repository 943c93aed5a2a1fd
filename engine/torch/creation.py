"""Tensors made of Python's values.

In: numbers, lists, arrays.  Out: tensors; a trace that is under way keeps their values as constants, with a warning.
"""

from __future__ import annotations

from typing import Any

from engine.aten import tensor as tensors
from engine.aten.dispatch import HOOKS
from engine.aten.tensor import Tensor
from engine.aten.xp import Array
from engine.lang.scalars import dtype


def tensor(data: Any, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with the values of `data`; see `engine.aten.tensor.tensor`."""
    made = tensors.tensor(data, dtype, device, requires_grad)
    if HOOKS.trace_constant is not None:
        HOOKS.trace_constant(made, "torch.tensor")
    return made


def from_numpy(array: Array) -> Tensor:
    """A tensor in the memory of the array; see `engine.aten.tensor.from_numpy`."""
    made = tensors.from_numpy(array)
    if HOOKS.trace_constant is not None:
        HOOKS.trace_constant(made, "torch.from_numpy")
    return made


tensor.__module__ = from_numpy.__module__ = "engine.torch"  # where programs find them
