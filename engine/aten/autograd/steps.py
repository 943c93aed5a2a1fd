"""One node of a backward pass, with all that may be asked of it: hooks, gradients that tensors keep, checks.

In: a node, and the gradients of its results by their places.  Out: the gradients for its edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.aten.autograd.node import Gradient, Hook, Node
from engine.aten.values import libraries, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError, OperatorTypeError


def call_tensor_hooks(node: Node, inputs: dict[int, Tensor]) -> None:
    """Let hooks on a node's results change their gradients, and tensors keep them."""
    for place, hook in tuple(node.tensor_hooks or ()):
        if place in inputs:
            inputs[place] = _changed(hook, inputs[place])
    for place, tensor in (node.retained or {}).items():
        kept = tensor()
        if kept is not None and place in inputs:
            kept._grad = inputs[place] if kept._grad is None else kept._grad + inputs[place]


def apply(node: Node, inputs: dict[int, Tensor], keep: bool, checks_nan: bool = False) -> Sequence[Gradient]:
    """The node's step between its own hooks; its saved tensors are released unless `keep`."""
    if not inputs:
        return [None] * len(node.edges)
    count = len(node.outputs)
    if count == len(inputs) == 1:
        gradients: list[Gradient] = [*inputs.values()]
    else:
        gradients = [inputs.get(i) for i in range(max(count, max(inputs) + 1))]
    if node.prehooks:
        for hook in tuple(node.prehooks):
            changed = hook(tuple(gradients))
            gradients = gradients if changed is None else list(changed)
    found = node.apply(gradients) if not HOOKS.devices else _applied(node, gradients)
    if checks_nan:
        _refuse_nan(node, found)
    if node.hooks:
        for hook in tuple(node.hooks):
            changed = hook(tuple(found), tuple(gradients))
            found = found if changed is None else list(changed)
    if not keep:
        node.release()
    return found


def _applied(node: Node, gradients: list[Gradient]) -> Sequence[Gradient]:
    """`node.apply` where tensors may be elsewhere than on the CPU."""
    arrays = [each.array for each in gradients if each is not None]
    found: Sequence[Gradient] = libraries.beside(arrays, node.apply, gradients)
    return found


def _changed(hook: Hook, gradient: Tensor) -> Tensor:
    """The gradient returned by a hook.  Raises OperatorError (or OperatorTypeError) if it does not fit."""
    changed = hook(gradient)
    if changed is None:
        return gradient
    if not isinstance(changed, Tensor):
        raise OperatorTypeError(f"expected Variable, but hook returned '{type(changed).__name__}'")
    if changed.array.shape != gradient.array.shape:
        name = getattr(hook, "__name__", type(hook).__name__)
        raise OperatorError(f"hook '{name}' has changed the size of value")
    return changed


def _refuse_nan(node: Node, found: Sequence[Gradient]) -> None:
    for place, gradient in enumerate(found):
        if gradient is not None and gradient.array.dtype in xp.INEXACT and np.isnan(gradient.array).any():
            raise OperatorError(f"Function '{node.name()}' returned nan values in its {place}th output.")
