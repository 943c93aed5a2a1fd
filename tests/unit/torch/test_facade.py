"""The façade has the names that existing programs use, and answers others with the nearest."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

import engine.torch as torch
from tests.unit.torch.facade_names import GROUPS, MISSING

NAMES = [
    f"{group}.{name}" if group and group != "others" else name
    for group, names in GROUPS.items()
    for name in names.split()
]


def found(name: str) -> bool:
    value: Any = torch
    for part in name.split("."):
        if part == "Tensor" and name != "Tensor":
            value = torch.ones(2, 2)
            continue
        try:
            value = getattr(value, part)
        except AttributeError:
            return False
    return True


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MISSING])
def test_name_is_there(name: str) -> None:
    assert found(name)


@pytest.mark.parametrize("name", MISSING)
def test_missing_name_is_still_missing(name: str) -> None:
    assert not found(name), "it is there now: take it off the list"


def test_nearly_all_names_are_there() -> None:
    assert len(MISSING) <= 0.05 * len(NAMES)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("optimm", "optim"), ("ranndn", "randn"), ("nn.functional.reluu", "relu"), ("linalg.nrom", "norm")],
)
def test_unknown_names_are_answered_with_the_nearest(name: str, nearest: str) -> None:
    *path, last = name.split(".")
    module = reduce(getattr, path, torch)
    with pytest.raises(AttributeError, match=f"did you mean '{nearest}'"):
        getattr(module, last)


def test_losses_of_the_namespace_reduce_nothing_unless_they_are_told() -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    assert torch.hinge_embedding_loss(x, y).tolist() == [1.0, 0.0]
    assert torch.hinge_embedding_loss(x, y, reduction=1).item() == 0.5
    assert torch.margin_ranking_loss(x, x, y, 1.0).shape == (2,)
    assert torch.kl_div(x, x, 1).shape == ()
    assert torch.nn.functional.kl_div(x, x, reduction="batchmean").shape == ()
    assert torch.ops.aten.hinge_embedding_loss(x, y).item() == 0.5
    program = torch.jit.CompilationUnit("def f(x, y):\n    return torch.hinge_embedding_loss(x, y)\n")
    assert program.f(x, y).item() == 0.5
