"""Adam and AdamW: steps as long as the gradient's mean is against its spread.

In: parameters with gradients.  Out: the parameters, changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.aten.tensor import Tensor, tensor
from engine.lang.scalars import float32
from engine.torch.optim.optimizer import Group, Optimizer, State, check


class Adam(Optimizer):
    """Running means of the gradient and of its square decide on the step.  Raises ValueError.

    `weight_decay` adds to the gradient, or, with `decoupled_weight_decay`, shrinks the parameter itself.
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
    ) -> None:
        check(lr=lr, eps=eps, weight_decay=weight_decay)
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        options = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": None, "capturable": False, "differentiable": False, "fused": None,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, options)

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            _begin(param, state, group["amsgrad"])
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        state["step"] += 1
        steps = state["step"].item()
        if decay and group["decoupled_weight_decay"]:
            param.mul_(1 - lr * decay)
        elif decay:
            grad = grad.add(param, alpha=decay)
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
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True
        )  # fmt: skip


def _begin(param: Tensor, state: State, amsgrad: bool) -> None:
    state["step"] = tensor(0.0, dtype=float32)
    for name in ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if amsgrad else [])):
        state[name] = param.detach() * 0


def _squares(state: State, amsgrad: bool) -> Tensor:
    """The running mean of squares, or the largest that it ever was."""
    if not amsgrad:
        mean: Tensor = state["exp_avg_sq"]
        return mean
    largest: Tensor = state["max_exp_avg_sq"]
    return largest.copy_(largest.maximum(state["exp_avg_sq"]))  # type: ignore[no-any-return]
