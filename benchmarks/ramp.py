"""How a program gets fast: seconds until calls 1, 10 and 100 of an archive are done, beside torch.jit.

    python benchmarks/ramp.py --archives FOLDER ... [--peer PYTHON] [--only PART]

In: archives with recorded calls (`archived_calls.py`), of which the first is made again and again.  Out: for this
processor and as an older one a table of how many times as long the engine takes, each in a new process that finds the
library of operators and nothing else: as it is; with the library alone, where groups of nodes have no compiler
(`Settings.compilers`) and every operator is called; in mode "off"; and as it is where the call was warmed
(`engine.warm`), so that its plan and kernels are found, too.  "Steady" is the median of the last tenth of the
calls of at least `LONG` seconds.  "From nothing" is the time of import, load and first call together.  Of
`PROCESSES` processes, which take turns, the least counts.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

import sides
from sides import Aim, Asked, Figures, Section

MARKS: Final = ("1", "10", "100")
LONG: Final = 1.5
"""Seconds of calls: kernels of small programs are compiled by then."""
PROCESSES: Final = 2
LIBRARY_ALONE: Final = "library alone"
WARMED: Final = "warmed"
MODES: Final[Mapping[str, Mapping[str, str]]] = {
    "engine": {}, WARMED: {}, LIBRARY_ALONE: {}, "off": {"TSREPL_COMPILE": "off"},
}  # fmt: skip
"""Ways of the engine to run -> variables of the environment that say so."""
AIMS: Final[Mapping[tuple[str, str], Aim]] = {
    ("engine", "1"): Aim(1.3, 1.0), ("engine", "10"): Aim(1.2, 0.9), ("engine", "100"): Aim(1.1, 0.8),
    ("engine", "from nothing"): Aim(1.0, 0.5),
    (WARMED, "1"): Aim(1.0, 0.7), (WARMED, "10"): Aim(0.8, 0.5), (WARMED, "100"): Aim(0.6, 0.4),
}  # fmt: skip
"""Of medians, by way and mark."""
STEADY: Final = Aim(1.2, 0.8), Aim(2.0, 1.3)
"""The steady state with the library alone: the median, and the worst archive."""

# ------------------------------------------------------------------ a process


def fill(path: str) -> None:
    """Leave on disk what the first recorded call needs."""
    torch = import_module("engine.torch")
    module = torch.jit.load(path)
    module.eval()
    method, given = import_module("archived_calls").first_call(torch, path)
    with torch.no_grad():
        import_module("engine").warm(getattr(module, method), *given)


def work(mode: str, path: str) -> None:
    """Write seconds: `from nothing`, until each mark, `steady`."""
    begin = time.perf_counter()
    torch = import_module("torch" if mode == "torch" else "engine.torch")
    torch.set_num_threads(sides.THREADS)
    if mode == LIBRARY_ALONE:
        import_module("engine.executor.plans.lowered").SETTINGS.compilers["cpu"] = None
    module = torch.jit.load(path)
    module.eval()
    loaded = time.perf_counter() - begin
    method, given = import_module("archived_calls").first_call(torch, path)
    call, found, times = getattr(module, method), dict[str, float](), list[float]()
    with torch.no_grad():
        start = end = time.perf_counter()
        for number in count(1):
            call(*given)
            before, end = end, time.perf_counter()
            times.append(end - before)
            if str(number) in MARKS:
                found[str(number)] = end - start
            if number >= int(MARKS[-1]) and end - start > LONG:
                break
    print(json.dumps({"from nothing": loaded + found["1"], **found, "steady": _steady(times)}))


def _steady(times: list[float]) -> float:
    return statistics.median(times[-len(times) // 10 :])


# ------------------------------------------------------------------ the table

COLUMNS: Final = (*MARKS, "steady")


def measure(asked: Asked) -> Figures:
    """Seconds by target, archive, "torch" or mode, and mark."""
    paths = import_module("archived_calls").archives_in(asked.archives, asked.only)
    found: Figures = {"machine": sides.machine(), "targets": {}}
    for target in sides.targets():
        rows = found["targets"][target] = {}
        with sides.library(target) as built:
            for name, path in paths.items():
                rows[name] = _archive(path, target, built, asked.peer)
                print(f"ramp, {sides.shown(target)}: {name}", file=sys.stderr, flush=True)
    return found


def _archive(path: str, target: str, built: Path, peer: str) -> dict[str, dict[str, float]]:
    said: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        filled = shutil.copytree(built, Path(folder, "filled"))
        sides.answer([sys.executable, __file__, "--fill", path], target, TSREPL_KERNEL_CACHE=str(filled))
        stores = {**dict.fromkeys(MODES, built), WARMED: filled}
        for _ in range(PROCESSES):
            for mode, more in {"torch": dict[str, str](), **MODES}.items():
                command = [sys.executable if mode in MODES else peer, __file__, "--work", mode, path]
                reply = sides.answer(command, target, stores.get(mode), **more)
                said.setdefault(mode, []).extend([] if reply is None else [reply])
    return {mode: _least(replies) for mode, replies in said.items() if replies}


def _least(replies: list[dict[str, float]]) -> dict[str, float]:
    return {mark: min(each[mark] for each in replies) for mark in replies[0]}


def lines(figures: Figures) -> Iterator[str]:
    yield from sides.introduction(
        "From the first call on", figures,
        "Seconds until calls 1, 10 and 100 of small archives are done, in those of torch.jit, in new processes that "
        "find the library of operators and nothing else on disk: the engine as it is, with the library alone (no "
        f'kernels of groups), and in mode "off"; "warmed" finds plans and kernels, too. "From nothing": import, load '
        f"and first call. {sides.NOT_ENOUGH}",
    )  # fmt: skip
    yield from sides.tables(figures["targets"], _table)


def _table(rows: Mapping[str, Any]) -> Iterator[str]:
    places = [("engine", "from nothing"), *((mode, column) for mode in MODES for column in COLUMNS)]
    ratios = {name: {place: _ratio(found, *place) for place in places} for name, found in rows.items()}
    body = [[name, *(_cell(*place, each[place]) for place in places)] for name, each in ratios.items()]
    for word, summed in (("median", sides.median), ("worst", sides.worst)):
        values = {place: summed(each[place] for each in ratios.values()) for place in places}
        body.append([f"{word} of {len(rows)}", *(_cell(*place, value, word) for place, value in values.items())])
    body.append(["floor / aim", *(_aims(*place) for place in places)])
    head = ["until call", *(column if mode == "engine" else f"{mode}: {column}" for mode, column in places)]
    yield from sides.table(head, body)


def _ratio(found: Mapping[str, Mapping[str, float]], mode: str, column: str) -> float:
    return sides.ratio(found.get(mode, {}).get(column), found.get("torch", {}).get(column))


def _aim(mode: str, column: str, of: str) -> Aim | None:
    """What is asked of the medians, the worst, or each archive, which is as the worst."""
    if mode == LIBRARY_ALONE and column == "steady":
        return STEADY[of != "median"]
    return AIMS.get((mode, column)) if of == "median" else None


def _cell(mode: str, column: str, value: float, of: str = "worst") -> str:
    aim = _aim(mode, column, of)
    return aim.cell(value) if aim else "-" if value != value else f"{value:.2f}"


def _aims(mode: str, column: str) -> str:
    found = [aim for of in ("median", "worst") if (aim := _aim(mode, column, of))]
    return ", worst ".join(map(str, found))


SECTION: Final = Section(measure, lines)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    elif sys.argv[1:2] == ["--fill"]:
        fill(*sys.argv[2:])
    else:
        sides.alone(SECTION)
