"""Compiled modules: a scripted decision, a cell that is traced around it, a loop that is scripted around that."""

from __future__ import annotations

import io
from typing import Any

import engine.torch as torch

nn, Tensor = torch.nn, torch.Tensor


class Gate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return -x


class Cell(nn.Module):
    def __init__(self, gate: Any) -> None:
        super().__init__()
        self.gate, self.linear = gate, nn.Linear(3, 3)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.tanh(self.gate(self.linear(x)) + state)
        return state, state


class Loop(nn.Module):
    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, xs: Tensor) -> Tensor:
        state, y = torch.zeros(2, 3), torch.zeros(2, 3)
        for i in range(xs.size(0)):
            y, state = self.cell(xs[i], state)
        return y


def main() -> dict[str, Any]:
    torch.manual_seed(23)
    example = torch.rand(2, 3)
    cell = torch.jit.trace(Cell(torch.jit.script(Gate())), (example, example))
    loop = torch.jit.script(Loop(cell))
    steps = torch.rand(4, 2, 3) - 0.5
    optimizer = torch.optim.SGD(loop.parameters(), lr=0.02)
    losses = []
    for _ in range(5):
        loss = (loop(steps) - 0.3).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    file = io.BytesIO()
    torch.jit.save(loop, file)
    file.seek(0)
    loaded = torch.jit.load(file)
    return {
        "losses": losses, "same": torch.equal(loaded(steps), loop(steps)), "code": loop.code, "gate": cell.gate.code,
        "names": [name for name, _ in loaded.named_parameters()],
    }  # fmt: skip
