"""Workloads of `make bench`: programs and models, with the ratios to torch.jit that are wanted.

In: nothing.  Out: `PROGRAMS`, texts that run everywhere; `MODELS`, made and saved by PyTorch (`make_models`).  `floor`
and `aim` are times in those of torch.jit; `bytes` and `flops` of one call say how fast any machine can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

CHAIN: Final = """
def f(x: Tensor, y: Tensor) -> Tensor:
    a = x + y
    b = a * x
    c = torch.tanh(b)
    d = c - y
    e = torch.sigmoid(d)
    g = e * a
    h = g + b
    i = torch.relu(h)
    j = i * c
    return j + x
"""
GELU_NORM: Final = """
def f(x: Tensor, b: Tensor, w: Tensor) -> Tensor:
    y = x + b
    y = 0.5 * y * (1.0 + torch.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))
    m = y.mean(-1, True)
    v = ((y - m) * (y - m)).mean(-1, True)
    return (y - m) * torch.rsqrt(v + 1e-5) * w
"""
LSTM: Final = """
def f(x: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor):
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
    cy = torch.sigmoid(forgetgate) * cx + torch.sigmoid(ingate) * torch.tanh(cellgate)
    return torch.sigmoid(outgate) * torch.tanh(cy), cy
"""
RNN: Final = """
def f(xs: Tensor, h: Tensor, w: Tensor, u: Tensor) -> Tensor:
    for i in range(xs.size(0)):
        h = torch.tanh(torch.mm(xs[i], w) + torch.mm(h, u))
    return h
"""
ATTENTION: Final = """
def f(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(-2, -1)) * 0.125
    return torch.matmul(torch.softmax(scores, -1), v)
"""
COLLATZ: Final = """
def f(limit: int) -> int:
    best = 0
    for k in range(1, limit):
        n = k
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        if steps > best:
            best = steps
    return best
"""
LISTS: Final = """
def f(n: int) -> int:
    xs: List[int] = []
    for i in range(n):
        xs.append(i * i % 7)
    d: Dict[int, int] = {}
    for x in xs:
        if x in d:
            d[x] = d[x] + 1
        else:
            d[x] = 1
    t = 0
    for k in d:
        t += k * d[k]
    return t
