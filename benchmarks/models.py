"""Models as they are used: compiled, then called, beside torch.jit where that is installed.

    python benchmarks/models.py [PART OF A NAME] [--archive FILE.pt SIZES]

Out: for each model, with and without gradients recorded, the milliseconds of the first call (torch.jit: of the first
three, as it optimizes in the second) and the microseconds of one call once all is warm; then how many times as long
the engine takes.  The weights require grad, as they do in modules.  At most 1.0 times as long as torch.jit is what we
want.
An archive is called with an array of normal numbers of the given sizes, such as 1,3,32,32; `silero_vad.jit` is a row of
its own where the package is installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from beside import TORCH, Call, Measured, measure, summary

import engine.torch as engine_torch
from engine.fuser.backend import tiering

Make = Callable[[Any], tuple[Any, list[Any]]]
"""From a library to a compiled model and its arguments."""


def _array(torch: Any, *sizes: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=sizes).astype(np.float32))


def _with_weights(model: Any) -> Any:
    """The same weights whoever runs it."""
    random = np.random.default_rng(1)
    for parameter in model.parameters():
        values = random.normal(size=tuple(parameter.shape)) * 0.2
        parameter.data.copy_(type(parameter.data)(values.astype(np.float32).tolist()))
    return model.eval()


def mlp(torch: Any) -> tuple[Any, list[Any]]:
    nn = torch.nn
    layers = nn.Sequential(
        nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 8)
    )
    return torch.jit.script(_with_weights(layers)), [_array(torch, 4, 16)]


def cnn(torch: Any) -> tuple[Any, list[Any]]:
    nn = torch.nn
    layers = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip
    return torch.jit.script(_with_weights(layers)), [_array(torch, 2, 3, 16, 16)]


def residual(torch: Any) -> tuple[Any, list[Any]]:
    """Two blocks as a ResNet has them, on small pictures."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(16, 16, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(16)
            self.conv2 = nn.Conv2d(16, 16, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(16)
            self.relu = nn.ReLU()

        def forward(self, x):  # type: ignore[no-untyped-def]
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            return self.relu(out + x)

    layers = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), Block(), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return torch.jit.script(_with_weights(layers)), [_array(torch, 1, 3, 12, 12)]


def attention(torch: Any) -> tuple[Any, list[Any]]:
    """A block of a transformer: attention and two products, with norms before them."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(32)
            self.norm2 = nn.LayerNorm(32)
            self.qkv = nn.Linear(32, 96)
            self.out = nn.Linear(32, 32)
            self.up = nn.Linear(32, 64)
            self.down = nn.Linear(64, 32)

        def forward(self, x):  # type: ignore[no-untyped-def]
            b, t, c = x.size(0), x.size(1), x.size(2)
            q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
            q = q.view(b, t, 4, c // 4).transpose(1, 2)
            k = k.view(b, t, 4, c // 4).transpose(1, 2)
            v = v.view(b, t, 4, c // 4).transpose(1, 2)
            weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / 2.8, -1)
            x = x + self.out(torch.matmul(weights, v).transpose(1, 2).reshape(b, t, c))
            return x + self.down(torch.relu(self.up(self.norm2(x))))

    return torch.jit.script(_with_weights(Block())), [_array(torch, 2, 8, 32)]


def language(torch: Any) -> tuple[Any, list[Any]]:
    """A language model: an LSTM cell over embedded tokens, and scores of the next."""
    nn = torch.nn

    class Model(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(50, 24)
            self.cell = nn.LSTMCell(24, 32)
            self.head = nn.Linear(32, 50)

        def forward(self, tokens):  # type: ignore[no-untyped-def]
            x = self.embed(tokens)
            h = torch.zeros(x.size(1), 32)
            c = torch.zeros(x.size(1), 32)
            for i in range(x.size(0)):
                h, c = self.cell(x[i], (h, c))
            return torch.log_softmax(self.head(h), -1)

    tokens = torch.from_numpy(np.arange(24).reshape(8, 3) % 50)
    return torch.jit.script(_with_weights(Model())), [tokens]


def archive(path: Path, *arguments: Any) -> Make:
    """A model of others; numbers are arguments as they stand, tuples are sizes."""

    def make(torch: Any) -> tuple[Any, list[Any]]:
        model = torch.jit.load(str(path))
        return model, [_array(torch, *each) * 0.1 if isinstance(each, tuple) else each for each in arguments]

    return make


def silero() -> dict[str, Make]:
    spec = find_spec("silero_vad")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    found = [path for folder in folders if (path := Path(folder, "data", "silero_vad.jit")).exists()]
    return {"silero-vad, a chunk": archive(found[0], (512,), 16_000)} if found else {}


MODELS: Final[dict[str, Make]] = {
    "mlp": mlp, "cnn": cnn, "residual blocks": residual, "transformer block": attention,
    "lstm language model": language,
}  # fmt: skip


def _call(torch: Any, make: Make, records: bool) -> tuple[Call, float]:
    """A call of the model, warm, and the seconds of its first calls.  States that a stream keeps are let go of now and
    then, since with gradients they hold all that came before."""
    model, arguments = make(torch)
    reset = getattr(model, "reset_states", None)
    count = 0

    def call() -> object:
        nonlocal count
        count += 1
        if reset is not None and count % 64 == 0:
            reset()
        if records:
            return model(*arguments)
        with torch.no_grad():
            return model(*arguments)

    start = time.perf_counter()
    for _ in range(1 if torch is engine_torch else 3):
        call()
    first = time.perf_counter() - start
    for _ in range(2):
        for _ in range(300 if torch is engine_torch else 50):
            call()
        tiering.wait()
    return call, first


def rows(models: Mapping[str, Make], wanted: str) -> Iterator[Measured]:
    print(f"{'':32}{'first, ms':>12}{'torch':>10}{'a call, us':>12}{'torch':>10}{'/ torch':>10}")
    for name, make in models.items():
        for records in (False, True) if wanted in name else ():
            call, first = _call(engine_torch, make, records)
            theirs, their_first = (None, None) if TORCH is None else _call(TORCH, make, records)
            found = measure({"engine": call, "torch": theirs}, 0.6)
            shown = f"{name}{', recorded' if records else ''}"
            times = [found.seconds.get(column) for column in ("engine", "torch")]
            cells = [_cell(first * 1e3, 12, 1), _cell(None if their_first is None else their_first * 1e3, 10, 1)]
            cells += [_cell(None if t is None else t * 1e6, w, 1) for t, w in zip(times, (12, 10), strict=True)]
            print(f"{shown:32}{''.join(cells)}{_cell(found.ratios.get('torch'), 10, 2)}", flush=True)
            yield found


def _cell(value: float | None, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("wanted", nargs="?", default="", help="part of a name")
    parser.add_argument("--archive", nargs=2, action="append", default=[], metavar=("FILE", "SIZES"))
    options = parser.parse_args()
    if TORCH is not None:
        TORCH.set_num_threads(1)
    others = {
        Path(path).name: archive(Path(path), tuple(int(size) for size in sizes.split(",")))
        for path, sizes in options.archive
    }
    print(summary(list(rows({**MODELS, **silero(), **others}, options.wanted)), "torch", 1.0))


if __name__ == "__main__":
    main()
