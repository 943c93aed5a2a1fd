"""How long `torch.jit.load` takes in a process that has loaded before, beside PyTorch.

    python benchmarks/loads.py --archives FOLDER ... [--peer PYTHON] [--only PART]

In: archives.  Out: for this processor and as an older one a table of milliseconds, of the engine and of PyTorch, and
how many times as long the engine takes.  Each library has a process, which loads all archives in turns; a figure is the
median of `TURNS`.  Loads are as programs do them: from the path, with nothing remembered but what the engine keeps.
What a new process does up to its first call is a column of `ramp.py`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

import archived_calls
import sides
from sides import Aim, Asked, Figures, Section

AIM: Final = Aim(1.0, 0.5)
TURNS: Final = 15


def work(library: str, paths: list[str]) -> None:
    """Write seconds by path."""
    torch = import_module(library)
    for path in paths:
        torch.jit.load(path)
    times: dict[str, list[float]] = {path: [] for path in paths}
    for _ in range(TURNS):
        for path, taken in times.items():
            start = time.perf_counter()
            torch.jit.load(path)
            taken.append(time.perf_counter() - start)
    print(json.dumps({path: statistics.median(taken) for path, taken in times.items()}))


def measure(asked: Asked) -> Figures:
    """Seconds by target, archive and library."""
    paths = archived_calls.archives_in(asked.archives, asked.only)
    found: Figures = {"machine": sides.machine(), "targets": {}}
    for target in sides.targets():
        with sides.library(target) as built:
            own = sides.answer([sys.executable, __file__, "--work", "engine.torch", *paths.values()], target, built)
        other = sides.answer([asked.peer, __file__, "--work", "torch", *paths.values()], target)
        said: dict[str, Any] = {"engine": own or {}, "torch": other or {}}
        found["targets"][target] = {
            name: {each: of[path] for each, of in said.items() if path in of} for name, path in paths.items()
        }
    return found


def lines(figures: Figures) -> Iterator[str]:
    text = "One load in a process that has loaded before, and how many times as long the engine takes as PyTorch."
    yield from sides.introduction("Archives loaded", figures, f"{text} {sides.NOT_ENOUGH}")
    yield from sides.tables(figures["targets"], _table)


def _table(rows: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    body: list[list[str]] = []
    ratios = {name: sides.ratio(found.get("engine"), found.get("torch")) for name, found in rows.items()}
    for name, found in rows.items():
        times = (sides.duration(found[each]) if each in found else "-" for each in ("engine", "torch"))
        body.append([name, *times, AIM.cell(ratios[name])])
    body.append([f"median of {len(rows)}", "", "", AIM.cell(sides.median(ratios.values()))])
    return sides.table(["archive", "engine", "torch", f"/ torch ({AIM})"], body)


SECTION: Final = Section(measure, lines)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3:])
    else:
        sides.alone(SECTION)
