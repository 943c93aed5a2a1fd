"""Opening, saving and first running of archives.

    python benchmarks/archives.py [--peer PYTHON]

Out, each with the value we want:
- the time to open an archive of 200 MB and print its code, in times of that for 2 MB (at most 1.5);
- the speed of saving it, in times of that of `cp` on the same file (at least 0.6);
- the wall time of a fresh process that loads an archive of ResNet-18's size and runs it once, in times of the same with
  PyTorch (at most 0.5; `--peer` is a Python that has it, by default this one), and its peak of memory above the weights
  (activations and at most 150 MB).
Takes about a minute.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from resnet18 import resnet18, with_values

import engine
import engine.torch as torch

WIDTHS: Final = {"small": 224, "large": 2240}
LAYERS: Final = 10
ROUNDS: Final = 5
ROOT: Final = Path(__file__).parents[1]
RUN: Final = """
import sys
if sys.argv[1] == "engine":
    sys.path.insert(0, sys.argv[3])
    import engine as torch
    load = torch.load
else:
    import torch
    load = torch.jit.load
print(float(load(sys.argv[2])(torch.ones(1, 3, 224, 224)).sum()))
print(next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def linear_layers(width: int) -> Any:
    layers: list[Any] = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(width, width), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers)


def seconds(action: Any) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def opening(folder: Path) -> dict[str, float]:
    def open_it(name: str) -> None:
        assert engine.load(folder / f"{name}.pt").code

    return {name: min(seconds(lambda n=name: open_it(n)) for _ in range(ROUNDS)) for name in WIDTHS}


def saving(folder: Path) -> tuple[float, float]:
    """Seconds of a save and of `cp`, turn by turn, each over the file of the turn before."""
    module, saves, copies = engine.load(folder / "large.pt"), [], []
    for _ in range(ROUNDS + 1):
        saves.append(seconds(lambda: module.save(folder / "saved.pt")))
        copies.append(seconds(lambda: subprocess.run(["cp", folder / "saved.pt", folder / "copy.pt"], check=True)))
    return min(saves[1:]), min(copies[1:])


def first_run(python: str, which: str, path: Path) -> tuple[float, int] | None:
    """Seconds of a fresh process, and its peak of memory in MB; None where the library is not there.

    Bytecode is kept, as it is of what is installed.
    """
    best, peak = float("inf"), 0
    kept = {"PYTHONPYCACHEPREFIX": str(path.parent / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        command = [python, "-c", RUN, which, str(path), str(ROOT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **kept})
        if done.returncode:
            return None
        best, peak = min(best, time.perf_counter() - start), int(done.stdout.split()[-1])
    return best, peak


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", default=sys.executable)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size, width in WIDTHS.items():
            torch.jit.script(linear_layers(width)).save(folder / f"{size}.pt")
        times = opening(folder)
        print(f"open and print code: 2 MB {times['small']:.4f} s, 200 MB {times['large']:.4f} s")
        print(f"  {times['large'] / times['small']:.2f} times as long (at most 1.5)")
        save, copy = saving(folder)
        print(f"save 200 MB {save:.3f} s, cp {copy:.3f} s")
        print(f"  {copy / save:.2f} of its speed (at least 0.6)")
        path = folder / "resnet18.pt"
        model = with_values(torch, resnet18(torch))
        torch.jit.trace(model, torch.ones(1, 3, 224, 224)).save(path)
        ours, theirs = first_run(sys.executable, "engine", path), first_run(options.peer, "torch", path)
        assert ours is not None
        print(
            f"load and first forward: {ours[0]:.2f} s, peak {ours[1]} MB with {path.stat().st_size >> 20} MB of weights"
        )
        if theirs is not None:
            print(
                f"  PyTorch {theirs[0]:.2f} s, peak {theirs[1]} MB: {ours[0] / theirs[0]:.2f} of its time (at most 0.5)"
            )


if __name__ == "__main__":
    main()
