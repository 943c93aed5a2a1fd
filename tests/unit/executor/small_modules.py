"""Modules whose plans have a kernel, several, groups in a loop, and nodes that no kernel holds."""

from __future__ import annotations

import engine.torch as torch
from engine.torch import nn


class Pointwise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * 2.0 + 1.0).softmax(-1)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.parts(x.float()) + x


class Branches(nn.Module):
    def forward(self, x: torch.Tensor, n: int = 3) -> torch.Tensor:
        return self.rounds(x, n)

    def rounds(self, x: torch.Tensor, n: int) -> torch.Tensor:
        for i in range(n):
            if bool(x.sum() > 0):
                x = torch.sigmoid(x) * i
            else:
                x = x.abs() + 1
        return x


class Left(nn.Module):
    """A sort is in no kernel, and `item` in none either."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (torch.sort(x * 2, -1)[0] + x.sum().item()).clamp(0, 1) * 3
