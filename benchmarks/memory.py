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
            made = import_module("resnet18")  # which the processes that are measured do not load
            network = made.resnet18(torch, width=4, classes=10)
            torch.jit.save(torch.jit.trace(network, torch.ones(1, 3, 32, 32)), archive)
        who = [("engine", sys.executable, "engine.torch")] + ([("PyTorch", given.peer, "torch")] if given.peer else [])
        for name, python, library in who:
            for calls in (3, 0):
                row = ask(python, "rounds", library, archive, given.rounds, calls)
                print(f"{name:8} {given.rounds} rounds, {calls} calls  {row}", flush=True)
            print(f"{name:8} {STEPS:,} training steps {ask(python, 'training', library)}", flush=True)


if __name__ == "__main__":
    main()
