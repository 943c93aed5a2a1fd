"""`torch.autograd`: gradients on request, functions with gradients of their own, and the recording switch.

In: tensors.  Out: gradients.  See `engine.aten.autograd`.
"""

from __future__ import annotations

from engine.aten.autograd import (
    Function,
    backward,
    detect_anomaly,
    enable_grad,
    grad,
    gradcheck,
    gradgradcheck,
    inference_mode,
    no_grad,
    once_differentiable,
    set_detect_anomaly,
    set_grad_enabled,
)  # fmt: skip
from engine.aten.values.tensor import Tensor
from engine.torch.autograd import function, functional, graph, profiler
from engine.torch.namespace.missing_names import refuse_unknown_names

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "once_differentiable",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]  # fmt: skip


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """The tensor outside what recorded it, with `requires_grad` as asked for.  (Tensors once had to be wrapped so.)"""
    variable = data.detach()
    variable.requires_grad = requires_grad
    made: Tensor = variable
    return made


refuse_unknown_names(__name__)
