"""Gradients: operators on tensors that require grad leave a trail, which backward passes follow.

Importing it installs recording in dispatch and gives tensors `backward` and hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from engine.aten.autograd import engine, functional
from engine.aten.autograd.check import gradcheck, gradgradcheck
from engine.aten.autograd.engine import backward, grad, retain_grad
from engine.aten.autograd.function import Function, once_differentiable
from engine.aten.autograd.node import Node, RemovableHandle
from engine.aten.autograd.record import record
from engine.aten.autograd.specialised_recording import recorder
from engine.aten.autograd.views import history
from engine.aten.dispatch.grad_mode import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)  # fmt: skip
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import ABOVE, Tensor
from engine.lang.errors import OperatorError

__all__ = [
    "Function", "Node", "backward", "detect_anomaly", "enable_grad", "functional", "grad", "gradcheck",
    "gradgradcheck", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
    "once_differentiable", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip


def _backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    engine.backward(self, gradient, retain_graph, create_graph, inputs)


def _register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    if not self.requires_grad:
        raise OperatorError("cannot register a hook on a tensor that doesn't require gradient")
    node: Node | None = self.grad_fn
    if node is None:
        return RemovableHandle(self.hooks().before, (0, hook))
    node.tensor_hooks = node.tensor_hooks or []
    return RemovableHandle(node.tensor_hooks, (self.output_nr, hook))


def _register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    if not self.requires_grad or not self.is_leaf:
        raise OperatorError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return RemovableHandle(self.hooks().accumulated, hook)


def _retains_grad(self: Tensor) -> bool:
    node: Node | None = self.grad_fn
    return node is not None and node.retained is not None and self.output_nr in node.retained


HOOKS.grad, HOOKS.recorded, HOOKS.recorder = record, record, recorder
ABOVE.history = history
METHODS: Final[dict[str, Any]] = {
    "backward": _backward, "register_hook": _register_hook, "retain_grad": retain_grad,
    "register_post_accumulate_grad_hook": _register_post_accumulate_grad_hook, "retains_grad": property(_retains_grad),
}  # fmt: skip
"""Methods of tensors about gradients, which `engine.aten.python.binding` gives them."""
