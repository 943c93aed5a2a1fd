"""Rprop, which uses the signs of gradients alone, and ASGD, which averages parameters.

In: parameters with gradients.  Out: the parameters, updated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.aten.dispatch.calls import call
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


class Rprop(Optimizer):
    """Steps that grow while the gradient keeps its sign, and shrink when it changes.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, maximize: bool = False, **wishes: Any,
    ) -> None:  # fmt: skip
        check(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}; the first is below 1, the second above")
        options = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, with_implementation_options(options, "foreach differentiable capturable", wishes))

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state, "prev", "step_size")
            state["step_size"].fill_(group["lr"])
        step_number(state)
        shrink, grow = group["etas"]
        turned = grad * state["prev"]
        factor = call("where", (turned > 0, grow, call("where", (turned < 0, shrink, 1.0), {})), {})
        step = state["step_size"].mul_(factor.to(grad.dtype)).clamp_(*group["step_sizes"])
        kept = grad.masked_fill(turned < 0, 0)
        param.addcmul_(kept.sign(), step, value=-1)
        state["prev"].copy_(kept)


class ASGD(Optimizer):
    """Stochastic gradient descent whose `ax` is the parameters' average from step `t0` on.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, **wishes: Any,
    ) -> None:  # fmt: skip
        check(lr=lr, weight_decay=weight_decay)
        options = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize,
        }  # fmt: skip
        super().__init__(
            params,
            with_implementation_options(options, "foreach differentiable capturable", {"foreach": foreach, **wishes}),
        )

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state, "ax")
            state["eta"], state["mu"] = state["step"] + group["lr"], state["step"] + 1
        lr, steps, rate, share = group["lr"], step_number(state), state["eta"].item(), state["mu"].item()
        grad = decayed(grad, param, group)
        param.mul_(1 - group["lambd"] * rate).add_(grad, alpha=-rate)
        average = state["ax"]
        average.copy_(param) if share == 1 else average.add_(param.sub(average).mul_(share))
        state["eta"].fill_(lr / (1 + group["lambd"] * lr * steps) ** group["alpha"])
        state["mu"].fill_(1 / max(1, steps - group["t0"]))
