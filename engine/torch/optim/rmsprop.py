"""RMSprop: gradients over their recent size.  In: parameters with gradients.  Out: the parameters, updated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.aten.values.tensor import Tensor
from engine.torch.optim.optimizer import (
    Group,
    Optimizer,
    State,
    begin,
    check,
    decayed,
    step_number,
    with_implementation_options,
)


class RMSprop(Optimizer):
    """Steps by the gradient over the root of the running mean of its square.  Raises ValueError.

    `centered` uses the variance instead of that mean; `momentum` adds earlier steps.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **wishes: Any,
    ) -> None:
        check(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        options = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, with_implementation_options(options, "capturable foreach differentiable", wishes))

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            wanted = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
            begin(param, state, *(name for name, needed in wanted.items() if needed))
        step_number(state)
        grad = decayed(grad, param, group)
        squares, alpha = state["square_avg"], group["alpha"]
        squares.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            squares = squares.addcmul(mean, mean, value=-1)
        size = squares.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            moving = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, size)
            param.add_(moving, alpha=-group["lr"])
        else:
            param.addcdiv_(grad, size, value=-group["lr"])