"""
MLP: Final = """
def f(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    h = torch.relu(torch.addmm(b1, x, w1))
    y = torch.addmm(b2, h, w2)
    return (y * y).mean()
"""
CHAIN_NUMEXPR: Final = (
    "where(((x + y) / (1 + exp(y - tanh((x + y) * x))) + (x + y) * x) > 0, "
    "(x + y) / (1 + exp(y - tanh((x + y) * x))) + (x + y) * x, 0) * tanh((x + y) * x) + x"
)
"""The chain as one expression of numexpr."""


@dataclass(frozen=True, slots=True)
class Workload:
    """`shapes`: of the arguments, normal numbers times `scale` (a number stands for itself); for models of the input.
    `trains`: a call runs backward too."""

    text: str
    shapes: Sequence[tuple[int, ...] | int]
    floor: float
    aim: float
    bytes: float = 0.0
    flops: float = 0.0
    trains: bool = False
    scale: float = 1.0
    numexpr: str = ""

    def arguments(self) -> list[Any]:
        """Arrays of float32, the same each time, and numbers."""
        random = np.random.default_rng(0)
        made = [each if isinstance(each, int) else random.standard_normal(each) for each in self.shapes]
        return [each if isinstance(each, int) else (each * self.scale).astype(np.float32) for each in made]


def _chain(floor: float, aim: float, *shape: int) -> Workload:
    return Workload(CHAIN, (shape, shape), floor, aim, bytes=12 * prod(shape), numexpr=CHAIN_NUMEXPR)


def _lstm(floor: float, aim: float, batch: int, inputs: int, hidden: int, trains: bool = False) -> Workload:
    shapes = (
        (batch, inputs), (batch, hidden), (batch, hidden), (4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,),
        (4 * hidden,),
    )  # fmt: skip
    flops = 8 * batch * hidden * (inputs + hidden) * (3 if trains else 1)
    return Workload(LSTM, shapes, floor, aim, sum(map(prod, shapes)) * 4, flops, trains, scale=0.3)


PROGRAMS: Final[dict[str, Workload]] = {
    "chain of 10, 16 elements": _chain(0.15, 0.05, 4, 4),
    "chain of 10, 16 K": _chain(0.4, 0.2, 1 << 14),
    "chain of 10, 1 M": _chain(0.25, 0.12, 1 << 20),
    "chain of 10, 16 M": _chain(0.2, 0.06, 1 << 24),
    "bias, gelu, layer norm 4096 x 768": Workload(
        GELU_NORM, ((4096, 768), (768,), (768,)), 0.35, 0.15, bytes=8 * 4096 * 768
    ),
    "LSTM cell 1 x 32": _lstm(0.4, 0.2, 1, 32, 32),
    "LSTM cell 64 x 512": _lstm(1.0, 0.9, 64, 512, 512),
    "RNN, 100 steps 8 x 64": Workload(
        RNN, ((100, 8, 64), (8, 64), (64, 64), (64, 64)), 0.3, 0.15, 4 * 100 * 8 * 64, 100 * 4 * 8 * 64 * 64, scale=0.3
    ),
    "attention 8 x 128 x 64": Workload(
        ATTENTION, ((8, 128, 64),) * 3, 1.0, 0.7, 4 * 4 * 8 * 128 * 64, 4 * 8 * 128 * 128 * 64
    ),
    "Collatz to 3,000": Workload(COLLATZ, (3000,), 0.03, 0.01),
    "lists and dicts of 20,000 ints": Workload(LISTS, (20000,), 0.3, 0.1),
    "training step, MLP 64 x 256": Workload(
        MLP, ((64, 256), (256, 256), (256,), (256, 10), (10,)), 1.0, 0.7, 4 * 256 * 256,
        6 * 64 * 256 * 266, trains=True, scale=0.3,
    ),
    "training step, LSTM cell 64 x 128": _lstm(1.0, 0.7, 64, 128, 128, trains=True),
}  # fmt: skip

MODELS: Final[dict[str, Workload]] = {
    "ResNet-18, 1 x 3 x 224 x 224": Workload("resnet18", ((1, 3, 224, 224),), 1.0, 0.8, 4 * 11.7e6, 3.63e9),
    "four inverted residuals, 112 x 112": Workload("mobile", ((1, 32, 112, 112),), 0.6, 0.4, 4 * 24e6, 0.76e9),
    "encoder, 6 layers of 384": Workload("encoder", ((1, 128, 384),), 1.0, 0.8, 4 * 10.6e6, 2.87e9),
    "encoder, batch 16": Workload("encoder", ((16, 128, 384),), 1.0, 0.8, 4 * 10.6e6, 46e9),
    "LSTM, 2 layers of 256, 100 steps": Workload("lstm", ((100, 8, 128),), 1.0, 0.8, 4 * 0.92e6, 1.47e9),
    "(Linear, GELU, LayerNorm) x 4, 32 x 1024": Workload("gelu_mlp", ((32, 1024),), 1.0, 0.8, 4 * 4.2e6, 0.27e9),
}
"""`text` names the archive."""


# ------------------------------------------------------------------ models, as PyTorch makes them


def make_models(torch: Any, folder: Path) -> None:
    """Save an archive for each model, with seeded weights, for evaluation."""
    torch.manual_seed(0)
    example = {each.text: torch.zeros(each.shapes[0]) for each in reversed(MODELS.values())}
    for name, make in _MODELS.items():
        model = make(torch.nn).eval()
        with torch.no_grad():
            is_traced = name == "encoder"  # its Python has branches that no program can have
            traced = torch.jit.trace(model, example[name], check_trace=False) if is_traced else torch.jit.script(model)
        traced.save(str(folder / f"{name}.pt"))


def _resnet18(nn: Any) -> Any:
    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, inputs: int, outputs: int, step: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, step, 1, bias=False)
            self.norm1, self.norm2, self.relu = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs), nn.ReLU()
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, step, bias=False), nn.BatchNorm2d(outputs))
            self.shortcut = shortcut if step != 1 or inputs != outputs else nn.Identity()

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = self.relu(self.norm1(self.conv1(x)))
            return self.relu(self.norm2(self.conv2(y)) + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs, step in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(inputs, outputs, step))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def _mobile(nn: Any) -> Any:
    layers: list[Any] = []
    for _ in range(4):
        layers += [nn.Conv2d(32, 96, 1, bias=False), nn.BatchNorm2d(96), nn.Hardswish()]
        layers += [nn.Conv2d(96, 96, 3, 1, 1, groups=96, bias=False), nn.BatchNorm2d(96), nn.Hardswish()]
        layers += [nn.Conv2d(96, 32, 1, bias=False), nn.BatchNorm2d(32)]
    return nn.Sequential(*layers)


def _encoder(nn: Any) -> Any:
    layer = nn.TransformerEncoderLayer(384, 6, 1536, batch_first=True, activation="gelu", norm_first=True)
    return nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)


def _lstm_layers(nn: Any) -> Any:
    class Layers(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(128, 256, 2)

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.lstm(x)[0]

    return Layers()


def _gelu_mlp(nn: Any) -> Any:
    layers = [layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU(), nn.LayerNorm(1024))]
    return nn.Sequential(*layers)


_MODELS: Final[dict[str, Callable[[Any], Any]]] = {
    "resnet18": _resnet18, "mobile": _mobile, "encoder": _encoder, "lstm": _lstm_layers, "gelu_mlp": _gelu_mlp,
}  # fmt: skip
