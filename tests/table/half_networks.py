"""Small networks of half types, and what one step of training gives.

In: nothing.  Out: `NETWORKS`, classes of modules with `given`, their arguments, and `Step`s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import engine.torch as torch
import engine.torch.nn.functional as F
from engine.fuser.backend import tiering
from engine.torch import nn

STEPS = 20


def _numbers(*shape: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(len(shape)).normal(size=shape).tolist())


CAUSAL = torch.ones(5, 5).triu(1) > 0


class Linears(nn.Module):
    given = (_numbers(6, 8),)

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.norm(self.first(x))))


class Gates(nn.Module):
    given = (_numbers(6, 8),)

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return torch.log_softmax(self.last(torch.tanh(self.norm(x)) * torch.sigmoid(x)), -1)


class Images(nn.Module):
    given = (_numbers(2, 2, 8, 8),)

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.by_channel, self.groups, self.last = nn.Conv2d(4, 4, 3, groups=4), nn.GroupNorm(2, 4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        return self.last(F.gelu(self.groups(self.by_channel(x))).mean([2, 3]))


class Attention(nn.Module):
    given = (_numbers(2, 5, 8), CAUSAL)

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first, self.last = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = self.first(self.norm(x)).chunk(3, -1)
        scores = (query @ key.transpose(-2, -1) / 8**0.5).masked_fill(mask, -float("inf"))
        return self.last(scores.softmax(-1) @ value)


class AttentionInOne(nn.Module):
    given = (_numbers(2, 5, 8), CAUSAL)

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 24), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = self.first(x).chunk(3, -1)
        return self.last(F.scaled_dot_product_attention(query, key, value, attn_mask=~mask))


class Heads(nn.Module):
    given = (_numbers(2, 5, 8), CAUSAL)

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.layer(x, mask)


class Words(nn.Module):
    given = (torch.arange(8).reshape(4, 2) % 5,)

    def __init__(self) -> None:
        super().__init__()
        self.words, self.layer, self.last = nn.Embedding(6, 6), nn.LSTM(6, 5, 2), nn.Linear(5, 3)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return self.last(self.layer(self.words(places))[0])


class BothWays(nn.Module):
    given = (torch.arange(8).reshape(4, 2) % 5,)

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(6, 6, padding_idx=0)
        self.layer, self.last = nn.GRU(6, 5, bidirectional=True), nn.Linear(10, 3)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return self.last(self.layer(self.words(places))[0])


class Cells(nn.Module):
    given = (_numbers(4, 2, 6),)

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.gated, self.last = nn.LSTMCell(6, 5), nn.GRUCell(6, 5), nn.Bilinear(5, 5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(x.shape[1], 5, dtype=x.dtype)
        c, g = torch.zeros_like(h), torch.zeros_like(h)
        for t in range(x.shape[0]):
            h, c = self.cell(x[t], (h, c))
            g = self.gated(x[t], g)
        return self.last(h, g)


class Loops(nn.Module):
    given = (_numbers(3, 4),)

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.slope = nn.Parameter(torch.randn(4, 4) * 0.3), nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for _ in range(3):
            y = torch.where(y > 0, y @ self.weight, F.softplus(y) * self.slope) + x
        z = y.clone()
        z[:, 0] = y[:, 1] * 2
        return z.cumsum(0) - z.std(0)


class Losses(nn.Module):
    given = (_numbers(6, 8), torch.tensor([1, 0, 3, 2, 0, 1]))

    def __init__(self) -> None:
        super().__init__()
        self.first, self.slope = nn.Linear(8, 4), nn.PReLU()

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        y = self.slope(self.first(x))
        ones, zeros = torch.ones_like(y), torch.zeros_like(y)
        apart = F.smooth_l1_loss(y, zeros) + F.huber_loss(y, ones) + F.binary_cross_entropy_with_logits(y, ones)
        return F.cross_entropy(y, places) + F.mse_loss(y, ones) + apart


NETWORKS: tuple[Any, ...] = (
    Linears, Gates, Images, Attention, AttentionInOne, Heads, Words, BothWays, Cells, Loops, Losses,
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """The state before a step, what it gives in mode off, and the same in float64."""

    state: dict[str, Any]
    found: dict[str, torch.Tensor | None]
    exact: dict[str, torch.Tensor | None]


def made(network: Any, dtype: Any) -> Any:
    torch.manual_seed(1)
    return network().to(dtype)


def given(network: Any, dtype: Any) -> list[Any]:
    return [each.to(dtype) if each.is_floating_point() else each for each in network.given]


def stepped(model: Any, arguments: list[Any], state: dict[str, Any]) -> dict[str, torch.Tensor | None]:
    """From this state on: the result, all gradients, and the statistics afterwards."""
    with torch.no_grad():
        for name, value in model.state_dict().items():
            value.copy_(state[name])
    model.zero_grad()
    leaves = [each.detach().clone().requires_grad_() if each.is_floating_point() else each for each in arguments]
    result = model(*leaves)
    result.float().pow(2).mean().backward()
    gradients = {f"gradient of {name}": each.grad for name, each in model.named_parameters()}
    ours = {f"gradient of argument {i}": each.grad for i, each in enumerate(leaves) if each.is_floating_point()}
    after = {name: each.detach().clone() for name, each in model.named_buffers()}
    return {"result": result, **gradients, **ours, **after}


@cache
def training(network: Any, dtype: Any) -> list[Step]:
    """The steps of a training in mode off."""
    mode = tiering.mode()
    tiering.set_mode("off")
    try:
        model, exact = made(network, dtype), made(network, torch.float64)
        optimizer, steps = torch.optim.SGD(model.parameters(), lr=0.05), []
        for _ in range(STEPS):
            state = {name: each.detach().clone() for name, each in model.state_dict().items()}
            found = stepped(model, given(network, dtype), state)
            wide = [each.double() if each.is_floating_point() else each for each in given(network, dtype)]
            steps.append(Step(state, found, stepped(exact, wide, state)))
            optimizer.step()
    finally:
        tiering.set_mode(mode)
    return steps
