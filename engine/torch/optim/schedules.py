"""Learning rate schedules.

In: an optimizer.  Out: an object whose `step`, called after each epoch (or batch), sets the optimizer's learning
rates.  A schedule computes in `get_lr` each rate from the one before it, from `groups` and `base_lrs`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from engine.torch.optim.optimizer import Group, Optimizer

Factor = Callable[[int], float]


class LRScheduler:
    """The base of all schedules; the constructor takes a first step, which sets the first rates."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for index, group in enumerate(self.groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming; load the optimizer's "
                    "state dict first, or begin anew with last_epoch=-1"
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in self.groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self.step()

    @property
    def groups(self) -> list[Group]:
        return self.optimizer.param_groups

    def get_lr(self) -> Sequence[float]:
        """The next rates, one for each group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        return self._last_lr

    def step(self) -> None:
        """Advance to the next epoch."""
        self._step_count += 1
        self.last_epoch += 1
        for group, rate in zip(self.groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr: list[float] = [group["lr"] for group in self.groups]

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule, without the optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        vars(self).update(state_dict)

    def begin_anew(self) -> None:
        """Restart: the next step is the first, from the initial rates."""
        self.last_epoch = -1
        for group, rate in zip(self.groups, self.base_lrs, strict=True):
            group["lr"] = rate

    def _scaled(self, factor: float) -> list[float]:
        return [group["lr"] * factor for group in self.groups]


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch; one function, or one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1) -> None:
        given = [lr_lambda] * len(optimizer.param_groups) if callable(lr_lambda) else list(lr_lambda)
        if len(given) != len(optimizer.param_groups):
            raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(given)}")
        self.lr_lambdas = given
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * factor(self.last_epoch) for base, factor in pairs]

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule, without its functions."""
        return {**super().state_dict(), "lr_lambdas": [None] * len(self.lr_lambdas)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})


class MultiplicativeLR(LambdaLR):
    """The rate times a function of the epoch, at every epoch."""

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(1.0)
        pairs = zip(self.groups, self.lr_lambdas, strict=True)
        return [group["lr"] * factor(self.last_epoch) for group, factor in pairs]


class StepLR(LRScheduler):
    """The rate times `gamma` after every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma if due else 1.0)


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each of the milestones."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])


class ExponentialLR(LRScheduler):
    """The rate times `gamma` after every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(1.0 if self.last_epoch == 0 else self.gamma)


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first `total_iters` epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factors = {0: self.factor, self.total_iters: 1.0 / self.factor}
        return self._scaled(factors.get(self.last_epoch, 1.0))


class LinearLR(LRScheduler):
    """The first rate times a factor, linear from `start_factor` to `end_factor` in `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self.last_epoch > self.total_iters:
            return self._scaled(1.0)
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1.0 + rise / before)


class PolynomialLR(LRScheduler):
    """From the first rate to zero in `total_iters` epochs, by a power of the remaining fraction."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._scaled(1.0)
        left, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._scaled((left / before) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """From the first rate to `eta_min` in `T_max` epochs along a cosine, and back."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(1.0)
        return [self._next(group["lr"], base) for group, base in zip(self.groups, self.base_lrs, strict=True)]

    def _next(self, rate: float, base: float) -> float:
        epoch, low, period = self.last_epoch, self.eta_min, self.T_max
        if self._step_count == 1:  # resumed: no rate precedes this one
            return low + (base - low) * _lift(epoch, period) / 2
        if (epoch - 1 - period) % (2 * period) == 0:
            return rate + (base - low) * (1 - math.cos(math.pi / period)) / 2
        return _lift(epoch, period) / _lift(epoch - 1, period) * (rate - low) + low


def _lift(epoch: int, period: int) -> float:
    return 1 + math.cos(math.pi * epoch / period)


class SequentialLR(LRScheduler):
    """One schedule after another; each begins at its milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) != len(milestones) + 1:
            raise ValueError("Sequential Schedulers expects number of schedulers to be one more than of milestones")
        self.optimizer, self._schedulers, self._milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in self.groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._begin(self._schedulers[0])

    def step(self) -> None:
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number and self._milestones[number - 1] == self.last_epoch:
            scheduler.begin_anew()
        self._begin(scheduler)

    def _begin(self, scheduler: LRScheduler) -> None:
        scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})


def each_group(value: float | Sequence[float], optimizer: Optimizer) -> list[float]:
    """One value for each group.  Raises ValueError for another number of values."""
    count = len(optimizer.param_groups)
    if isinstance(value, (int, float)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"expected {count} values, one for each parameter group, but got {len(value)}")
    return list(value)


class ChainedScheduler(LRScheduler):
    """Several schedules combined: each changes the rate of the one before it."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._schedulers = list(schedulers)
        if not self._schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained")
        self.optimizer = self._schedulers[0].optimizer if optimizer is None else optimizer
        if any(each.optimizer is not self.optimizer for each in self._schedulers):
            raise ValueError("ChainedScheduler expects all schedulers to belong to the same optimizer")
        self._last_lr = self._schedulers[-1].get_last_lr()

    def step(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [group["lr"] for group in self.groups]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` when the metric given to `step` has not improved for more than `patience` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, but is {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown! Write min or max")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown! Write rel or abs")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = each_group(min_lr, optimizer)
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in self.groups]
        self.reset()

    def reset(self) -> None:
        """Restart with the present rates."""
        self.best = math.inf if self.mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: Any = None) -> None:
        """Process the metric of an epoch.  Raises TypeError without one."""
        if metrics is None:
            raise TypeError("step() missing 1 required positional argument: 'metrics'")
        value = float(metrics)
        self.last_epoch += 1
        better = self.is_better(value, self.best)
        self.best = value if better else self.best
        self.num_bad_epochs = 0 if better else self.num_bad_epochs + 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.groups]

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def is_better(self, value: float, best: float) -> bool:
        """True if the value is better than the best by more than the threshold."""
        sign = -1 if self.mode == "min" else 1
        bar = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return value < bar if self.mode == "min" else value > bar

    def _reduce(self) -> None:
        for group, least in zip(self.groups, self.min_lrs, strict=True):
            new = max(group["lr"] * self.factor, least)
            if group["lr"] - new > self.eps:
                group["lr"] = new
