"""Traces of modules give what the compiled modules give: of every layer, and of models like those of the examples."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.torch import nn
from tests.peer.layer_samples import LAYERS

NOT_TRACED = {"ConvTranspose2d(2, 4, 3, stride=2, padding=1, groups=2)", "MultiheadAttention(4, 2, bias=False)"}
"""Their examples have arguments that are no tensors, which traces refuse."""
EXAMPLES = Path(__file__).parents[3] / "examples"


def inputs_of(maker: str, seed: int) -> tuple[Any, ...]:
    torch.manual_seed(seed)
    names = {
        "torch": torch,
        "nn": nn,
        "r": lambda *size: torch.randn(*size),
        "i": lambda *size: torch.randint(0, 4, size),
    }
    made: tuple[Any, ...] = eval(f"({LAYERS[maker]},)", names)
    return made


def tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for each in value for t in tensors(each)] if isinstance(value, (tuple, list)) else []


def assert_equal(one: Any, other: Any) -> None:
    ours, theirs = tensors(one), tensors(other)
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def traced(module: Any, inputs: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(module, inputs, check_trace=False)


def compiled(module: Any) -> Any:
    """The module itself where it has several signatures or cannot be compiled."""
    try:
        return module if isinstance(module, nn.RNNBase) else torch.jit.script(module)
    except RuntimeError:
        return module


@pytest.mark.parametrize("maker", sorted(LAYERS.keys() - NOT_TRACED))
def test_layers(maker: str) -> None:
    torch.manual_seed(0)
    layer = eval(f"nn.{maker}", {"torch": torch, "nn": nn}).eval()
    examples, others = inputs_of(maker, 1), inputs_of(maker, 2)
    trace = traced(layer, examples)
    reference = compiled(layer)
    for inputs in (examples, others):
        assert_equal(trace(*inputs), reference(*inputs))


# ------------------------------------------------------------------ models, and other sizes than the example's


class Recurrent(nn.Module):
    """Sequences of many lengths, packed."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn = kind(3, 4, num_layers=2, batch_first=True)
        self.out = nn.Linear(4, 2)

    def forward(self, x, lengths):  # type: ignore[no-untyped-def]
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = self.rnn(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        return self.out(padded)


class Inverted(nn.Module):
    """A block of MobileNet and the pool behind it: sizes are used outside of the submodule that gave the tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(inplace=True),
            nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8), nn.Conv2d(8, 3, 1),
        )  # fmt: skip
        self.last = nn.Linear(3, 2)

    def forward(self, x):  # type: ignore[no-untyped-def]
        x = x + self.features(x)
        return self.last(nn.functional.adaptive_avg_pool2d(x, 1).reshape(x.shape[0], -1))


class Joined(nn.Module):
    """A U-Net's way down and up: paddings are computed from the sizes of two results."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.pool = nn.Conv2d(2, 4, 3, padding=1), nn.MaxPool2d(2)
        self.up, self.last = nn.ConvTranspose2d(4, 4, 2, stride=2), nn.Conv2d(8, 1, 1)

    def forward(self, x):  # type: ignore[no-untyped-def]
        a = torch.relu(self.down(x))
        b = self.up(self.pool(a))
        dy, dx = a.size(2) - b.size(2), a.size(3) - b.size(3)
        b = nn.functional.pad(b, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.last(torch.cat([a, b], dim=1))


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def letters(*size: int) -> Any:
    return torch.randint(0, 20, size)


MODELS: dict[str, tuple[Any, Any, Any]] = {
    "cnn": (
        lambda: example("train_cnn").Net(),
        lambda: (torch.randn(2, 1, 16, 16),), lambda: (torch.randn(5, 1, 16, 16),),
    ),
    "char_lstm": (
        lambda: example("train_char_lstm").Writer(8), lambda: (letters(2, 5),), lambda: (letters(3, 9),),
    ),
    "mlp": (
        lambda: nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)),
        lambda: (torch.randn(4, 2),), lambda: (torch.randn(7, 2),),
    ),
    **{
        kind.__name__: (
            lambda kind=kind: Recurrent(kind),
            lambda: (torch.randn(3, 5, 3), torch.tensor([2, 5, 3])),
            lambda: (torch.randn(2, 4, 3), torch.tensor([4, 1])),
        )
        for kind in (nn.RNN, nn.LSTM, nn.GRU)
    },
    "inverted": (Inverted, lambda: (torch.randn(1, 3, 6, 6),), lambda: (torch.randn(3, 3, 8, 7),)),
    "joined": (Joined, lambda: (torch.randn(1, 2, 8, 8),), lambda: (torch.randn(2, 2, 9, 10),)),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True),
        lambda: (torch.randn(2, 3, 4),), lambda: (torch.randn(4, 5, 4),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, tmp_path: Path) -> None:
    make, examples, others = MODELS[name]
    torch.manual_seed(3)
    model = make().eval()
    trace = traced(model, examples())
    trace.save(tmp_path / "model.pt")
    loaded = torch.jit.load(tmp_path / "model.pt")
    reference = compiled(model)
    for inputs in (examples(), others()):
        expected = reference(*inputs)
        assert_equal(trace(*inputs), expected)
        assert_equal(loaded(*inputs), expected)


def test_gradients_of_traces_are_those_of_the_module() -> None:
    model = Inverted().eval()
    trace = traced(model, (torch.randn(1, 3, 6, 6),))
    x = torch.randn(2, 3, 5, 5)
    trace(x).sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    for mine, p in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(mine, p.grad)
