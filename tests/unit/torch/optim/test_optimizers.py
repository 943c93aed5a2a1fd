"""Optimizers; the numbers are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch

EXPECTED = {
    "SGD(p, lr=0.1)": [-0.7366356, -0.2104018, 0.2192469],
    "SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)": [-1.50217, -0.9402733, 1.360288],
    "SGD(p, lr=0.1, momentum=0.9, nesterov=True)": [-1.637102, -0.8393981, 1.386582],
    "SGD(p, lr=0.1, momentum=0.9, dampening=0.3)": [-1.468042, -0.7934669, 0.9244748],
    "Adam(p, lr=0.05)": [-0.2408034, -0.1453465, -0.1822472],
    "Adam(p, lr=0.05, amsgrad=True, weight_decay=0.1)": [-0.2405864, -0.1447271, -0.175901],
    "AdamW(p, lr=0.05)": [-0.2406387, -0.1455146, -0.1818864],
    "RMSprop(p, lr=0.01)": [-0.2569939, -0.1621595, -0.01483479],
    "RMSprop(p, lr=0.01, centered=True, momentum=0.5)": [-0.4993712, -0.4060877, 0.1368183],
}
"""Optimizer -> the weights after seven steps."""


def fitted(optimizer: str, steps: int = 7) -> tuple[Any, list[Any]]:
    x, y = torch.tensor([[0.5, -1.0], [2.0, 0.1], [0.3, 0.7]]), torch.tensor([1.0, -2.0, 0.5])
    params = [torch.tensor([0.1, 0.2], requires_grad=True), torch.zeros(1, requires_grad=True)]
    made = eval(f"torch.optim.{optimizer}", {"torch": torch, "p": params})
    for _ in range(steps):
        step(made, params, x, y)
    return made, params


def step(optimizer: Any, params: list[Any], x: Any, y: Any) -> None:
    optimizer.zero_grad()
    ((x @ params[0] + params[1] - y) ** 2).mean().backward()
    optimizer.step()


@pytest.mark.parametrize("optimizer", EXPECTED)
def test_weights_after_some_steps(optimizer: str) -> None:
    _, (weight, bias) = fitted(optimizer)
    assert [*weight.tolist(), *bias.tolist()] == pytest.approx(EXPECTED[optimizer], rel=1e-5)


def test_state_goes_on_in_another_optimizer() -> None:
    first, params = fitted("Adam(p, lr=0.05)", 3)
    copies = [p.detach().clone().requires_grad_() for p in params]
    second = torch.optim.Adam(copies, lr=0.5)
    second.load_state_dict(first.state_dict())
    assert second.param_groups[0]["lr"] == 0.05
    for optimizer, of in ((first, params), (second, copies)):
        step(optimizer, of, torch.ones(1, 2), torch.ones(1))
    assert copies[0].tolist() == params[0].tolist()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        second.load_state_dict({"state": {}, "param_groups": []})


def test_groups_have_options_of_their_own() -> None:
    slow, fast = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([{"params": [slow]}], lr=0.1)
    optimizer.add_param_group({"params": fast, "lr": 1.0})
    (slow + fast).sum().backward()
    optimizer.step()
    assert (slow.item(), fast.item()) == pytest.approx((-0.1, -1.0))
    optimizer.zero_grad(set_to_none=False)
    assert slow.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert slow.grad is None


def test_a_closure_computes_the_loss_with_gradients() -> None:
    x = torch.tensor([3.0], requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x**2).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert x.item() == 0.0


def test_what_cannot_be_optimized_is_refused() -> None:
    x = torch.ones(1, requires_grad=True)
    for params, error in (([], ValueError), (x, TypeError), ([1], TypeError), ([x * 2], ValueError)):
        with pytest.raises(error):
            torch.optim.SGD(params)
    with pytest.raises(ValueError, match="more than one"):
        torch.optim.SGD([x]).add_param_group({"params": [x]})
    with pytest.raises(ValueError, match="Invalid lr value: -1"):
        torch.optim.SGD([x], lr=-1.0)
    with pytest.raises(ValueError, match="Nesterov"):
        torch.optim.SGD([x], nesterov=True)
