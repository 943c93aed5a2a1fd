"""Adam and AdamW: steps by the gradient's running mean over the root of its running square.

In: parameters with gradients.  Out: the parameters, updated.
"""

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
    check_betas,
    decayed,
    step_number,
    with_implementation_options,
)  # fmt: skip


class Adam(Optimizer):
    """Steps by the running means of the gradient and of its square.  Raises ValueError.

    `weight_decay` is added to the gradient, or, with `decoupled_weight_decay`, shrinks the parameter itself.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **wishes: Any,
    ) -> None:
        check(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        options = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
        }  # fmt: skip
        options = with_implementation_options(options, "foreach capturable differentiable fused", wishes)
        super().__init__(params, {**options, "decoupled_weight_decay": decoupled_weight_decay})

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state, "exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))
        lr, (beta1, beta2), steps = group["lr"], group["betas"], step_number(state)
        grad = decayed(grad, param, group)
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        spread = (_squares(state, group["amsgrad"]).sqrt() / (1 - beta2**steps) ** 0.5).add_(group["eps"])
        param.addcdiv_(state["exp_avg"], spread, value=-lr / (1 - beta1**steps))


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves.  Raises ValueError."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **wishes: Any,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True, **wishes
        )


def _squares(state: State, amsgrad: bool) -> Tensor:
    """The running mean of squares, or, with `amsgrad`, its maximum so far."""
    if not amsgrad:
        mean: Tensor = state["exp_avg_sq"]
        return mean
    largest: Tensor = state["max_exp_avg_sq"]
    return largest.copy_(largest.maximum(state["exp_avg_sq"]))  # type: ignore[no-any-return]
