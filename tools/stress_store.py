"""Let many processes fill, read, corrupt and clear one store of plans and kernels at once.

    python tools/stress_store.py [--processes 1000] [--at-once 16] [--seconds 900] [--seed 0]

In: nothing but numbers.  Out: how many processes of each kind there were, how many were killed, and seconds.  The exit
status is 1 if one gave another value than mode "off", crashed or did not end in time.  The library of operators is that
of the user's own store; it is copied, and its copy is left alone.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

import engine
import engine.torch as torch
from engine.fuser.backend import tiering
from engine.fuser.library import building, image_files
from engine.lang.records import dataclass
from engine.torch import nn

LIMIT: Final = 60.0
"""Seconds that a process may take."""
ROOT: Final = Path(__file__).parents[1]
TOLERANCE: Final = 1e-4


# ------------------------------------------------------------------ programs


class Pointwise(nn.Module):
    """One kernel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * 2.0 + 1.0).softmax(-1)


class Layers(nn.Module):
    """Products and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.parts(x.float()) + x
        return found


class Branches(nn.Module):
    """Groups in a loop."""

    def forward(self, x: torch.Tensor, n: int = 3) -> torch.Tensor:
        for i in range(n):
            if bool(x.sum() > 0):
                x = torch.sigmoid(x) * i
            else:
                x = x.abs() + 1
        return x


class Left(nn.Module):
    """A sort is in no kernel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (torch.sort(x * 2, -1)[0] + x.sum().item()).clamp(0, 1) * 3


MODULES: Final[tuple[type[nn.Module], ...]] = (Pointwise, Layers, Branches, Left)
SIZES: Final = ((4, 8), (1, 8), (33, 8))

CALLS: Final = """
import sys, numpy as np, engine, engine.torch as torch
from engine.fuser.backend import tiering
torch.set_grad_enabled(False)
waits, path, *inputs = sys.argv[1:]
m = torch.jit.load(path)
for _ in range(4):
    for each in inputs:
        found, wanted = m(torch.from_numpy(np.load(each + ".x.npy"))).numpy(), np.load(each + ".y.npy")
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=1e-4, atol=1e-5):
            print("wrong", path, each, abs(found - wanted).max())
            sys.exit(3)
        if waits == "1":
            tiering.wait()
if tiering.failures():
    print(*tiering.failures())
    sys.exit(4)
"""
"""Calls a program, whose values are compared with those of mode "off"; waits for kernels, or does not."""
CLEAR: Final = """
from engine.fuser.backend import kernel_cache
for each in kernel_cache.entries():
    kernel_cache.remove(each)
"""
"""The part of `tsrepl cache clear` that is about programs."""


def _prepared(folder: Path) -> list[tuple[Path, list[str]]]:
    """Archives of the programs, and for each the beginnings of names of files that have inputs and results."""
    before = tiering.mode()
    tiering.set_mode("off")
    found = []
    try:
        torch.manual_seed(0)
        for module in MODULES:
            path = folder / f"{module.__name__}.pt"
            torch.jit.save(torch.jit.script(module().eval()), str(path))
            m = torch.jit.load(str(path))
            names = []
            for sizes in SIZES:
                x = engine.randn(*sizes)
                name = str(folder / f"{module.__name__}-{sizes[0]}")
                with torch.no_grad():
                    np.save(f"{name}.x.npy", x.numpy())
                    np.save(f"{name}.y.npy", m(x).numpy())
                names.append(name)
            found.append((path, names))
    finally:
        tiering.set_mode(before)
    return found


# ------------------------------------------------------------------ processes


@dataclass(slots=True)
class Store:
    """The store that all share, the programs, and what chance decides."""

    folder: Path
    programs: Sequence[tuple[Path, list[str]]]
    chance: random.Random

    @property
    def files(self) -> list[Path]:
        """The files of plans and kernels, and those that are being written."""
        with os.scandir(self.folder) as entries:
            return [Path(each.path) for each in entries if ".kernel" in each.name or ".unfinished" in each.name]

    def python(self, program: str, *words: str, **settings: str) -> subprocess.Popen[str]:
        """A process that runs this."""
        environment = {**os.environ, "TSREPL_KERNEL_CACHE": str(self.folder), "PYTHONPATH": str(ROOT), **settings}
        command = [sys.executable, "-c", program, *words]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
        )

    def calls(self, waits: bool, mode: str, **settings: str) -> subprocess.Popen[str]:
        """A process that calls a program."""
        path, names = self.chance.choice(self.programs)
        chosen = self.chance.sample(names, self.chance.randint(1, len(names)))
        return self.python(CALLS, str(int(waits)), str(path), *chosen, TSREPL_COMPILE=mode, **settings)

    def flip(self) -> None:
        """Change a byte of some files."""
        for path in self._some():
            with suppress(OSError), open(path, "r+b") as file:
                size = os.fstat(file.fileno()).st_size
                if size:
                    file.seek(self.chance.randrange(size))
                    byte = file.read(1)
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([byte[0] ^ 1 << self.chance.randrange(8)]))

    def cut(self) -> None:
        """Cut some files off."""
        for path in self._some():
            with suppress(OSError):
                os.truncate(path, self.chance.randrange(200))

    def drop(self) -> None:
        """Remove some files."""
        for path in self._some():
            with suppress(OSError):
                path.unlink()

    def _some(self) -> list[Path]:
        files = self.files
        return self.chance.sample(files, min(len(files), self.chance.randint(1, 6)))

    def kill_worker(self) -> None:
        """End a process that compiles for others, whose lock tells who it is."""
        for number in workers(self.folder):
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)


