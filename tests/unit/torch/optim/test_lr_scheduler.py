"""Schedules; the numbers are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch

EXPECTED = {
    "StepLR(o, 2, 0.5)": [0.1, 0.05, 0.05, 0.025, 0.025],
    "MultiStepLR(o, [2, 3, 3], 0.5)": [0.1, 0.05, 0.0125, 0.0125, 0.0125],
    "ExponentialLR(o, 0.9)": [0.09, 0.081, 0.0729, 0.06561, 0.059049],
    "CosineAnnealingLR(o, 3, 0.01)": [0.0775, 0.0325, 0.01, 0.0325, 0.0775],
    "LambdaLR(o, lambda epoch: 0.95**epoch)": [0.095, 0.09025, 0.0857375, 0.08145062, 0.07737809],
    "MultiplicativeLR(o, lambda epoch: 0.9)": [0.09, 0.081, 0.0729, 0.06561, 0.059049],
    "ConstantLR(o, 0.5, 3)": [0.05, 0.05, 0.1, 0.1, 0.1],
    "LinearLR(o, 0.25, 1.0, 4)": [0.04375, 0.0625, 0.08125, 0.1, 0.1],
    "OneCycleLR(o, 1.0, 6)": [0.9944154, 0.8117457, 0.4626371, 0.1334775, 4e-06],
    "OneCycleLR(o, 1.0, 6, anneal_strategy='linear', three_phase=True)": [
        0.76,
        0.03529459,
        0.02353106,
        0.01176753,
        4e-06,
    ],
    "SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3])": [0.01, 0.1, 0.1, 0.09, 0.081],
}
"""Schedule -> the rates of the first epochs, 0.1 being the rate before."""


def optimizer() -> Any:
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)


def made(schedule: str, o: Any) -> Any:
    return eval(f"s.{schedule}", {"s": torch.optim.lr_scheduler, "o": o})


@pytest.mark.parametrize("schedule", EXPECTED)
def test_rates(schedule: str) -> None:
    o = optimizer()
    scheduler, found = made(schedule, o), []
    for _ in EXPECTED[schedule]:
        o.step()
        scheduler.step()
        found.append(o.param_groups[0]["lr"])
    assert found == pytest.approx(EXPECTED[schedule])
    assert scheduler.get_last_lr() == [found[-1]]


def test_the_state_goes_on_in_another_schedule() -> None:
    o = optimizer()
    first = made("LambdaLR(o, lambda epoch: 0.5**epoch)", o)
    first.step()
    second = made("LambdaLR(o, lambda epoch: 0.5**epoch)", optimizer())
    second.load_state_dict(first.state_dict())
    second.step()
    assert second.get_last_lr() == pytest.approx([0.025])


def test_a_plateau_lowers_the_rate() -> None:
    o = optimizer()
    scheduler = made("ReduceLROnPlateau(o, patience=1, factor=0.5)", o)
    rates = []
    for loss in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9):
        scheduler.step(torch.tensor(loss))
        rates.append(o.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.1, 0.1, 0.05, 0.05, 0.025])


def test_one_cycle_ends() -> None:
    o = optimizer()
    scheduler = made("OneCycleLR(o, 1.0, 2)", o)
    scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        scheduler.step()
