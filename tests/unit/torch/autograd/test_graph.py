"""`torch.autograd.graph`: what nodes keep may be something else in the meantime."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch


def recorded(function: Any) -> tuple[Any, list[list[int]]]:
    """The gradient at (1, 2), and the shapes of what was packed."""
    shapes: list[list[int]] = []

    def pack(value: Any) -> Any:
        shapes.append(list(value.shape))
        return value.tolist()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, torch.tensor):
        result = function(x)
    result.backward()
    return x.grad, shapes


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * ctx.saved_tensors[0]


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: (x * x).sum(), 2),
        (lambda x: x.exp().sum(), 1),
        (lambda x: Exponential.apply(x).sum(), 1),
        (lambda x: torch.cat((x, x)).sigmoid().sum(), 1),
        (lambda x: torch.nn.functional.linear(x[None], torch.ones(3, 2, requires_grad=True)).sum(), 2),
    ],
)
@pytest.mark.usefixtures("without_machine_code")
def test_tensors_come_back_as_they_were_packed(function: Any, count: int) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    function(x).backward()
    gradient, shapes = recorded(function)
    assert torch.equal(gradient, x.grad)
    assert len(shapes) == count


def test_hooks_may_be_nested_and_end() -> None:
    x = torch.tensor([3.0], requires_grad=True)
    seen: list[str] = []
    outer = torch.autograd.graph.saved_tensors_hooks(lambda v: seen.append("outer") or v, lambda v: v)
    inner = torch.autograd.graph.saved_tensors_hooks(lambda v: seen.append("inner") or v, lambda v: v)
    with outer:
        with inner:
            one = x.exp()
        two = one.exp()
    three = two.exp()
    three.backward()
    assert seen == ["inner", "outer"]


def test_what_is_unpacked_is_a_tensor() -> None:
    x = torch.tensor([3.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: "lost"):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack hook must give a tensor"):
        y.backward()


def test_copies_do_not_mind_writes() -> None:
    x = torch.tensor([3.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x.exp()
    (y * 1).backward()
    assert x.grad.item() == pytest.approx(20.0855, rel=1e-4)


def test_nodes_can_be_called_with_gradients_of_their_results() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)
    node = (x * y).grad_fn
    first, second = node(torch.tensor([1.0, 2.0]))
    assert (first.tolist(), second.tolist()) == ([3.0, 6.0], [1.0, 2.0])
    assert [each.tolist() for each in node(torch.ones(2), None)] == [[3.0, 3.0], [1.0, 1.0]]
    assert node(None) == (None, None)
    assert node() == (None, None)
    assert x.neg().grad_fn(torch.ones(2)).tolist() == [-1.0, -1.0]
