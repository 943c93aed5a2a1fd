"""Tensors made from Python values.

In: numbers, lists, arrays.  Out: tensors; a trace in progress records them as constants, with a warning.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from engine.aten.devices import pinned
from engine.aten.dispatch.calls import call
from engine.aten.ops.creation import check_device
from engine.aten.values import interchange, libraries
from engine.aten.values import tensor as tensors
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.scalars import dtype


def tensor(
    data: Any, *, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with the values of `data`; see `engine.aten.values.tensor.tensor`."""
    if pin_memory:
        made = pinned.pin_memory(tensor(data, dtype=dtype, device=device))
        made.requires_grad = requires_grad
        return made
    device = libraries.DEFAULT_DEVICE.now() if device is None else device
    if device is not None:
        check_device(scalars.device(device))
    if isinstance(data, Tensor):
        return _copied(data, dtype, requires_grad, device)
    made = tensors.tensor(data, dtype, device, requires_grad)
    if HOOKS.tracer is not None:
        HOOKS.tracer.constant(made, "torch.tensor of an array" if isinstance(data, np.ndarray) else "torch.tensor")
    return made


def _copied(data: Tensor, dtype: dtype | None, requires_grad: bool, device: Any = None) -> Tensor:
    """A copy of the tensor."""
    warnings.warn(
        "a tensor is copied more clearly by source.detach().clone(), or source.detach().clone().requires_grad_(True), "
        "than by torch.tensor(source)",
        UserWarning,
        stacklevel=3,
    )
    if HOOKS.tracer is not None:
        HOOKS.tracer.constant(data, "torch.tensor of a tensor")
    place = data.device if device is None else scalars.device(device)
    copy: Tensor = call("to", (data.detach(), place, data.dtype if dtype is None else dtype, False, True), {})
    copy = copy.detach()
    copy.requires_grad = requires_grad
    return copy


def from_numpy(array: Array) -> Tensor:
    """A tensor in the memory of the array; see `engine.aten.values.interchange.from_numpy`."""
    made = interchange.from_numpy(array)
    if HOOKS.tracer is not None:
        HOOKS.tracer.constant(made, "torch.from_numpy")
    return made


tensor.__module__ = from_numpy.__module__ = "engine.torch"  # where programs find them
