"""Parts of modules as modules of their own."""

from __future__ import annotations

import io
from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import ArgumentError
from engine.torch import nn


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = self.inner(x)
        return half + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.mid = Twice()
        self.last = nn.ReLU()
        self.unused = nn.Linear(300, 300)
        self.count = 0

    def forward(self, x: torch.Tensor, shift: int = 1) -> torch.Tensor:
        y = self.first(x)
        if y.sum() > 1000:
            y = self.last(y)
        z = self.mid(y + shift)
        z.mul_(2)
        self.count += 1
        return self.last(self.last(z))


def loaded(module: nn.Module) -> Any:
    return reloaded(torch.jit.script(module))


def reloaded(module: Any) -> Any:
    file = io.BytesIO()
    module.save(file)
    return torch.jit.load(io.BytesIO(file.getvalue()))


@pytest.fixture
def net() -> Any:
    torch.manual_seed(3)
    return loaded(Net())


X = torch.tensor([[1.0, -2.0], [0.5, 4.0]])


def test_from_the_arguments(net: Any) -> None:
    head = net.cut(outputs=["first"])
    assert [name for name, _ in head.named_parameters()] == ["first.weight", "first.bias"]
    assert torch.equal(head(X), net.run_until("first", X))
    assert [argument.name for argument in head.forward.schema.arguments] == ["self", "x"]


def test_between_two_places(net: Any) -> None:
    middle = net.cut(inputs=["first", ":shift"], outputs=["mid.inner", "mid"])
    inner, whole = reloaded(middle)(net.run_until("first", X), 1)
    assert torch.equal(inner, net.run_until("mid.inner", X))
    assert torch.equal(whole, net.run_until("mid", X))
    assert not any(name.startswith("unused") for name, _ in middle.named_parameters())


def test_weights_are_shared(net: Any) -> None:
    head = net.cut(outputs=["first"])
    with torch.no_grad():
        net.first.bias.fill_(7.0)
    assert next(value for name, value in head.named_parameters() if name == "first.bias").tolist() == [7.0, 7.0]


def test_variables_writes_and_arguments(net: Any) -> None:
    part = net.cut(inputs=["mid"], outputs=[":z"])
    assert part(X).tolist() == X.tolist()
    file = io.BytesIO()
    part.save(file)
    assert b"first" not in file.getvalue()


def test_what_is_written_in_between_is_written() -> None:
    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x + 1
            y.mul_(3)
            y[0] = 5.0
            return self.act(y)

    cut = torch.jit.script(Writes()).cut(outputs=["act"])
    assert cut(torch.tensor([1.0, 2.0])).tolist() == [5.0, 9.0]


def test_attributes_that_are_written_go_along_with_their_module() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = 0
            self.act = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.n = self.n + 1
            return self.act(x + self.n)

    cut = reloaded(torch.jit.script(Counts()).cut(outputs=["act"]))
    assert [cut(torch.zeros(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0]


def test_refusals(net: Any) -> None:
    with pytest.raises(ArgumentError, match="also needs the arguments ':shift'"):
        net.cut(inputs=["first"], outputs=["mid"])
    with pytest.raises(ArgumentError, match="'last' is called 2 times"):
        net.cut(outputs=["last"])
    with pytest.raises(ArgumentError, match=r"no place 'frist'.*\n.*did you mean 'first'"):
        net.cut(outputs=["frist"])
    with pytest.raises(ArgumentError, match="say where the cut ends"):
        net.cut()
