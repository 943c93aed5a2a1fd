"""Averages of parameters over training, and the schedule that goes with them.

In: a module that is being trained.  Out: a copy of it whose parameters are averages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from engine.aten.autograd import no_grad
from engine.aten.values.tensor import Tensor
from engine.torch.namespace.creation import tensor
from engine.torch.nn.modules.batchnorm import _BatchNorm
from engine.torch.nn.modules.module import Module
from engine.torch.optim.optimizer import Optimizer
from engine.torch.optim.schedules import LRScheduler, each_group

Average = Callable[[Tensor, Tensor, Any], Any]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """A function that updates an exponential moving average with this `decay`.  Raises ValueError."""
    _check(decay)
    return lambda average, new, count: decay * average + (1 - decay) * new


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """A function that updates exponential moving averages of all parameters at once."""
    _check(decay)

    def update(averages: Sequence[Tensor], new: Sequence[Tensor], count: Any) -> None:
        for average, value in zip(averages, new, strict=True):
            average.lerp_(value, 1 - decay) if average.is_floating_point() else average.copy_(value)

    return update


def get_swa_avg_fn() -> Average:
    """A function that updates the mean of all values."""
    return lambda average, new, count: average + (new - average) / (count + 1)


def get_swa_multi_avg_fn() -> Averages:
    """A function that updates the means of all parameters at once."""

    def update(averages: Sequence[Tensor], new: Sequence[Tensor], count: Any) -> None:
        for average, value in zip(averages, new, strict=True):
            average.add_((value - average) / (count + 1))

    return update


def _check(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


class AveragedModel(Module):
    """A copy of a module; `update_parameters(module)` adds the module's values to the averages."""

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Average | None = None, multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the module's present values to the averages."""
        own, new = (_values(each, self.use_buffers) for each in (self.module, model))
        with no_grad():
            if not int(self.n_averaged):
                for average, value in zip(own, new, strict=True):
                    average.copy_(value)
            elif self.avg_fn is not None:
                for average, value in zip(own, new, strict=True):
                    average.copy_(self.avg_fn(average, value, self.n_averaged))
            else:
                (self.multi_avg_fn or get_swa_multi_avg_fn())(own, new, self.n_averaged)
            if not self.use_buffers:
                for kept, value in zip(self.module.buffers(), model.buffers(), strict=True):
                    kept.copy_(value)
        self.n_averaged += 1


def _values(module: Module, buffers: bool) -> list[Tensor]:
    return [each.detach() for each in (*module.parameters(), *(module.buffers() if buffers else ()))]


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the statistics of batch normalization in the module over all batches."""
    momenta = {each: each.momentum for each in model.modules() if isinstance(each, _BatchNorm)}
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None
    for batch in loader:
        model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Anneals the rate to `swa_lr` within `anneal_epochs` epochs."""

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | Sequence[float], anneal_epochs: int = 10,
        anneal_strategy: str = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        for group, rate in zip(optimizer.param_groups, each_group(swa_lr, optimizer), strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        way = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return way if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * way)) / 2

    def get_lr(self) -> list[float]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(max(0, step - 1))
        share = self._share(max(0, step))
        return [self._next(group, before, share) for group in self.groups]

    @staticmethod
    def _next(group: dict[str, Any], before: float, share: float) -> float:
        start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
        return float(group["swa_lr"] * share + start * (1 - share))
