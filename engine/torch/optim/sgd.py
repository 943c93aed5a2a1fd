"""Stochastic gradient descent, with momentum.  In: parameters with gradients.  Out: the parameters, updated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.aten.values.tensor import Tensor
from engine.torch.optim.optimizer import Group, Optimizer, State, check, decayed, with_implementation_options


class SGD(Optimizer):
    """`param -= lr * grad`; with momentum, earlier gradients are added with decay.  Raises ValueError."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **wishes: Any,
    ) -> None:
        check(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        options = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, with_implementation_options(options, "foreach differentiable fused", wishes))

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        grad = decayed(grad, param, group)
        if group["momentum"] != 0:
            grad = _with_momentum(grad, state, group)
        param.add_(grad, alpha=-group["lr"])


def _with_momentum(grad: Tensor, state: State, group: Group) -> Tensor:
    buffer = state.get("momentum_buffer")
    if buffer is None:
        buffer = state["momentum_buffer"] = grad.detach().clone()
    else:
        buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
    made: Tensor = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
    return made
