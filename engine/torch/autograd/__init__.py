"""`torch.autograd`: gradients, functions with custom gradients, and the switches for gradient recording.

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
    """The tensor detached from its history, with the given `requires_grad` (PyTorch's old way to make a leaf)."""
    variable = data.detach()
    variable.requires_grad = requires_grad
    made: Tensor = variable
    return made


refuse_unknown_names(__name__)
