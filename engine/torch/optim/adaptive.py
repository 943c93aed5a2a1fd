"""Optimizers with adaptive steps: Adagrad, Adadelta, Adamax, NAdam, RAdam.

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

Betas = tuple[float, float]


class Adagrad(Optimizer):
    """Steps by the gradient over the root of the sum of its squares.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps,
              initial_accumulator_value=initial_accumulator_value)  # fmt: skip
        options = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, options)
        for group in self.param_groups:
            for param in group["params"]:
                begin(param, self.state[param], "sum")
                self.state[param]["sum"].add_(group["initial_accumulator_value"])

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state, "sum")
        lr = group["lr"] / (1 + (step_number(state) - 1) * group["lr_decay"])
        grad = decayed(grad, param, group)
        size = state["sum"].addcmul_(grad, grad, value=1).sqrt().add_(group["eps"])
        param.addcdiv_(grad, size, value=-lr)


class Adadelta(Optimizer):
    """Steps scaled by the ratio of earlier steps to earlier gradients.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, maximize: bool = False, **wishes: Any,
    ) -> None:  # fmt: skip
        check(lr=lr, eps=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(
            params,
            with_implementation_options(options, "capturable foreach differentiable", {"foreach": foreach, **wishes}),
        )

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state, "square_avg", "acc_delta")
        step_number(state)
        rho, eps, grad = group["rho"], group["eps"], decayed(grad, param, group)
        size = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho).add(eps).sqrt_()
        delta = state["acc_delta"].add(eps).sqrt_().div_(size).mul_(grad)
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-group["lr"])


class Adamax(Optimizer):
    """Adam with a decaying maximum of gradients for their size.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, **wishes: Any,
    ) -> None:  # fmt: skip
        check(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(
            params,
            with_implementation_options(options, "foreach differentiable capturable", {"foreach": foreach, **wishes}),
        )

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state, "exp_avg", "exp_inf")
        (beta1, beta2), steps, grad = group["betas"], step_number(state), decayed(grad, param, group)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        size = state["exp_inf"]
        size.copy_((size * beta2).maximum(grad.abs().add_(group["eps"])))
        param.addcdiv_(mean, size, value=-group["lr"] / (1 - beta1**steps))


class NAdam(Optimizer):
    """Adam with Nesterov momentum.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        maximize: bool = False, **wishes: Any,
    ) -> None:  # fmt: skip
        check(lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_betas(betas)
        options = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, with_implementation_options(options, "foreach capturable differentiable", wishes))

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state, "exp_avg", "exp_avg_sq")
            state["mu_product"] = state["step"] + 1
        (beta1, beta2), lr, steps = group["betas"], group["lr"], step_number(state)
        grad = decayed(grad, param, group)
        now, later = (beta1 * (1 - 0.5 * 0.96 ** (n * group["momentum_decay"])) for n in (steps, steps + 1))
        state["mu_product"] *= now
        product = state["mu_product"].item()
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        squares = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        size = squares.div(1 - beta2**steps).sqrt().add_(group["eps"])
        param.addcdiv_(grad, size, value=-lr * (1.0 - now) / (1.0 - product))
        param.addcdiv_(mean, size, value=-lr * later / (1.0 - product * later))


class RAdam(Optimizer):
    """Adam with rectified variance: it ignores the variance until enough gradients are averaged.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, maximize: bool = False, **wishes: Any,
    ) -> None:  # fmt: skip
        check(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        options = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, with_implementation_options(options, "foreach capturable differentiable", wishes))

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state, "exp_avg", "exp_avg_sq")
        (beta1, beta2), steps, grad = group["betas"], step_number(state), decayed(grad, param, group)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1) / (1 - beta1**steps)
        squares = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        seen, spread = _length(beta2, steps), 1 - beta2**steps
        if seen > 5.0:
            mean.mul_(spread**0.5).div_(squares.sqrt().add_(group["eps"])).mul_(_rectified(seen, 2 / (1 - beta2) - 1))
        param.add_(mean, alpha=-group["lr"])


def _length(beta: float, steps: float) -> float:
    """The effective number of gradients in the running mean of squares."""
    return float(2 / (1 - beta) - 1 - 2 * steps * beta**steps / (1 - beta**steps))


def _rectified(seen: float, most: float) -> float:
    return float(((seen - 4) * (seen - 2) * most / ((most - 4) * (most - 2) * seen)) ** 0.5)
