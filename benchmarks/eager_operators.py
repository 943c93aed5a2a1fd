"""Operators that a young process calls, beside PyTorch's: microseconds of calls 4 to 183.

    python benchmarks/eager_operators.py [--peer PYTHON] [--only PART]

Out: for this processor and as an older one, a table of twelve operators at four sizes: how many times as long the
engine takes as PyTorch, and its own time; the geometric means of the sizes and of all below, with what is wanted.  No
gradients are recorded; both have two threads, and the engine its library of operators, which `tsrepl warm` made.  The
processes take turns, and a figure is the median of what they say: what programs meet, not the state after minutes.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import sides
from sides import Aim, Asked, Figures, Section

SIZES: Final = {"16": (4, 4), "1K": (16, 64), "64K": (256, 256), "1M": (1024, 1024)}
AIMS: Final = {"16": Aim(0.4, 0.2), "1K": Aim(0.5, 0.3), "64K": Aim(0.9, 0.7), "1M": Aim(0.6, 0.5)}
"""Of geometric means."""
OPERATORS: Final[Mapping[str, Callable[[Any, Any], Callable[[], object]]]] = {
    "x + y": lambda t, a: lambda: a.x + a.y,
    "x * 1.5": lambda t, a: lambda: a.x * 1.5,
    "relu": lambda t, a: lambda: t.relu(a.x),
    "tanh": lambda t, a: lambda: t.tanh(a.x),
    "gelu": lambda t, a: (lambda f: lambda: f(a.x))(t.nn.functional.gelu),
    "x < y": lambda t, a: lambda: a.x < a.y,
    "where": lambda t, a: lambda: t.where(a.mask, a.x, a.y),
    "x + row": lambda t, a: lambda: a.x + a.row,
    "sum of rows": lambda t, a: lambda: a.x.sum(-1),
    "softmax": lambda t, a: lambda: t.softmax(a.x, -1),
    "layer_norm": lambda t, a: (lambda f: lambda: f(a.x, a.row.shape, a.row, a.row))(t.nn.functional.layer_norm),
    "x + transposed": lambda t, a: lambda: a.x + a.transposed,
}
"""Name -> the call, made of the library and its tensors."""
UNTIMED, ROUND, ROUNDS = 3, 20, 9
"""Calls before the first that counts, calls that are timed together, and how often."""


class Arguments:
    """Tensors of float32 of that shape, and a row of them."""

    def __init__(self, torch: Any, shape: tuple[int, int]) -> None:
        torch.manual_seed(0)
        self.x, self.y, self.row = torch.randn(shape), torch.randn(shape), torch.ones(shape[1])
        self.mask, self.transposed = self.x < self.y, torch.randn(shape[::-1]).t()


def _seconds(call: Callable[[], object]) -> float:
    for _ in range(UNTIMED):
        call()
    rounds: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(ROUND):
            call()
        rounds.append((time.perf_counter() - start) / ROUND)
    return statistics.median(rounds)


def work(library: str, only: str) -> None:
    """Write seconds by size and operator, of those whose names have this part."""
    torch = import_module(library)
    torch.set_num_threads(sides.THREADS)
    found: dict[str, dict[str, float]] = {}
    with torch.no_grad():
        for size, shape in SIZES.items():
            given = Arguments(torch, shape)
            found[size] = {n: _seconds(make(torch, given)) for n, make in OPERATORS.items() if only in n}
    print(json.dumps(found))


# ------------------------------------------------------------------ the table


def measure(asked: Asked) -> Figures:
    """Seconds by target, library, size and operator."""
    found: Figures = {"machine": sides.machine(), "targets": {}}
    work = [str(Path(__file__)), "--work", asked.only]
    for target in sides.targets():
        replies: dict[str, list[Any]] = {"engine": [], "torch": []}
        with sides.library(target) as built:
            for _ in range(sides.PROCESSES):
                replies["engine"].append(sides.answer([sys.executable, *work, "engine.torch"], target, built))
                replies["torch"].append(sides.answer([asked.peer, *work, "torch"], target))
        found["targets"][target] = {each: _medians(said) for each, said in replies.items()}
        print(f"eager operators, {sides.shown(target)}: done", file=sys.stderr, flush=True)
    return found


def _medians(replies: list[Any]) -> dict[str, dict[str, float]] | None:
    said = [each for each in replies if each is not None]
    if not said:
        return None
    first = said[0].items()
    return {size: {name: statistics.median(each[size][name] for each in said) for name in row} for size, row in first}


def _rows(own: Any, other: Any) -> Iterator[list[str]]:
    ratios = {size: {n: sides.ratio(own[size][n], other and other[size][n]) for n in own[size]} for size in SIZES}
    for name in own["16"]:
        yield [name, *(f"{ratios[size][name]:.2f} ({sides.duration(own[size][name])})" for size in SIZES), ""]
    means = {size: _geometric(ratios[size].values()) for size in SIZES}
    yield ["geometric mean", *(AIMS[size].cell(means[size]) for size in SIZES), f"{_geometric(means.values()):.2f}"]
    yield ["floor / aim", *(str(AIMS[size]) for size in SIZES), ""]


def _geometric(values: Iterable[float]) -> float:
    return math.exp(statistics.mean(map(math.log, values)))


def lines(figures: Figures) -> Iterator[str]:
    text = (
        "Calls 4 to 183 of a new process, with two threads and no gradients: how many times as long the engine takes as"
    )
    yield from sides.introduction(
        "Operators called one by one", figures, f"{text} PyTorch, and its time. {sides.NOT_ENOUGH}"
    )
    yield from sides.tables(figures["targets"], _table)


def _table(found: Mapping[str, Any]) -> Iterator[str]:
    if found["engine"] is not None:
        yield from sides.table(["elements of float32", *SIZES, "all"], _rows(found["engine"], found["torch"]))


SECTION: Final = Section(measure, lines)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[3], sys.argv[2])
    else:
        sides.alone(SECTION)
