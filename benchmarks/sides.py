"""The engine and PyTorch side by side, each in processes of its own, on this processor and as an older one.

In: a script that answers with a line of JSON, and for whom.  Out: the answers; lines of Markdown.  What the tables of
`docs/performance.md` have in common stands here: the environment of a process, the folder with the library of operators
and nothing else that the engine's processes begin with, the cells of tables, and the command line of a table alone.

A table is a module with a `SECTION`: `measure` gives figures that JSON can hold, `lines` the text of these figures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
THREADS: Final = 2
PROCESSES: Final = 3
"""Processes that measure the same; the least, or the median, of what they say counts."""
PAUSE: Final = 0.05
"""Seconds between two processes: threads that spin go to sleep."""
OLDER: Final = "x86-64-v3"
TARGETS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {"TSREPL_TARGET": "", "OPENBLAS_CORETYPE": ""},
    OLDER: {
        "TSREPL_TARGET": OLDER, "OPENBLAS_CORETYPE": "Haswell", "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}  # fmt: skip
"""Processors to stand for, "" for this one -> the environment in which each library does so."""


class Aim(NamedTuple):
    """Times of the engine in those of PyTorch, or seconds: what is enough, and what is wanted."""

    floor: float
    aim: float

    def __str__(self) -> str:
        return f"{self.floor:g} / {self.aim:g}"

    def cell(self, value: float, text: str = "") -> str:
        """The value, in bold where it is not enough; "-" where there is none."""
        shown = text or f"{value:.2f}"
        return "-" if math.isnan(value) else f"**{shown}**" if value > self.floor else shown


Figures = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """The Python that has PyTorch, folders of archives, a part of the names of the rows that are wanted."""

    peer: str = sys.executable
    archives: Sequence[str] = ()
    only: str = ""


class Section(NamedTuple):
    """A table of the page: figures, and their text."""

    measure: Callable[[Asked], Figures]
    lines: Callable[[Figures], Iterator[str]]


# ------------------------------------------------------------------ the machine


def machine() -> str:
    """The name of this processor, as its system and as LLVM call it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "a processor")
    found = f"{name} ({_engine('engine.fuser.backend.target').host().cpu}), Python {platform.python_version()}"
    return found if os.cpu_count() is None else f"{found}, {os.cpu_count()} processors"


def targets() -> list[str]:
    """The processors that this one can stand for, "" first; the older one where it is another."""
    can = [each.name for each in _engine("engine.fuser.library.processor").levels()]
    return ["", *(each for each in TARGETS if each in can[1:])]


def shown(target: str) -> str:
    """A target in words."""
    return target or "as it is"


def _engine(name: str) -> Any:
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return import_module(name)


# ------------------------------------------------------------------ processes


def environment(target: str, threads: int | None = THREADS, **more: str) -> dict[str, str]:
    """The variables of a process that stands for the target; None: it has threads as it wants them."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    count = {} if threads is None else dict.fromkeys(names, str(threads))
    known = TARGETS.get(target, {"TSREPL_TARGET": target})
    return {**os.environ, **count, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "", **known, **more}


@contextmanager
def library(target: str) -> Iterator[Path]:
    """A folder as `tsrepl warm` leaves it: the library of operators for the target, and nothing else."""
    made = environment(target)
    warm = [sys.executable, "-m", "tsrepl", "warm"]
    subprocess.run(warm, env=made, check=True, capture_output=True)
    cache = _engine("engine.fuser.backend.kernel_cache").directory()
    with tempfile.TemporaryDirectory() as folder:
        if cache is not None:
            shutil.copytree(cache / "library", Path(folder, "library"))
        subprocess.run(warm, env={**made, "TSREPL_KERNEL_CACHE": folder}, check=True, capture_output=True)
        yield Path(folder)


def answer(command: Sequence[str], target: str, built: Path | None = None, **more: str) -> Any:
    """The last line that a new process writes, from JSON; None where it fails.

    For the engine `built` is what lies on disk: the process gets a copy, so that it leaves nothing to the next.
    """
    with tempfile.TemporaryDirectory() as folder:
        if built is not None:
            more["TSREPL_KERNEL_CACHE"] = str(shutil.copytree(built, Path(folder, "cache")))
        given = environment(target, **more)
        done = subprocess.run(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(PAUSE)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return None


# ------------------------------------------------------------------ text

NOT_ENOUGH: Final = "What is not enough is bold."


def introduction(title: str, figures: Figures, text: str) -> Iterator[str]:
    """The lines of a section before its tables: its title, the machine, and the text in lines of 120."""
    yield from (f"## {title}", "", *textwrap.wrap(f"On {figures['machine']}. {text}".strip(), 120), "")


def tables(of_targets: Mapping[str, Any], table_of: Callable[[Any], Iterator[str]]) -> Iterator[str]:
    """The same table of what was found for each target."""
    for target, found in of_targets.items():
        yield from (f"{shown(target)}:", "", *table_of(found), "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, as Markdown that reads well as text too."""
    every = [head, *rows]
    widths = [max(len(cells[i]) for cells in every) for i in range(len(head))]
    for number, cells in enumerate(every):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
        if number == 0:
            yield "| " + " | ".join("-" * width for width in widths) + " |"


def duration(seconds: float) -> str:
    """Seconds as text, with three digits."""
    unit, scale = next((u, s) for u, s in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if seconds >= s or u == "µs")
    return f"{seconds / scale:.3g} {unit}"


def ratio(own: float | None, other: float | None) -> float:
    """How many times as long the engine takes; NaN where either has no figure."""
    return float("nan") if own is None or not other else own / other


def median(values: Iterable[float]) -> float:
    """The median of what there is; NaN of nothing."""
    found = [each for each in values if not math.isnan(each)]
    return statistics.median(found) if found else float("nan")


def worst(values: Iterable[float]) -> float:
    """The greatest of what there is; NaN of nothing."""
    return max((each for each in values if not math.isnan(each)), default=float("nan"))


def alone(section: Section) -> None:
    """The command line of a table: measure it and print its text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--only", default="", help="a part of the names of the rows that are wanted")
    parser.add_argument("--archives", nargs="*", default=[], help="folders with NAME.pt beside NAME.json")
    options = parser.parse_args()
    print(*section.lines(section.measure(Asked(options.peer, options.archives, options.only))), sep="\n")
