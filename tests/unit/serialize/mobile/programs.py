"""Programs that between them need each instruction of bytecode, with arguments: `CASES`, by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import engine.torch as torch
from engine.torch import nn

Tensor = torch.Tensor


class Point(NamedTuple):
    x: Tensor
    n: int


class Flow(nn.Module):
    def forward(self, x: Tensor, n: int = 3):
        total = 0
        x.sum()
        for i in range(n):
            if i == 1:
                continue
            for j in range(i):
                if j > 2:
                    break
                total += j
                x = x + i
        while total > 0:
            total -= 2
            if total % 3 == 0:
                x = -x
        if n > 100:
            raise ValueError(f"{n} is too many")
        return x, total


class Containers(nn.Module):
    def forward(self, x: Tensor, names: list[str], more: dict[str, Tensor] | None = None):
        pair = (x, x.dim())
        first, rank = pair
        triple = (first, rank, "a")
        sizes = [each + 1 for each in x.shape]
        a, b = torch.max(x, 1)
        _, second = torch.sort(x)
        found = {"a": x, "b": a}
        if more is not None:
            found.update(more)
        c, d = [x, a]
        empty: list[Tensor] = []
        numbers: list[list[float]] = x.tolist()
        point = Point(x, 2)
        text = f"{rank} of {len(names)}"
        return triple[1:], sizes, found["a"], c, d, empty, numbers, point.x + point.n, text, second, b, not x.is_cuda


class Types(nn.Module):
    def forward(self, x: int | str | Tensor):
        if isinstance(x, int):
            return x + 1
        if isinstance(x, str):
            return len(x)
        return int(x.sum())


class Options(nn.Module):
    def forward(self, x: Tensor | None, y: Tensor):
        z: Tensor | None = None
        if x is None:
            z = y
        if z is not None:
            return z + 1
        assert x is not None
        return x.to(y.device, y.dtype)


class State(nn.Module):
    last: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.last, self.count, self.kind = None, 0, 2
        self.words, self.table, self.flags = ["ä", "b"], {"k": 1.5}, [True]
        self.shape, self.place, self.z = (1, ("n", 2.0)), torch.device("cpu"), 1 + 2j
        self.register_buffer("order", torch.tensor([1, 0]))

    def forward(self, x: Tensor):
        self.count += 1
        if self.kind == 2:
            self.last = x[self.order]
        return self.last, self.count, self.words[0], self.table["k"], self.shape[1][1], self.flags

    @torch.jit.export
    def named(self, x: Tensor, factor: float = 2.5, name: str | None = None):
        return x * factor if name is None else x


class Filled(nn.Module):
    """Its `__setstate__` runs when it is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.by = torch.tensor([0.5, -0.5])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.by

    @torch.jit.export
    def __getstate__(self) -> tuple[Tensor, bool]:
        return (self.by * 2, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[Tensor, bool]) -> None:
        self.by = state[0] / 2
        self.training = state[1]


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.linear = Filled(), nn.Linear(2, 2)

    def forward(self, x: Tensor):
        return self.inner(self.linear(x))


class Writes(nn.Module):
    """Operators that write, and views of what is written; an operator with outputs to write to."""

    def forward(self, x: Tensor):
        y = x.clone()
        y[0].add_(1)
        z = torch.empty(2)
        torch.add(x[0], x[1], out=z)
        words = ["a"]
        words.append("b")
        return y.relu_(), z, words, y.view(-1)[1:3:1], x.dtype, torch.zeros_like(x, dtype=torch.float64)


class Points(nn.Module):
    def forward(self, x: Tensor, point: Point, more: tuple[Tensor, int, str]):
        made = [Point(x + point.x, point.n), point]
        return made[0].x, made[1], len(made), more[1:]


class Recurrent(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor):
        y, _state = self.layer(x)
        return y


def conv() -> Any:
    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3)).eval()


X = torch.arange(4.0).reshape(2, 2) / 3
IMAGES = (torch.arange(32.0) ** 2 % 11).reshape(2, 1, 4, 4)
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "flow": (Flow, (X, 5)),
    "containers": (Containers, (X, ["u", "v"], {"z": X})),
    "types": (Types, ("abc",)),
    "options": (Options, (None, X)),
    "state": (State, (X,)),
    "filled": (Holds, (X,)),
    "writes": (Writes, (X,)),
    "convolution": (conv, (IMAGES,)),
    "gru": (lambda: Recurrent(nn.GRU(2, 3)), (X[None],)),
    "lstm": (lambda: Recurrent(nn.LSTM(2, 3, 2)), (X[None],)),
    "points": (Points, (X, Point(X, 3), (X, 1, "a"))),
    "attention": (lambda: nn.TransformerEncoderLayer(4, 2, 8).eval(), (torch.ones(2, 3, 4) / 3,)),
}


def program(name: str) -> tuple[Any, tuple[Any, ...]]:
    """The compiled program, the same each time, and its arguments."""
    make, args = CASES[name]
    torch.manual_seed(3)
    return torch.jit.script(make()), args
