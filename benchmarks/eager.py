"""What one eager operator costs on 4 x 4 floats, where nearly all of it is overhead.

    python benchmarks/eager.py [PART OF A NAME]

Out: for each of a few dozen calls the microseconds with the engine, with numpy and, where it is installed, with
PyTorch; then how many times as long the engine takes.  At most 1.0 times as long as PyTorch is what we want.  What the
engine compiles once an operator is called often is there before anything is timed.  Takes about half a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from beside import TORCH, Call, summary, table

import engine.torch as engine_torch
from engine.fuser.backend import tiering

_INDEX: Final = np.array([0, 2])
_ONES: Final = np.ones((4, 4), np.float32)
PLAIN: Final[dict[str, tuple[Callable[[Any, Any], Call], Callable[[Any], object] | None]]] = {
    "x.exp()": (lambda t, x: lambda: x.exp(), np.exp),
    "x.relu()": (lambda t, x: lambda: x.relu(), lambda a: np.maximum(a, 0)),
    "torch.exp(x)": (lambda t, x: lambda: t.exp(x), np.exp),
    "F.relu(x)": (lambda t, x: (lambda f: lambda: f(x))(t.nn.functional.relu), lambda a: np.maximum(a, 0)),
    "-x": (lambda t, x: lambda: -x, np.negative),
    "x + x": (lambda t, x: lambda: x + x, lambda a: a + a),
    "x * x": (lambda t, x: lambda: x * x, lambda a: a * a),
    "x < x": (lambda t, x: lambda: x < x, lambda a: a < a),
    "torch.add(x, x, alpha=2)": (lambda t, x: lambda: t.add(x, x, alpha=2), lambda a: a + 2 * a),
    "x + 2": (lambda t, x: lambda: x + 2, lambda a: a + 2),
    "x * 2.5": (lambda t, x: lambda: x * 2.5, lambda a: a * 2.5),
    "1 - x": (lambda t, x: lambda: 1 - x, lambda a: 1 - a),
    "1 / x": (lambda t, x: lambda: 1 / x, lambda a: 1 / a),
    "x ** 2": (lambda t, x: lambda: x**2, lambda a: a**2),
    "x.clamp(0, 1)": (lambda t, x: lambda: x.clamp(0.0, 1.0), lambda a: np.clip(a, 0, 1)),
    "x.sum()": (lambda t, x: lambda: x.sum(), np.sum),
    "x.mean(1)": (lambda t, x: lambda: x.mean(1), lambda a: a.mean(1)),
    "x.sum(dim=0, keepdim=True)": (
        lambda t, x: lambda: x.sum(dim=0, keepdim=True),
        lambda a: a.sum(axis=0, keepdims=True),
    ),
    "x.max()": (lambda t, x: lambda: x.max(), np.max),
    "x.argmax(1)": (lambda t, x: lambda: x.argmax(1), lambda a: a.argmax(1)),
    "x.softmax(-1)": (lambda t, x: lambda: x.softmax(-1), None),
    "x.view(16)": (lambda t, x: lambda: x.view(16), lambda a: a.reshape(16)),
    "x.reshape(2, 8)": (lambda t, x: lambda: x.reshape(2, 8), lambda a: a.reshape(2, 8)),
    "x.t()": (lambda t, x: lambda: x.t(), lambda a: a.T),
    "x.transpose(0, 1)": (lambda t, x: lambda: x.transpose(0, 1), lambda a: a.transpose(1, 0)),
    "x.unsqueeze(0)": (lambda t, x: lambda: x.unsqueeze(0), lambda a: a[None]),
    "x.detach()": (lambda t, x: lambda: x.detach(), None),
    "x @ x": (lambda t, x: lambda: x @ x, lambda a: a @ a),
    "torch.mm(x, x)": (lambda t, x: lambda: t.mm(x, x), lambda a: a @ a),
    "F.linear(x, x, x[0])": (
        lambda t, x: (lambda f, b: lambda: f(x, x, b))(t.nn.functional.linear, x[0].detach()),
        lambda a: a @ a.T + a[0],
    ),
    "x[0]": (lambda t, x: lambda: x[0], lambda a: a[0]),
    "x[1:3]": (lambda t, x: lambda: x[1:3], lambda a: a[1:3]),
    "x[:, 1]": (lambda t, x: lambda: x[:, 1], lambda a: a[:, 1]),
    "x[0, 1]": (lambda t, x: lambda: x[0, 1], lambda a: a[0, 1]),
    "x[index]": (
        lambda t, x: (lambda i: lambda: x[i])(t.tensor([0, 2])),
        lambda a: a[_INDEX],
    ),
    "torch.cat([x, x])": (lambda t, x: lambda: t.cat([x, x]), lambda a: np.concatenate([a, a])),
    "torch.stack([x, x])": (lambda t, x: lambda: t.stack([x, x]), lambda a: np.stack([a, a])),
    "torch.where(x > 0, x, x)": (lambda t, x: lambda: t.where(x > 0, x, x), lambda a: np.where(a > 0, a, a)),
    "x.to(torch.float64)": (lambda t, x: lambda: x.to(t.float64), lambda a: a.astype(np.float64)),
    "x.clone()": (lambda t, x: lambda: x.clone(), np.copy),
    "x.contiguous()": (lambda t, x: lambda: x.contiguous(), np.ascontiguousarray),
}
"""Name -> the call, made of the library and a tensor, and numpy's way to do it."""
ALONE: Final[dict[str, tuple[Callable[[Any, Any], Call], Callable[[Any], object] | None]]] = {
    "torch.zeros(4, 4)": (lambda t, x: lambda: t.zeros(4, 4), lambda a: np.zeros((4, 4), np.float32)),
    "torch.ones((4, 4))": (lambda t, x: lambda: t.ones((4, 4)), lambda a: np.ones((4, 4), np.float32)),
    "torch.zeros_like(x)": (lambda t, x: lambda: t.zeros_like(x), np.zeros_like),
    "torch.arange(16)": (lambda t, x: lambda: t.arange(16), lambda a: np.arange(16)),
    "torch.tensor([1.0, 2.0])": (lambda t, x: lambda: t.tensor([1.0, 2.0]), lambda a: np.array([1.0, 2.0], "f")),
    "torch.tensor(1.0)": (lambda t, x: lambda: t.tensor(1.0), lambda a: np.array(1.0, "f")),
    "torch.full((4, 4), 2.0)": (lambda t, x: lambda: t.full((4, 4), 2.0), lambda a: np.full((4, 4), 2.0, "f")),
    "x.mul_(1.0 everywhere)": (
        lambda t, x: (lambda y: lambda: x.mul_(y))(t.ones(4, 4)),
        lambda a: np.multiply(a, _ONES, out=a),
    ),
    "x += 1": (lambda t, x: lambda: x.__iadd__(1), lambda a: a.__iadd__(1)),
    "x.zero_()": (lambda t, x: lambda: x.zero_(), lambda a: a.fill(0)),
    "x[0] = 1.0": (lambda t, x: lambda: x.__setitem__(0, 1.0), lambda a: a.__setitem__(0, 1.0)),
    "x.shape": (lambda t, x: lambda: x.shape, lambda a: a.shape),
    "x.size(0)": (lambda t, x: lambda: x.size(0), lambda a: a.shape[0]),
    "x[0, 0].item()": (lambda t, x: (lambda y: lambda: y.item())(x[0, 0]), lambda a: a[0, 0].item()),
    "nn.ReLU()(x)": (lambda t, x: (lambda m: lambda: m(x))(t.nn.ReLU()), None),
    "nn.Linear(4, 4)(x)": (lambda t, x: (lambda m: lambda: m(x))(t.nn.Linear(4, 4).requires_grad_(False)), None),
    "nn.LayerNorm(4)(x)": (lambda t, x: (lambda m: lambda: m(x))(t.nn.LayerNorm(4).requires_grad_(False)), None),
}
"""The same of what makes, writes or asks."""
BACKWARD: Final[dict[str, Callable[[Any, Any], Call]]] = {
    "(x + x).sum().backward()": lambda t, x: lambda: (x + x).sum().backward(),
    "(x * x).sum().backward()": lambda t, x: lambda: (x * x).sum().backward(),
    "(x @ x).sum().backward()": lambda t, x: lambda: (x @ x).sum().backward(),
    "x.exp().sigmoid().sum().backward()": lambda t, x: lambda: x.exp().sigmoid().sum().backward(),
    "mlp(x).sum().backward()": lambda t, x: _mlp(t, x),
}
"""A forward and a backward pass."""


