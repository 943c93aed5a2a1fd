"""Programs and models beside torch.jit and others.

    python benchmarks/programs.py [--peer PYTHON] [--only PART] [--archives FOLDER ...]

Out: for each workload the median time of one call in the engine, the ratios to torch.jit, torch.compile, numexpr, numba
and onnxruntime, as far as the Python that `--peer` names has them, and the engine's share of the machine's limit: the
time that copying the bytes or computing the flops takes at least.  Each implementation runs in a process of its own
with two threads; they take turns of 0.1 s, and ratios are those of medians.  First calls are those of new processes,
with kernels and Python's bytecode already on disk.  The folders of `--archives` hold NAME.pt beside NAME.json, whose
first call has tensors of float32 as arguments; the last row sums them up.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import sides
from sides import Aim, Asked, Figures, Section
from workloads import MODELS, PROGRAMS, Workload

HERE: Final = Path(__file__).parent
OTHERS: Final = ("torch.jit", "torch.compile", "numexpr", "numba", "onnxruntime")
TURN: Final = 0.1
TURNS: Final = 7
FIRSTS: Final = ("engine", "torch.jit")
"""Those whose first calls are compared, the fastest of `PROCESSES`."""
PROCESSES: Final = 3
CLOSE: Final = 1e-3
"""The greatest relative difference of the sums over results."""


class Worker:
    """A process with one implementation."""

    def __init__(self, python: str, name: str, folder: str, archives: Mapping[str, Any]) -> None:
        self.given = python, name, folder, archives
        environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
        environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        self.process = subprocess.Popen(
            [python, str(HERE / "programs_worker.py"), name, folder, json.dumps(archives)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip

    def ask(self, *what: Any) -> dict[str, Any]:
        """The reply; an `error` when the process has died."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps(what), file=self.process.stdin, flush=True)
            return dict(json.loads(self.process.stdout.readline()))
        except (OSError, ValueError):
            return {"error": f"ended with {self.process.poll()}"}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def first(self, name: str) -> float:
        """Seconds of the first call of a workload in a new process like this one; NaN where there is none."""
        other = Worker(*self.given)
        reply = other.ask("first", name)
        other.close()
        return float(reply.get("first", float("nan")))


def measured(name: str, workers: Mapping[str, Worker]) -> dict[str, Any]:
    """The figures of one workload: seconds by implementation, first calls, and errors."""
    prepared = {each: worker.ask("prepare", name) for each, worker in workers.items()}
    errors = {each: reply["error"] for each, reply in prepared.items() if "error" in reply}
    sums = {each: reply["sum"] for each, reply in prepared.items() if each not in errors}
    turns: dict[str, list[float]] = {each: [] for each in sums}
    for _ in range(TURNS):
        for each, found in turns.items():
            reply = workers[each].ask("turn", TURN)
            found.append(reply.get("seconds", float("nan")))
            time.sleep(0.01)  # threads that spin go to sleep
    expected = sums.get("torch.jit", sums.get("engine"))
    differing = [
        each for each, found in sums.items() if expected is not None and abs(found - expected) > CLOSE * abs(expected)
    ]
    seconds = {each: statistics.median(found) for each, found in turns.items()}
    compared = [each for each in FIRSTS if each in seconds]
    first = {each: min(workers[each].first(name) for _ in range(PROCESSES)) for each in compared}
    return {"seconds": seconds, "first": first, "errors": errors, "differing": differing}


def row(name: str, workload: Workload, found: Mapping[str, Any], limits: Mapping[str, float]) -> list[str]:
    """The cells of a workload."""
    seconds = found["seconds"]
    own = seconds.get("engine")
    if own is None:
        return [name, found["errors"]["engine"], *["-"] * (len(OTHERS) + 3)]
    ratios = {each: own / seconds[each] for each in OTHERS if each in seconds}
    least = max(workload.bytes / limits["bytes"], workload.flops / limits["flops"])
    marked = {each: f"{ratio:.2f}" + ("≠" if each in found["differing"] else "") for each, ratio in ratios.items()}
    first = found["first"]
    return [
        name, sides.duration(own), *(marked.get(each, "-") for each in OTHERS),
        str(Aim(workload.floor, workload.aim)), f"{least / own:.0%}" if least else "-",
        f"{first['engine'] / first['torch.jit']:.2f}" if "torch.jit" in first else "-",
    ]  # fmt: skip


