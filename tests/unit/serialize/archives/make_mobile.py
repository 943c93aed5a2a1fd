"""Writes `mobile.ff` and `../files/mobile_weights.ff` with PyTorch 2.13, which only this script needs."""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn


class Shift(nn.Module):
    """Its `__setstate__` runs when it is loaded."""

    def __init__(self):
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


def offset(x: Tensor) -> Tensor:
    return x - torch.tensor([[1.0, 2.0, 3.0]])


class Model(nn.Module):
    last: int | None

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.offset = torch.jit.trace(offset, torch.ones(1, 3))
        self.shift = Shift()
        self.register_buffer("order", torch.tensor([1, 0]))
        self.limit, self.text, self.last = 4.0, "größer", None
        self.sizes = {"a": 1, "b": 2}
        self.pairs = [(1, True), (2, False)]

    def forward(self, x: Tensor, factor: float | None = None) -> tuple[Tensor, dict[str, Tensor], str]:
        y = self.shift(torch.relu(self.linear(self.offset(x))))
        rounds = 0
        while float(y.abs().sum()) < self.limit:
            if factor is not None:
                y = y * factor
            else:
                y = y * 2 + 1
            rounds += 1
            if rounds == 5:
                break
        found = {"min": y}
        for name, size in self.sizes.items():
            found[name] = y[:, :size].sum()
        if rounds > 5:
            raise ValueError(f"{rounds} rounds")
        self.last = rounds
        return y[:, self.order], found, f"{self.text} {rounds}"

    @torch.jit.export
    def count(self, n: int) -> int:
        total = self.pairs[0][0]
        for i in range(n):
            if i % 2 == 0:
                continue
            total += i
        return total


def main():
    torch.manual_seed(5)
    scripted = torch.jit.script(Model())
    torch.jit.save_jit_module_to_flatbuffer(scripted, "mobile.ff", _extra_files={"notes.txt": "hello"})
    weights = {"linear.weight": torch.ones(2, 3), "linear.bias": torch.tensor([1, 2], dtype=torch.int16)}
    torch._C._save_parameters(weights, "../files/mobile_weights.ff", True)
    x = torch.tensor([[1.0, 2.0, 4.0], [0.0, -1.0, 1.0]])
    print(scripted(x), scripted.last, scripted(x, 1.5), scripted.count(6))


if __name__ == "__main__":
    sys.exit(main() if Path.cwd() == Path(__file__).parent else "run it in its own folder")
