"""Functions that take lists of tensors take tuples as well, and record their gradients on every path."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.aten.dispatch.calls import call, call_function

JOINERS: dict[str, Any] = {
    "cat": lambda parts: torch.cat(parts, 1),
    "concat by keyword": lambda parts: torch.concat(tensors=parts, dim=1),
    "stack": lambda parts: torch.stack(parts),
    "hstack": torch.hstack,
    "vstack": torch.vstack,
    "einsum": lambda parts: torch.einsum("ij,ij->i", *parts),
    "meshgrid": lambda parts: torch.meshgrid(parts[0].flatten(), parts[1].flatten(), indexing="ij")[0],
    "broadcast_tensors": lambda parts: torch.broadcast_tensors(*parts)[0] * 2,
    "block_diag": lambda parts: torch.block_diag(*parts),
    "by name": lambda parts: call("cat", (parts, 1), {}),
    "for programs": lambda parts: call_function("cat", (parts, 1), {}),
    "index": lambda parts: parts[0][(torch.tensor([0, 1]), torch.tensor([1, 0]))],
    "index_put": lambda parts: parts[0].index_put((torch.tensor([0]), torch.tensor([1])), parts[1][0, 0]),
}


def gradients(join: Any, kind: Any, *, changed: bool = False) -> list[Any]:
    """Those of two parts, given as a list or a tuple; `changed`: of results of recorded computations."""
    parts = [torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), torch.full((2, 2), 0.5, requires_grad=True)]
    given = kind(part * 2 for part in parts) if changed else kind(parts)
    result = join(given)
    assert result.requires_grad
    assert result.grad_fn is not None
    (result * torch.arange(1.0, result.numel() + 1).reshape(result.shape)).sum().backward()
    return [None if part.grad is None else part.grad.tolist() for part in parts]


@pytest.mark.parametrize("name", JOINERS)
@pytest.mark.parametrize("changed", [False, True])
def test_tuples_are_recorded_as_lists_are(name: str, changed: bool) -> None:
    join = JOINERS[name]
    wanted = gradients(join, list, changed=changed)
    assert wanted[0] is not None
    for _ in range(3):  # found out, planned, run from the plan
        assert gradients(join, tuple, changed=changed) == wanted
        assert gradients(join, list, changed=changed) == wanted


def test_only_the_second_of_a_tuple_requires_grad() -> None:
    for _ in range(3):
        weight = torch.ones(2, 1, requires_grad=True)
        joined = torch.cat((torch.zeros(2, 1), weight), 1)
        assert joined.requires_grad
        joined.sum().backward()
        assert weight.grad.tolist() == [[1.0], [1.0]]


def test_a_tuple_of_plain_tensors_first() -> None:
    """A plan that was made for tensors that do not require grad serves those that do."""
    plain = torch.zeros(2, 2), torch.ones(2, 2)
    for _ in range(3):
        assert not torch.cat(plain, 1).requires_grad
    assert torch.cat((plain[0], plain[1].requires_grad_()), 1).requires_grad


def test_a_size_and_a_named_tuple_are_sequences_too() -> None:
    x = torch.arange(4.0, requires_grad=True)
    assert x.reshape(torch.Size((2, 2))).requires_grad
    pair = torch.max(x.reshape(2, 2), 0)
    assert torch.cat(torch.sort(x)[:1]).requires_grad
    assert torch.stack((pair.values, pair.values)).requires_grad
