"""Schedules of learning rates.

In: an optimizer.  Out: an object whose `step`, called after each epoch (or batch), sets the optimizer's learning
rates.  A schedule says in `get_lr` how a rate follows from the one before it; `groups` and `base_lrs` are at hand.
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
    """The base of all schedules; a first step at once sets the first rates."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for index, group in enumerate(self.groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{index}] when resuming")
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
        """Go to the next epoch."""
        self._step_count += 1
        self.last_epoch += 1
        for group, rate in zip(self.groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr: list[float] = [group["lr"] for group in self.groups]

    def state_dict(self) -> dict[str, Any]:
        """All of the schedule but the optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        vars(self).update(state_dict)

    def _scaled(self, factor: float) -> list[float]:
        return [group["lr"] * factor for group in self.groups]


class LambdaLR(LRScheduler):
    """The first rate times what a function of the epoch gives; one function, or one for each group."""

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
        """As of any schedule, without the functions."""
        return {**super().state_dict(), "lr_lambdas": [None] * len(self.lr_lambdas)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})


class MultiplicativeLR(LambdaLR):
    """The rate times what a function of the epoch gives."""

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
    """The first rate times a factor that goes straight from `start_factor` to `end_factor` in `total_iters` epochs."""

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
        if self._step_count == 1:  # resumed: there is no rate before this one
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
            scheduler.last_epoch = -1
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


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to almost nothing within `total_steps` steps, momentum the other way round.

    Raises ValueError when the number of steps is not given, and by `step` after the last one.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if anneal_strategy not in _ANNEALING:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.total_steps = total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0)
        self._anneal_func_type, self.cycle_momentum = anneal_strategy, cycle_momentum
        self._phases = _one_cycle(self.total_steps, pct_start, three_phase)
        if last_epoch == -1:
            lows, highs = _each(base_momentum, optimizer), _each(max_momentum, optimizer)
            for group, top, low, high in zip(
                optimizer.param_groups, _each(max_lr, optimizer), lows, highs, strict=True
            ):
                start = top / div_factor
                group.update(initial_lr=start, lr=start, max_lr=top, min_lr=start / final_div_factor)
                if cycle_momentum:
                    group.update(base_momentum=low, max_momentum=high)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        begin, end, rates, momenta = self._phase()
        anneal, way = _ANNEALING[self._anneal_func_type], (self.last_epoch - begin) / (end - begin)
        if self.cycle_momentum:
            for group in self.groups:
                _set_momentum(group, anneal(group[momenta[0]], group[momenta[1]], way))
        return [anneal(group[rates[0]], group[rates[1]], way) for group in self.groups]

    def _phase(self) -> tuple[float, float, tuple[str, str], tuple[str, str]]:
        """Where the phase of this step begins and ends, and between which options of a group it leads."""
        begin = 0.0
        for end, rates, momenta in self._phases[:-1]:
            if self.last_epoch <= end:
                return begin, end, rates, momenta
            begin = end
        return begin, *self._phases[-1]


_Phase = tuple[float, tuple[str, str], tuple[str, str]]
_UP, _DOWN = ("base_momentum", "max_momentum"), ("max_momentum", "base_momentum")


def _one_cycle(steps: int, share: float, three_phase: bool) -> list[_Phase]:
    """The phases: their last steps, and the names of the rates and momenta at their ends."""
    rise: _Phase = (share * steps - 1, ("initial_lr", "max_lr"), _DOWN)
    if not three_phase:
        return [rise, (steps - 1, ("max_lr", "min_lr"), _UP)]
    fall: _Phase = (2 * share * steps - 2, ("max_lr", "initial_lr"), _UP)
    return [rise, fall, (steps - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))]


def _cosine(start: float, end: float, way: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * way) + 1)


def _line(start: float, end: float, way: float) -> float:
    return (end - start) * way + start


_ANNEALING = {"cos": _cosine, "linear": _line}


def _set_momentum(group: Group, momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _each(value: float | Sequence[float], optimizer: Optimizer) -> list[float]:
    """One value for each group.  Raises ValueError when there are others than that."""
    count = len(optimizer.param_groups)
    if isinstance(value, (int, float)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"expected {count} values, one for each parameter group, but got {len(value)}")
    return list(value)


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` when what `step` is told has not become better for more than `patience` epochs."""

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
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = _each(min_lr, optimizer)
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in self.groups]
        self.reset()

    def reset(self) -> None:
        """Begin anew, with the rates as they are."""
        self.best = math.inf if self.mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: Any = None) -> None:
        """Look at the epoch's result.  Raises TypeError when there is none."""
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
        """Is the value better than the best by more than the threshold?"""
        sign = -1 if self.mode == "min" else 1
        bar = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return value < bar if self.mode == "min" else value > bar

    def _reduce(self) -> None:
        for group, least in zip(self.groups, self.min_lrs, strict=True):
            new = max(group["lr"] * self.factor, least)
            if group["lr"] - new > self.eps:
                group["lr"] = new