def workers(folder: Path) -> Iterator[int]:
    """The processes that compile for those that use the store."""
    wanted = f"TSREPL_KERNEL_CACHE={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_ours = b"engine.executor.plans.jobs" in (entry / "cmdline").read_bytes()
            if is_ours and wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


Start = Callable[[Store], subprocess.Popen[str]]
KINDS: Final[Mapping[str, tuple[int, Start]]] = {
    "fill": (6, lambda store: store.calls(True, "background")),
    "fill at once": (2, lambda store: store.calls(False, "eager")),
    "read": (6, lambda store: store.calls(False, "background")),
    "alone": (1, lambda store: store.calls(True, "background", TSREPL_WORKER="0")),
    "verify": (1, lambda store: store.calls(True, "eager", TSREPL_VERIFY="1")),
    "clear": (1, lambda store: store.python(CLEAR)),
}
"""Processes by kind: how often, and how they are started."""
MISCHIEF: Final[Mapping[str, tuple[int, Callable[[Store], None]]]] = {
    "nothing": (8, lambda store: None), "flip bytes": (3, Store.flip), "cut files": (1, Store.cut),
    "remove files": (2, Store.drop), "kill the worker": (1, Store.kill_worker),
}  # fmt: skip
"""The things that are done to the store between two starts: how often, and what."""
KILLED: Final = 0.08
"""Part of processes that are killed at some moment."""


@dataclass(slots=True)
class Running:
    """A process that was started: its kind, when it is to be killed, or must have ended (`time.monotonic`)."""

    kind: str
    process: subprocess.Popen[str]
    killed: float
    until: float

    def ended(self) -> str | None:
        """Why it is at fault, "" if it is not; None while it runs."""
        status, now = self.process.poll(), time.monotonic()
        if status is None:
            if now > self.killed:
                self.process.kill()
            elif now > self.until:
                self.process.kill()
                return f"hangs: {self.process.communicate()[0]}"
            return None
        said = self.process.communicate()[0].strip()
        if status == 0 or (status == -signal.SIGKILL and now > self.killed):
            return ""
        return f"ends with {status}: {said[-2000:]}"


def stress(processes: int, at_once: int, seconds: float, seed: int) -> int:
    """Run them; the number of those at fault."""
    chance = random.Random(seed)
    room = image_files.folder()
    assert room is not None
    building.build(room, waits=True)
    begin, counts, faults = time.monotonic(), Counter[str](), 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a worker may write yet
        kept = Path(folder, "kernels")
        shutil.copytree(room, kept / "library")
        kept.chmod(0o700)
        store = Store(kept, _prepared(Path(folder)), chance)
        running: list[Running] = []
        while running or counts["processes"] < processes:
            is_late = time.monotonic() - begin > seconds
            while len(running) < at_once and counts["processes"] < processes and not is_late:
                what, mischief = _chosen(MISCHIEF, chance)
                mischief(store)
                kind, start = _chosen(KINDS, chance)
                now = time.monotonic()
                killed = now + chance.uniform(0.05, 2.5) if chance.random() < KILLED else float("inf")
                running.append(Running(kind, start(store), killed, now + LIMIT))
                counts.update((kind, what, "processes"), killed=killed < float("inf"))
            for each in [*running]:
                if (fault := each.ended()) is not None:
                    running.remove(each)
                    if fault:
                        faults += 1
                        print(f"{each.kind} {fault}", flush=True)
            if is_late and not running:
                break
            time.sleep(0.01)
        store.kill_worker()
    counts.pop("nothing", None)
    print(", ".join(f"{count} {name}" for name, count in counts.most_common()), f"in {time.monotonic() - begin:.0f} s")
    print(f"{faults} at fault")
    return faults


def _chosen(table: Mapping[str, tuple[int, Any]], chance: random.Random) -> tuple[str, Any]:
    name = chance.choices([*table], [often for often, _ in table.values()])[0]
    return name, table[name][1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=900.0, help="no process is started after these")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    return int(stress(options.processes, options.at_once, options.seconds, options.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
