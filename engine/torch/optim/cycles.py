"""Cyclic learning rate schedules.  In: an optimizer.  Out: schedules; see `lr_scheduler`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.torch.optim.optimizer import Group, Optimizer
from engine.torch.optim.schedules import LRScheduler, each_group

_NO_MOMENTUM: Final = (
    "optimizer must support momentum or beta1 with `cycle_momentum` option enabled; write cycle_momentum=False"
)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing with restarts after `T_0` epochs, then after `T_mult` times as many, and so on."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, float(last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        lift = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * lift for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to a given one, which may be fractional."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            epoch = self.last_epoch + 1
        else:
            epoch = epoch or 0
            self.T_cur, self.T_i = self._place(epoch)
        self._step_count += 1
        self.last_epoch = math.floor(epoch)
        for group, rate in zip(self.groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.groups]

    def _place(self, epoch: float) -> tuple[float, int]:
        """The position of an epoch in its cycle, and the length of that cycle."""
        if epoch < self.T_0:
            return epoch, self.T_0
        if self.T_mult == 1:
            return epoch % self.T_0, self.T_0
        number = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        begun = self.T_0 * (self.T_mult**number - 1) / (self.T_mult - 1)
        return epoch - begun, self.T_0 * self.T_mult**number


class CyclicLR(LRScheduler):
    """Cycles from `base_lr` to `max_lr` and back, with momentum in the opposite direction.  Raises ValueError."""

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if scale_fn is None and mode not in _SCALES:
            raise ValueError(f"mode {mode!r} is invalid and scale_fn is None; modes are {', '.join(_SCALES)}")
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError(_NO_MOMENTUM)
        self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        self._scale_fn = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.max_lrs = each_group(max_lr, optimizer)
        lows, highs = each_group(base_momentum, optimizer), each_group(max_momentum, optimizer)
        self.base_momentums, self.max_momentums = lows, highs
        if last_epoch == -1:
            for group, rate, high in zip(optimizer.param_groups, each_group(base_lr, optimizer), highs, strict=True):
                group["lr"] = group["initial_lr"] = rate
                if cycle_momentum:
                    _set_momentum(group, high)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = each_group(base_lr, optimizer)

    def scale_fn(self, x: float) -> float:
        """The factor of the amplitude in a cycle (or at a step)."""
        return self._scale_fn(x) if self._scale_fn is not None else _SCALES[self.mode](x, self.gamma)

    def get_lr(self) -> list[float]:
        passed = self.last_epoch / self.total_size
        cycle = math.floor(1 + passed)
        way = 1.0 + passed - cycle
        height = way / self.step_ratio if way <= self.step_ratio else (way - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.groups, self.base_momentums, self.max_momentums, strict=True):
                _set_momentum(group, high - (high - low) * height)
        return [base + (top - base) * height for base, top in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule, without a custom scale function."""
        return {name: value for name, value in super().state_dict().items() if name != "_scale_fn"}


_SCALES: dict[str, Callable[[float, float], float]] = {
    "triangular": lambda x, gamma: 1.0,
    "triangular2": lambda x, gamma: 1 / (2.0 ** (x - 1)),
    "exp_range": lambda x, gamma: gamma**x,
}


class OneCycleLR(LRScheduler):
    """One cycle up to `max_lr` and down to nearly zero in `total_steps` steps, with momentum in the opposite direction.

    Raises ValueError without a number of steps, and by `step` after the last one.
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
            raise ValueError(_NO_MOMENTUM)
        self.total_steps = total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0)
        self._anneal_func_type, self.cycle_momentum = anneal_strategy, cycle_momentum
        self._phases = _one_cycle(self.total_steps, pct_start, three_phase)
        if last_epoch == -1:
            lows, highs = each_group(base_momentum, optimizer), each_group(max_momentum, optimizer)
            for group, top, low, high in zip(
                optimizer.param_groups, each_group(max_lr, optimizer), lows, highs, strict=True
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
        """The first and last step of the phase of this step, and the options of a group at its ends."""
        begin = 0.0
        for end, rates, momenta in self._phases[:-1]:
            if self.last_epoch <= end:
                return begin, end, rates, momenta
            begin = end
        return begin, *self._phases[-1]


_Phase = tuple[float, tuple[str, str], tuple[str, str]]
_UP, _DOWN = ("base_momentum", "max_momentum"), ("max_momentum", "base_momentum")


def _one_cycle(steps: int, share: float, three_phase: bool) -> list[_Phase]:
    """The phases: their last steps, and the option names of the rates and momenta at their ends."""
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
