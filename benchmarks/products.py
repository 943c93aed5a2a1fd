"""Products and convolutions beside numpy's BLAS and PyTorch, in GFLOP/s, on this processor and as an older one.

    python benchmarks/products.py [--peer PYTHON] [--only PART]

Out: for each target and number of threads a table: `relu(linear)` of square matrices of float32, and the convolutions
of ResNet-50 for one image, with bias and relu.  The columns are the engine, numpy (the product alone) and, where the
Python that `--peer` names has it, PyTorch; then the engine's rate in times of the best of the others.  Each has a
process of its own; they take turns of 0.1 s, and rates are those of the fastest calls.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import sides
from sides import Asked, Figures, Section

HERE: Final = Path(__file__)
LIBRARIES: Final = ("engine", "numpy", "torch")
THREADS: Final = (1, 2)
TURN: Final = 0.1
BURST: Final = 0.0015
"""Seconds of calls that are timed together: shorter than the system lets others have the processor."""
TURNS: Final = 5
CLOSE: Final = 1e-3


class Convolution(NamedTuple):
    """Channels, those of the result, rows and columns of the image; rows and columns of the kernel, the step."""

    channels: int
    outputs: int
    side: int
    kernel: int
    stride: int = 1
    groups: int = 1

    @property
    def flops(self) -> int:
        places = ((self.side + 2 * (self.kernel // 2) - self.kernel) // self.stride + 1) ** 2
        return 2 * self.outputs * self.channels // self.groups * self.kernel**2 * places


SQUARES: Final = {f"relu(linear), {n}³": n for n in (64, 128, 256, 384, 512, 768, 1024)}
CONVOLUTIONS: Final = {
    "7 x 7 / 2, 3 → 64, 224": Convolution(3, 64, 224, 7, 2),
    "1 x 1, 64 → 64, 56": Convolution(64, 64, 56, 1),
    "3 x 3, 64, 56": Convolution(64, 64, 56, 3),
    "1 x 1, 64 → 256, 56": Convolution(64, 256, 56, 1),
    "1 x 1, 256 → 64, 56": Convolution(256, 64, 56, 1),
    "1 x 1 / 2, 256 → 512, 56": Convolution(256, 512, 56, 1, 2),
    "3 x 3 / 2, 128, 56": Convolution(128, 128, 56, 3, 2),
    "3 x 3, 128, 28": Convolution(128, 128, 28, 3),
    "1 x 1, 128 → 512, 28": Convolution(128, 512, 28, 1),
    "3 x 3 / 2, 256, 28": Convolution(256, 256, 28, 3, 2),
    "3 x 3, 256, 14": Convolution(256, 256, 14, 3),
    "1 x 1, 1024 → 256, 14": Convolution(1024, 256, 14, 1),
    "3 x 3 / 2, 512, 14": Convolution(512, 512, 14, 3, 2),
    "3 x 3, 512, 7": Convolution(512, 512, 7, 3),
    "1 x 1, 512 → 2048, 7": Convolution(512, 2048, 7, 1),
    "3 x 3, 512, 2": Convolution(512, 512, 2, 3),
    "3 x 3 depthwise, 128, 56": Convolution(128, 128, 56, 3, 1, 128),
    "3 x 3 / 2 depthwise, 128, 56": Convolution(128, 128, 56, 3, 2, 128),
}
ROWS: Final[Mapping[str, int | Convolution]] = {**SQUARES, **CONVOLUTIONS}

# ------------------------------------------------------------------ a process with one library

Call = Callable[[], Any]


def _arrays(of: int | Convolution) -> list[Any]:
    shapes: list[tuple[int, ...]] = [(of, of), (of, of), (of,)] if isinstance(of, int) else []
    if isinstance(of, Convolution):
        kernel = (of.outputs, of.channels // of.groups, of.kernel, of.kernel)
        shapes = [(1, of.channels, of.side, of.side), kernel, (of.outputs,)]
    source = np.random.default_rng(0)
    return [source.standard_normal(shape).astype(np.float32) for shape in shapes]


def _text(of: int | Convolution) -> str:
    call = "torch.nn.functional.linear(x, w, b)"
    if isinstance(of, Convolution):
        step, border = of.stride, of.kernel // 2
        call = f"torch.conv2d(x, w, b, [{step}, {step}], [{border}, {border}], [1, 1], {of.groups})"
    return f"def f(x, w, b):\n    return torch.relu({call})\n"


def _call(library: str, of: int | Convolution, threads: int) -> tuple[Call, float]:
    """What is timed, and the sum over its result, NaN of what is not the whole."""
    arrays = _arrays(of)
    if library == "numpy":
        if isinstance(of, Convolution):
            raise NotImplementedError
        x, weight = arrays[0], arrays[1].T
        return (lambda: x @ weight), float("nan")
    torch = import_module("engine.torch" if library == "engine" else "torch")
    torch.set_num_threads(threads)
    function, given = torch.jit.CompilationUnit(_text(of)).f, [torch.from_numpy(each) for each in arrays]

    def call() -> Any:
        with torch.no_grad():
            return function(*given)

    for _ in range(6):
        result = call()
    return call, float(result.double().abs().sum())


def _turn(call: Call) -> float:
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    count, best = max(1, int(BURST / max(once, 1e-7))), float("inf")
    end = time.perf_counter() + TURN
    while (start := time.perf_counter()) < end:
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def work(library: str, threads: int) -> None:
    """Answer `["prepare", row]` with the sum over the result and `["turn"]` with seconds, line by line."""
    call: Call = lambda: None  # noqa: E731
    for line in sys.stdin:
        what, *given = json.loads(line)
        try:
            if what == "prepare":
                call, found = _call(library, ROWS[given[0]], threads)
            else:
                found = _turn(call)
        except (ImportError, NotImplementedError):
            found = None
        print(json.dumps(found), flush=True)


# ------------------------------------------------------------------ the tables


class Worker:
    """A process with one library."""

    def __init__(self, python: str, library: str, threads: int, target: str) -> None:
        environment = sides.environment(target, threads, TSREPL_COMPILE="eager")
        self.process = subprocess.Popen(
            [python, str(HERE), "--work", library, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip

    def ask(self, *what: str) -> float | None:
        """The answer; None where the library cannot do that."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps(what), file=self.process.stdin, flush=True)
            found: float | None = json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            return None
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def rates(name: str, workers: Mapping[str, Worker]) -> dict[str, float]:
    """GFLOP/s by library, of those that have the row; raises AssertionError where results differ."""
    sums = {each: found for each, worker in workers.items() if (found := worker.ask("prepare", name)) is not None}
    whole = [found for found in sums.values() if found == found]
    assert max(whole) - min(whole) <= CLOSE * max(whole), f"{name}: {sums}"
    best = dict.fromkeys(sums, float("inf"))
    for _ in range(TURNS):
        for each in sums:
            best[each] = min(best[each], workers[each].ask("turn") or float("inf"))
            time.sleep(0.01)  # threads that spin go to sleep
    row = ROWS[name]
    flops = 2 * row**3 if isinstance(row, int) else row.flops
    return {each: flops / seconds * 1e-9 for each, seconds in best.items()}


