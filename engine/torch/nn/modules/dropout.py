"""Dropout.  In: any shape.  Out: the same shape; in training with elements set to zero at random."""

from __future__ import annotations

from engine.aten.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.module import Module


class Dropout(Module):
    """Each element becomes zero with probability `p`, the others grow by `1 / (1 - p)`.  Raises ValueError."""

    __constants__ = ("p", "inplace")
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