def summary(figures: Sequence[Mapping[str, Any]]) -> list[str]:
    """The cells of a row for all archives: medians and the greatest ratios."""

    def spread(times: str, other: str) -> str:
        found = [
            each[times]["engine"] / each[times][other]
            for each in figures
            if {"engine", other} <= each[times].keys() and each[times][other] > 0
        ]
        return f"{statistics.median(found):.2f}, at most {max(found):.2f}" if found else "-"

    return [
        f"{len(figures)} small archives, median", "-", *(spread("seconds", each) for each in OTHERS), "1 / 0.5", "-",
        spread("first", "torch.jit"),
    ]  # fmt: skip


HEAD: Final = ("workload", "engine", *(f"/ {each}" for each in OTHERS), "floor / aim", "of the limit", "first call")


def archives_in(folders: Sequence[str]) -> dict[str, tuple[str, list[list[int]]]]:
    """Name -> path and shapes, of archives that are called with tensors of float32."""
    found: dict[str, tuple[str, list[list[int]]]] = {}
    for path in sorted(each for folder in folders for each in Path(folder).glob("*.pt")):
        facts = path.with_suffix(".json")
        calls = json.loads(facts.read_text()).get("calls", []) if facts.exists() else []
        given = [each.get("tensor") if isinstance(each, dict) else None for each in calls[0]["args"]] if calls else []
        if given and calls[0]["method"] == "forward" and all(each and each["dtype"] == "float32" for each in given):
            found[path.stem] = (str(path), [each["shape"] for each in given if each])
    return found


def _known(archives: Iterable[str]) -> dict[str, Workload]:
    """What is asked of the workloads and of archives, by name."""
    return {**PROGRAMS, **MODELS, **{name: Workload("", [], 1.3, 0.5) for name in archives}}


def measure(asked: Asked) -> Figures:
    """The machine's limits (bytes and flops a second), and the figures of each workload."""
    archives = archives_in(asked.archives)
    with tempfile.TemporaryDirectory() as folder:
        workers = {"engine": Worker(sys.executable, "engine", folder, archives)}
        workers |= {each: Worker(asked.peer, each, folder, archives) for each in OTHERS}
        workers["torch.jit"].ask("models")
        limits = workers["engine"].ask("limits")
        figures: Figures = {}
        for name, workload in _known(archives).items():
            if asked.only in name:
                figures[name] = measured(name, workers)
                print(*row(name, workload, figures[name], limits), sep="  ", file=sys.stderr, flush=True)
        for worker in workers.values():
            worker.close()
    named = [name for name in archives if name in figures]
    return {"machine": sides.machine(), "limits": limits, "workloads": figures, "archives": named}


def lines(figures: Figures) -> Iterator[str]:
    limits, found, archives = figures["limits"], figures["workloads"], figures["archives"]
    yield from sides.introduction(
        "Programs and models", figures,
        "Medians of one call with two threads; the columns with `/` are how many times as long the engine takes (below "
        '1: the engine is faster; `≠`: the results differ). "Of the limit" is the share of what the machine can do: '
        f"{limits['bytes'] / 1e9:.1f} GB/s for copies, {limits['flops'] / 1e9:.0f} GFLOP/s for products. "
        '"First call" is that of the engine in times of torch.jit\'s, each in a new process, with kernels of an '
        "earlier process on disk.",
    )  # fmt: skip
    known = _known(archives)
    rows = [row(name, known[name], each, limits) for name, each in found.items()]
    if archives:
        rows.append(summary([found[name] for name in archives]))
    yield from (*sides.table(HEAD, rows), "")


SECTION: Final = Section(measure, lines)

if __name__ == "__main__":
    sides.alone(SECTION)
