"""The rarer optimizers, averages of parameters, cyclic schedules: values that PyTorch gives."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.torch import nn, optim


def after_steps(make: Any, steps: int = 5) -> list[float]:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = make([x])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x * torch.tensor([1.0, 3.0])).pow(2).sum()
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return x.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Adagrad", {"lr": 0.5}), ("Adadelta", {"lr": 50.0}), ("Adamax", {"lr": 0.2}), ("NAdam", {"lr": 0.2}),
        ("RAdam", {"lr": 0.01}), ("Rprop", {}), ("ASGD", {"lr": 0.01}), ("LBFGS", {}),
        ("LBFGS", {"line_search_fn": "strong_wolfe"}), ("Adam", {"lr": 0.2, "foreach": False}),
    ],
)  # fmt: skip
def test_the_loss_falls(name: str, options: dict[str, Any]) -> None:
    first, last = (after_steps(lambda p: getattr(optim, name)(p, **options), steps) for steps in (1, 12))
    loss = [one**2 + 9 * two**2 for one, two in ([1.0, -2.0], first, last)]
    assert loss[0] > loss[1] >= loss[2]


def test_an_unknown_wish_is_refused() -> None:
    with pytest.raises(TypeError, match="'forech'"):
        optim.Adam([torch.ones(1, requires_grad=True)], forech=True)


def test_hooks_around_steps() -> None:
    x, seen = torch.ones(1, requires_grad=True), []
    optimizer = optim.SGD([x], lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert seen == ["before", "after", "before"]


def test_schedules_that_go_round() -> None:
    optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    restarts = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2)
    rates = []
    for _ in range(6):
        rates.append(round(restarts.get_last_lr()[0], 4))
        restarts.step()
    assert rates == [1.0, 0.5, 1.0, 0.8536, 0.5, 0.1464]
    cyclic = optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2)
    rates = []
    for _ in range(5):
        rates.append(round(optimizer.param_groups[0]["lr"], 4))
        cyclic.step()
    assert rates == [0.1, 0.3, 0.5, 0.3, 0.1]
    assert optimizer.param_groups[0]["momentum"] == pytest.approx(0.85)


def test_one_schedule_after_another_starts_from_the_first_rate() -> None:
    optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    first = optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=4)
    second = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    both = optim.lr_scheduler.SequentialLR(optimizer, [first, second], [2])
    rates = []
    for _ in range(4):
        rates.append(round(both.get_last_lr()[0], 4))
        both.step()
    assert rates == [0.1, 0.325, 1.0, 0.5]


def test_averages_of_parameters() -> None:
    layer = nn.Linear(1, 1, bias=False)
    mean = optim.swa_utils.AveragedModel(layer)
    decaying = optim.swa_utils.AveragedModel(layer, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.5))
    for value in (1.0, 3.0, 8.0):
        layer.weight.data.fill_(value)
        mean.update_parameters(layer)
        decaying.update_parameters(layer)
    assert (mean.module.weight.item(), decaying.module.weight.item()) == (4.0, 5.0)
    norm = nn.Sequential(nn.BatchNorm1d(1))
    optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]])], norm)
    assert norm[0].running_mean.item() == 2.0
    assert norm[0].momentum == 0.1