def _mlp(torch: Any, x: Any) -> Call:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    return lambda: model(x).sum().backward()


def _tensor(torch: Any, values: Any, requires_grad: bool) -> Any:
    return torch.from_numpy(values.copy()).requires_grad_(requires_grad)


def _warm(call: Call) -> Call:
    """The call, whose operators are compiled."""
    tiering.set_mode("eager")
    call()
    return call


def _sides(build: Callable[[Any, Any], Call], requires_grad: bool, by_numpy: Any) -> Mapping[str, Call | None]:
    values = np.random.default_rng(0).uniform(0.1, 1.0, (4, 4)).astype(np.float32)
    own = values.copy()
    return {
        "engine": _warm(build(engine_torch, _tensor(engine_torch, values, requires_grad))),
        "numpy": None if by_numpy is None else lambda: by_numpy(own),
        "torch": None if TORCH is None else build(TORCH, _tensor(TORCH, values, requires_grad)),
    }


def rows() -> Iterator[tuple[str, Mapping[str, Call | None]]]:
    for name, (build, by_numpy) in (PLAIN | ALONE).items():
        yield name, _sides(build, False, by_numpy)
    for name, (build, _) in PLAIN.items():
        yield f"{name}  recorded", _sides(build, True, None)
    for name, backward in BACKWARD.items():
        yield name, _sides(backward, True, None)


def main(wanted: str) -> None:
    results = table("us per call", (row for row in rows() if wanted in row[0]), seconds=0.2)
    print(summary(results, "torch", 1.0))


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
