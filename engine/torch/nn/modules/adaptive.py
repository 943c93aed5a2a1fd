"""Adaptive softmax: for many classes, the rare ones are in clusters that are computed only when needed.

In: `(N, in_features)`, and targets `(N,)`.  Out: the targets' log-probabilities and the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.container import ModuleList, Sequential
from engine.torch.nn.modules.linear import Linear
from engine.torch.nn.modules.module import Module


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and the negated mean of them."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes sorted by frequency: those before the first cutoff have their own scores in the head, each later cluster
    has one score there and a layer that is smaller the rarer its classes.  Raises ValueError.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        if not ends or ends != sorted(set(ends)) or ends[0] <= 0 or ends[-1] > n_classes - 1:
            raise ValueError("cutoffs should be increasing positive integers, each below the number of classes")
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*ends, n_classes]
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            inward = Linear(in_features, width, bias=False, device=device, dtype=dtype)
            self.tail.append(Sequential(inward, Linear(width, classes, bias=False, device=device, dtype=dtype)))

    def reset_parameters(self) -> None:
        for layer in (self.head, *(part for pair in self.tail for part in pair)):
            layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> _ASMoutput:
        if target.ndim > 1 or input.ndim != target.ndim + 1:
            raise RuntimeError("0D or 1D target tensor expected, and an input with one dimension more")
        rows, places = (input, target) if target.ndim else (input.unsqueeze(0), target.unsqueeze(0))
        if places.numel() and not bool((places.ge(0) & places.lt(self.n_classes)).all()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{places.min().item()}, {places.max().item()}] were found"
            )
        head = F.log_softmax(self.head(rows), dim=1)
        found, group_of = torch.zeros_like(places, dtype=rows.dtype), places
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            inside = places.ge(low) & places.lt(high)
            at = inside.nonzero().squeeze(1)
            if at.numel():
                group_of = torch.where(inside, self.shortlist_size + i, group_of)
                within = F.log_softmax(self.tail[i](rows.index_select(0, at)), dim=1)
                picked = within.gather(1, (places[at] - low).unsqueeze(1)).squeeze(1)
                found = found.index_copy(0, at, picked)
        output = found + head.gather(1, group_of.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _ASMoutput(output if target.ndim else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, `(N, n_classes)`."""
        head = F.log_softmax(self.head(input), dim=1)
        size = self.shortlist_size
        tails = [
            F.log_softmax(layer(input), dim=1) + head[:, size + i].unsqueeze(1) for i, layer in enumerate(self.tail)
        ]
        return torch.cat([head[:, :size], *tails], dim=1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.log_prob(input).argmax(dim=1)
