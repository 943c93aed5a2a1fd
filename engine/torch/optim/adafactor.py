"""Adafactor: adaptive steps with the second moments of a matrix stored as one row and one column.

In: parameters with gradients.  Out: the parameters, updated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.aten.values.tensor import Tensor
from engine.torch.namespace.python_functions import finfo
from engine.torch.optim.optimizer import Group, Optimizer, State, begin, check, step_number, with_implementation_options


class Adafactor(Optimizer):
    """Adafactor: steps relative to the parameter's size, clipped at the threshold `d`.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        maximize: bool = False, **wishes: Any,
    ) -> None:  # fmt: skip
        check(lr=lr, weight_decay=weight_decay, **{"eps[0]": eps[0] or 0.0, "eps[1]": eps[1]})
        if beta2_decay > 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if d < 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        options = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, with_implementation_options(options, "foreach", wishes))

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            begin(param, state)
            _begin_squares(grad, state)
        steps, (least, smallest) = step_number(state), group["eps"]
        least = finfo(param.dtype).eps if least is None else least
        rate = min(group["lr"], steps**-0.5)
        length = max(smallest, param.norm(2).item() / param.numel() ** 0.5) * rate
        if group["weight_decay"]:
            param.mul_(1 - group["lr"] * group["weight_decay"])
        squares = _squares(grad, state, steps ** group["beta2_decay"], least)
        update = squares.clamp_(min=least * least).rsqrt_().mul_(grad)
        excess = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        param.add_(update, alpha=-length / excess)


def _begin_squares(grad: Tensor, state: State) -> None:
    if grad.ndim < 2:
        state["variance"] = grad * 0
        return
    state["row_var"] = grad.new_zeros([*grad.shape[:-1], 1])
    state["col_var"] = grad.new_zeros([*grad.shape[:-2], 1, grad.shape[-1]])


def _squares(grad: Tensor, state: State, share: float, least: float) -> Any:
    """The running mean of the squared gradient; for matrices reconstructed from a row and a column."""
    if grad.ndim < 2:
        return state["variance"].lerp_(grad.square(), share).clone()
    row = state["row_var"].lerp_(grad.square().mean(-1, keepdim=True), share)
    column = state["col_var"].lerp_(grad.square().mean(-2, keepdim=True), share)
    return (row @ column).div_(row.mean(-2, keepdim=True).clamp_(min=least))
