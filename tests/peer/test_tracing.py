"""The same programs traced here and by PyTorch: equal graphs, equal code, archives that both run."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import engine
from engine.torch import nn as our_nn
from engine.torch.nn import functional as our_functional

torch = pytest.importorskip("torch", reason="compares with a real PyTorch, which is not installed here")
pytestmark = pytest.mark.peer

DATA = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]


def text_of(graph: Any) -> str:
    """Without comments; values numbered in the order in which they occur."""
    names: dict[str, str] = {}
    text = re.sub(r" # .*|, scope: .*|\.___torch_mangle_\d+", "", str(graph))
    return re.sub(r"%[\w.]+", lambda match: names.setdefault(match[0], f"%{len(names)}"), text).strip()


def exact(graph: Any) -> str:
    return re.sub(r" # .*", "", str(graph)).strip()


def pointwise(_: Any, F: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        new = -(x + x) * 2 - x / 3 + 1
        new.mul_(2)
        return new, (2 - x, 1 / x, x % 2, x**2, 2**x, x // 2), x > 0

    return f


def sizes(t: Any, F: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        b, c = x.shape
        y = x.view(x.size(0), -1) + t.zeros(b, c) * x.numel()
        return y[:, 1 : x.size(1)], t.arange(x.size(1)), x.reshape(b * c // 2, 2).expand(c, 2)

    return f


def indexing(t: Any, F: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        z = t.zeros_like(x)
        z[0] = 1.0
        z[:, 1] += x[:, 0]
        mask = x > 0
        return z[..., None], x[mask], x[:, -1], x.masked_fill(mask, 0.0), t.where(mask, x, z)

    return f


def functional(t: Any, F: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        h = F.relu(x * 2)
        p = F.softmax(F.gelu(h), dim=-1)
        return F.layer_norm(p, [3]) + F.pad(p, (1, 1))[:, 1:4], F.interpolate(p[None], scale_factor=2.0)

    return f


def joining(t: Any, F: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        a, b = t.split(x, 1)
        c, d, e = x.unbind(1)
        return t.stack([a, b]), t.cat([c, d, e]), x.max(1)[0], t.einsum("ij,kj->ik", x, x)

    return f


def forms(t: Any, F: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        below = x - 1
        above = 2 - below
        made = t.tensor([1.0, 2.0, 3.0]) + t.as_tensor([1, 2, 3]) + x.new_tensor([4.0])
        norms = x.norm(), t.norm(x, 1, 1), x.norm(2, -1, keepdim=True)
        return x.T @ above, x[[0, 1]], made, norms, x.std(), x.var(1), t.std_mean(x), x.split([1, 2], 1), x[...]

    return f


def integers(t: Any, F: Any) -> Callable[..., Any]:
    kept = t.tensor([[0.5, -1.25], [2.0, 3.0]])

    def f(x: Any) -> Any:
        n = x.long()
        a, b = x.split(x.size(1) - 1, 1)
        return n * 1.5 + 2, n / 2 - 0.5, a @ kept, b.to("cpu"), x.cpu() * 2, x.to(n)

    return f


def convolutions(t: Any, F: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        weight = t.ones(2, 1, 2).requires_grad_()
        return F.conv1d(x[:, None], weight.detach()), F.conv_transpose1d(x[None, :1], t.ones(1, 2, 2), stride=2)

    return f


@pytest.mark.parametrize("make", [pointwise, sizes, indexing, functional, joining, forms, integers, convolutions])
def test_graphs_of_functions(make: Callable[..., Callable[..., Any]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.jit.trace(make(torch, torch.nn.functional), torch.tensor(DATA))
    mine = engine.jit.trace(make(engine, our_functional), engine.tensor(DATA))
    assert exact(mine.graph) == exact(theirs.graph)


def networks(nn: Any, F: Any) -> dict[str, tuple[Callable[[], Any], tuple[int, ...], tuple[int, ...]]]:
    """Name -> how to make the module, the shape of the example, another shape."""

    class MLP(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2, self.out = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
            self.norm, self.drop = nn.LayerNorm(8), nn.Dropout(0.5)

        def forward(self, x):  # type: ignore[no-untyped-def]
            x = F.gelu(self.fc1(x))
            x = self.norm(x.tanh())
            return F.log_softmax(self.out(self.drop(self.fc2(x))), dim=1)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
            self.norm = nn.LayerNorm(16)
            self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

        def forward(self, x):  # type: ignore[no-untyped-def]
            b, t, d = x.shape
            y = self.norm(x)
            q = self.q(y).view(b, t, 4, d // 4).transpose(1, 2)
            k = self.k(y).view(b, t, 4, -1).transpose(1, 2)
            v = self.v(y).view(b, t, 4, -1).transpose(1, 2)
            weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(16), dim=-1)
            x = x + self.o((weights @ v).transpose(1, 2).reshape(b, t, d))
            return x + self.mlp(x)

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.cell = nn.LSTM(6, 4, batch_first=True), nn.GRUCell(4, 4)
            self.rnn = nn.RNN(4, 3)

        def forward(self, x):  # type: ignore[no-untyped-def]
            y, (h, _) = self.lstm(x)
            return self.rnn(y)[0].mean(1) + self.cell(h[0])[:, :3]

    def images() -> Any:
        return nn.Sequential(nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3))

    return {
        "mlp": (MLP, (4, 6), (7, 6)),
        "attention": (Attention, (2, 5, 16), (3, 9, 16)),
        "images": (images, (2, 2, 4, 4), (3, 2, 4, 4)),
        "recurrent": (Recurrent, (2, 5, 6), (4, 3, 6)),
    }


@pytest.mark.parametrize("name", ["mlp", "attention", "images", "recurrent"])
def test_modules(name: str, tmp_path: Path) -> None:
    make, shape, other = networks(torch.nn, torch.nn.functional)[name]
    make_ours, _, _ = networks(our_nn, our_functional)[name]
    module, ours = make().eval(), make_ours().eval()
    ours.load_state_dict({key: engine.tensor(value.numpy()) for key, value in module.state_dict().items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.jit.trace(module, torch.randn(shape))
    mine = engine.jit.trace(ours, engine.randn(shape))
    for (path, part), (_, twin) in zip(mine.named_modules(), theirs.named_modules(), strict=True):
        if hasattr(twin, "forward"):
            assert part.code == twin.code, path
            assert text_of(part.graph) == text_of(twin.graph), path

    mine.save(tmp_path / "mine.pt")
    x = torch.randn(other)
    expected = module(x).detach().numpy()
    assert abs(torch.jit.load(str(tmp_path / "mine.pt"))(x).detach().numpy() - expected).max() < 1e-4
    theirs.save(str(tmp_path / "theirs.pt"))
    assert abs(engine.load(tmp_path / "theirs.pt")(engine.tensor(x.numpy())).detach().numpy() - expected).max() < 1e-4
