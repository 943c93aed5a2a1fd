"""Writes the archives of this folder with PyTorch 2.13; run it in a folder of its own, since they keep its path."""

from enum import Enum
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn


class Point(NamedTuple):
    x: Tensor
    label: str


class Color(Enum):
    RED = "r"
    GREEN = "g"


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.count = start

    def add(self, n: int) -> int:
        self.count += n
        return self.count


@torch.jit.interface
class Shape(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Scale(nn.Module):
    def __init__(self, by: int):
        super().__init__()
        self.by = by

    def forward(self, x: Tensor) -> Tensor:
        return x * self.by


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 3

    def forward(self, x: Tensor) -> Tensor:
        return x + self.n

    @torch.jit.export
    def __getstate__(self) -> tuple[int, bool]:
        return (self.n * 10, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[int, bool]) -> None:
        self.n = state[0] // 10
        self.training = state[1]


def helper(x: Tensor, by: float = 2.0) -> Tensor:
    return x * by


class Everything(nn.Module):
    maybe: int | None
    nested: dict[int, list[str]]
    by_name: dict[str, Tensor]
    either: int | str
    empty: list[int]
    origin: Point
    shape: Shape
    scale: Final[float]
    flags: Final[list[bool]]

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.register_buffer("row", self.weight.detach()[1])
        self.register_buffer("scratch", torch.zeros(2, dtype=torch.int8), persistent=False)
        self.i, self.f, self.s, self.b, self.c = 7, 2.5, "snow ☃\n", True, 1.5 - 2j
        self.big, self.neg = 2**40, -3
        self.maybe, self.either, self.empty = None, "text", []
        self.ints, self.floats, self.bools, self.strs = [1, 2], [0.5], [True, False], ["a", "", "a"]
        self.tensors = [torch.arange(3), torch.ones(2, 2).t()]
        self.by_name = {"x": torch.ones(2)}
        self.nested = {1: ["one"], 2: []}
        self.pair = (1, (0.25, "deep"))
        self.device = torch.device("cpu")
        self.color = Color.GREEN
        self.origin = Point(torch.tensor([1.0, -1.0]), "origin")
        self.shape = torch.jit.script(Scale(3))
        self.layers = nn.ModuleList([Scale(4), Packed()])
        self.scale = 0.5
        self.flags = [True, False]

    def forward(self, x: Tensor, n: int = 1) -> tuple[Tensor, int, str]:
        counter = Counter(self.i)
        for layer in self.layers:
            x = layer(x)
        x = helper(self.shape(x) + self.row) * self.scale
        maybe = self.maybe
        if maybe is not None:
            x = x + maybe
        for k in range(n):
            counter.add(k)
        if n > 3:
            raise ValueError("too many")
        return x + self.origin.x[0], counter.count, self.color.value + self.s


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.arange(3.0)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.w


if __name__ == "__main__":
    torch.manual_seed(0)
    everything = torch.jit.script(Everything().eval())
    torch.jit.save(everything, "everything.pt", _extra_files={"note.txt": "hello"})
    torch.jit.save(torch.jit.script(helper), "function.pt")
    torch.jit.save(torch.jit.freeze(torch.jit.script(Constants().eval())), "constants.pt")
