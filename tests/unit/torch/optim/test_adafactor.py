"""Adafactor makes the steps that PyTorch's makes, and remembers a row and a column of a matrix."""

from __future__ import annotations

import pytest

import engine.torch as torch


def test_steps() -> None:
    weight = torch.tensor([[0.5, -1.0], [2.0, 0.1], [0.3, 0.7]], requires_grad=True)
    bias = torch.tensor([0.1, 0.2], requires_grad=True)
    optimizer = torch.optim.Adafactor([weight, bias], lr=0.1, weight_decay=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        ((weight @ torch.tensor([1.0, 2.0])).pow(2).sum() + bias.pow(2).sum()).backward()
        optimizer.step()
    wanted = [0.8951, -0.5959, 1.5416, -0.3471, -0.1184, 0.2792]
    assert weight.flatten().tolist() == pytest.approx(wanted, abs=2e-4)
    assert bias.tolist() == pytest.approx([0.0357, 0.1283], abs=2e-4)
    assert sorted(optimizer.state[weight]) == ["col_var", "row_var", "step"]
    assert sorted(optimizer.state[bias]) == ["step", "variance"]


@pytest.mark.parametrize("options", [{"lr": -1.0}, {"beta2_decay": 0.5}, {"d": 0.5}, {"eps": (None, -1.0)}])
def test_options_that_cannot_be(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        torch.optim.Adafactor([torch.ones(1)], **options)
