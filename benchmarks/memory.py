"""The memory of a process that loads, calls and drops a model again and again.

    python benchmarks/memory.py [--peer PYTHON] [--rounds N] [--archive FILE]

Out: megabytes of resident memory over the rounds, of the engine and of torch.jit in the Python that `--peer` names,
once with three calls in each round and once without.  The model is a small ResNet-18, or the one of `--archive`, which
takes images of 3 x 32 x 32.  Then the engine's memory over 20,000 steps of an eager training loop.  Takes some minutes.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Final

SHOWN: Final = 8
STEPS: Final = 20_000
CHANNELS: Final = ((4, 1), (8, 2), (16, 2), (32, 2))


def small_resnet18(torch: Any) -> Any:
    """The network, with a sixteenth of the channels."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, channels: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.beside = nn.Conv2d(before, channels, 1, stride, bias=False)

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + self.beside(x))

    blocks: list[Any] = []
    before = 4
    for channels, stride in CHANNELS:
        blocks += [Block(before, channels, stride), Block(channels, channels, 1)]
        before = channels
    return nn.Sequential(
        nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    ).eval()  # fmt: skip


def megabytes() -> int:
    """The resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20


def rounds(library: str, archive: str, count: int, calls: int) -> list[int]:
    """Megabytes after the first round, some between, and the last."""
    torch: Any = import_module(library)
    found, x = [], torch.ones(1, 3, 32, 32)
    for done in range(count):
        model = torch.jit.load(archive)
        for _ in range(calls):
            model(x)
        del model
        if done % max(1, count // SHOWN) == 0 or done == count - 1:
            found.append(megabytes())
    return found


def training(library: str) -> list[int]:
    """Megabytes over the steps of an eager training loop."""
    torch: Any = import_module(library)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer, x, found = torch.optim.Adam(model.parameters()), torch.ones(2, 3), []
    for step in range(STEPS):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
        if step % (STEPS // SHOWN) == 0 or step == STEPS - 1:
            found.append(megabytes())
    return found


def ask(python: str, *what: Any) -> str:
    """The megabytes that a process of its own prints."""
    done = subprocess.run([python, __file__, "--measure", json.dumps(what)], capture_output=True, text=True)
    return " ".join(f"{each:>5}" for each in json.loads(done.stdout)) if done.returncode == 0 else done.stderr[-200:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer")
    parser.add_argument("--rounds", type=int, default=161)
    parser.add_argument("--archive")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        kind, library, *rest = json.loads(given.measure)
        print(json.dumps(rounds(library, *rest) if kind == "rounds" else training(library)))
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = given.archive or f"{folder}/resnet18.pt"
        if not given.archive:
            torch: Any = import_module("engine.torch")
            torch.jit.save(torch.jit.script(small_resnet18(torch)), archive)
        who = [("engine", sys.executable, "engine.torch")] + ([("PyTorch", given.peer, "torch")] if given.peer else [])
        for name, python, library in who:
            for calls in (3, 0):
                row = ask(python, "rounds", library, archive, given.rounds, calls)
                print(f"{name:8} {given.rounds} rounds, {calls} calls  {row}", flush=True)
            print(f"{name:8} {STEPS:,} training steps {ask(python, 'training', library)}", flush=True)


if __name__ == "__main__":
    main()
