"""Similarity and distance of vectors.  In: two batches of vectors.  Out: a number for each pair."""

from __future__ import annotations

from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.configured import configured
from engine.torch.nn.modules.module import Module


@configured
class CosineSimilarity(Module):
    """The cosine of the angle between the vectors along `dim`."""

    dim: int = 1
    eps: float = 1e-8

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)

    def extra_repr(self) -> str:
        return ""


class PairwiseDistance(Module):
    """The norm of the vectors' difference, along the last dimension."""

    __constants__ = ("norm", "eps", "keepdim")
    norm: float
    eps: float
    keepdim: bool

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
