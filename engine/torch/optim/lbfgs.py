"""L-BFGS: quasi-Newton steps from the latest changes of the gradient.

In: parameters, and a closure that recomputes the loss and its gradients.  Out: the parameters, updated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from engine.aten.autograd import enable_grad, no_grad
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.torch.optim.line_search import Probe, strong_wolfe
from engine.torch.optim.optimizer import Optimizer, check


class LBFGS(Optimizer):
    """One group of parameters; every step calls the closure several times.  Raises ValueError."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check(lr=lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"line_search_fn is None or 'strong_wolfe', not {line_search_fn!r}")
        options = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate until the gradient or the step is small, or a limit is reached; the loss before."""
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that computes the loss anew")
        state, group = self.state[self._params[0]], self.param_groups[0]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with no_grad():
            first = self._evaluated(closure)
            loss, grad, tried = float(first), self._gradient(), 1
            state["func_evals"] += 1
            for number in range(1, group["max_iter"] + 1):
                if float(grad.abs().max()) <= group["tolerance_grad"]:
                    break
                direction = self._direction(grad)
                state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
                length = min(1.0, 1.0 / float(grad.abs().sum())) * group["lr"] if state["n_iter"] == 1 else group["lr"]
                slope = float(grad.dot(direction))
                state["t"] = length
                if slope > -group["tolerance_change"]:
                    break
                loss, grad, length, more = self._go(
                    closure, direction, length, loss, grad, slope, number < group["max_iter"]
                )
                state["t"], tried = length, tried + more
                state["func_evals"] += more
                small = float((direction * length).abs().max()) <= group["tolerance_change"]
                if tried >= group["max_eval"] or small or abs(loss - state["prev_loss"]) < group["tolerance_change"]:
                    break
        return first

    def _go(
        self, closure: Any, direction: Tensor, length: float, loss: float, grad: Tensor, slope: float, more: bool
    ) -> tuple[float, Tensor, float, int]:
        """Move along the direction; the loss, gradient and step length there, and the number of closure calls."""
        if self.param_groups[0]["line_search_fn"] is None:
            self._move(direction, length)
            if not more:
                return loss, grad, length, 0
            loss = float(self._evaluated(closure))
            return loss, self._gradient(), length, 1
        start = [param.clone() for param in self._params]

        def probe(at: float) -> Probe:
            self._move(direction, at)
            value = float(self._evaluated(closure))
            found = self._gradient()
            for param, old in zip(self._params, start, strict=True):
                param.copy_(old)
            return Probe(at, value, found, float(found.dot(direction)))

        best, tried = strong_wolfe(probe, Probe(0.0, loss, grad, slope), length, float(direction.abs().max()))
        self._move(direction, best.at)
        return best.value, best.grad, best.at, tried

    def _direction(self, grad: Tensor) -> Tensor:
        """The descent direction: the gradient times the inverse Hessian estimated from its latest changes."""
        state, group = self.state[self._params[0]], self.param_groups[0]
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            state.update(d=-grad, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            first: Tensor = state["d"]
            return first
        change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
        bend = float(change.dot(step))
        histories = state["old_dirs"], state["old_stps"], state["ro"]
        if bend > 1e-10:
            if len(state["ro"]) == group["history_size"]:
                for history in histories:
                    history.pop(0)
            for history, value in zip(histories, (change, step, 1.0 / bend), strict=True):
                history.append(value)
            state["H_diag"] = bend / float(change.dot(change))
        turned, shares = -grad, []
        for change, step, inverse in zip(*map(reversed, histories), strict=True):
            shares.append(float(step.dot(turned)) * inverse)
            turned.add_(change, alpha=-shares[-1])
        turned.mul_(state["H_diag"])
        for change, step, inverse, share in zip(*histories, reversed(shares), strict=True):
            turned.add_(step, alpha=share - float(change.dot(turned)) * inverse)
        state["d"] = turned
        return turned

    def _evaluated(self, closure: Callable[[], Any]) -> Any:
        with enable_grad():
            return closure()

    def _gradient(self) -> Tensor:
        parts = [param * 0 if param.grad is None else param.grad for param in self._params]
        flat: Tensor = call("cat", ([part.detach().reshape(-1) for part in parts],), {})
        return flat

    def _move(self, direction: Tensor, length: float) -> None:
        at = 0
        for param in self._params:
            count = param.numel()
            param.add_(direction[at : at + count].view_as(param), alpha=length)
            at += count