def _cells(name: str, found: Mapping[str, float]) -> list[str]:
    others = [found[each] for each in LIBRARIES[1:] if each in found]
    ratio = f"{found['engine'] / max(others):.2f}" if others else "-"
    return [name, *(f"{found[each]:.0f}" if each in found else "-" for each in LIBRARIES), ratio]


def measure(asked: Asked) -> Figures:
    """GFLOP/s by target, number of threads, row and library."""
    found: Figures = {"machine": sides.machine(), "targets": {}}
    pythons = dict(zip(LIBRARIES, (sys.executable, sys.executable, asked.peer), strict=True))
    for target in sides.targets():
        of_target = found["targets"][target] = {}
        for count in THREADS:
            workers = {each: Worker(python, each, count, target) for each, python in pythons.items()}
            rows = of_target[str(count)] = {}
            for name in ROWS:
                if asked.only in name:
                    rows[name] = rates(name, workers)
                    print(sides.shown(target), count, *_cells(name, rows[name]), sep="  ", file=sys.stderr, flush=True)
            for worker in workers.values():
                worker.close()
    return found


def lines(figures: Figures) -> Iterator[str]:
    yield from sides.introduction("Products and convolutions", figures, "")
    for target, of_target in figures["targets"].items():
        for count, rows in of_target.items():
            yield from (f"{sides.shown(target)}, {count} thread{'s' * (count != '1')}:", "")
            yield from sides.table(["GFLOP/s", *LIBRARIES, "/ best other"], [_cells(*row) for row in rows.items()])
            yield ""


SECTION: Final = Section(measure, lines)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]))
    else:
        sides.alone(SECTION)
