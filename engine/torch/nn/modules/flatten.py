"""Flatten.  In: `(N, *)`.  Out: `(N, product of the rest)`, unless other dimensions are asked for."""

from __future__ import annotations

from engine.aten.tensor import Tensor
from engine.torch.nn.modules.module import Module


class Flatten(Module):
    """The dimensions from `start_dim` to `end_dim` as one."""

    __constants__ = ("start_dim", "end_dim")
    start_dim: int
    end_dim: int

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
