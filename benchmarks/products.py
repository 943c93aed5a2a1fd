"""Products and convolutions beside numpy's BLAS and PyTorch, in GFLOP/s, on this processor and as an older one.

    python benchmarks/products.py [--peer PYTHON] [--only PART] [--target NAME ...] [--threads N ...]

Out: for each target and number of threads a table: `relu(linear)` of square matrices of float32, and the convolutions
of ResNet-50 for one image, with bias and relu.  The columns are the engine, numpy (the product alone) and, where the
Python that `--peer` names has it, PyTorch; then the engine's rate in times of the best of the others.  Each has a
process of its own; they take turns of 0.1 s, and rates are those of the fastest calls.  `performance.py --write` puts
the tables into `docs/performance.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

HERE: Final = Path(__file__)
LIBRARIES: Final = ("engine", "numpy", "torch")
TARGETS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {"TSREPL_TARGET": "", "OPENBLAS_CORETYPE": ""},
    "x86-64-v3": {
        "TSREPL_TARGET": "x86-64-v3", "OPENBLAS_CORETYPE": "Haswell", "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}  # fmt: skip
"""Processors to stand for, "" for this one -> the environment in which each library does so."""
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
        count = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        environment = {
            **os.environ,
            **count,
            **TARGETS.get(target, {"TSREPL_TARGET": target}),
            "TSREPL_COMPILE": "eager",
        }
        environment["PYTHONPATH"] = str(HERE.parents[1])
        self.process = subprocess.Popen(
            [python, str(HERE), "--work", library, "--threads", str(threads)],
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


def machine() -> str:
    """The name of this processor, as its system and as LLVM call it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "a processor")
    sys.path.insert(0, str(HERE.parents[1]))
    return f"{name} ({import_module('engine.fuser.backend.target').host().cpu})"


def tables(peer: str, targets: Sequence[str], threads: Sequence[int], only: str = "") -> Iterator[str]:
    """The lines of all tables, as Markdown."""
    for target in targets:
        for count in threads:
            yield f"\n{target or 'as it is'}, {count} thread{'s' * (count > 1)}:\n"
            yield f"| GFLOP/s | {' | '.join(LIBRARIES)} | / best other |"
            yield "| --- " * (len(LIBRARIES) + 2) + "|"
            pythons = dict(zip(LIBRARIES, (sys.executable, sys.executable, peer), strict=True))
            workers = {each: Worker(python, each, count, target) for each, python in pythons.items()}
            for name in ROWS:
                if only in name:
                    yield f"| {' | '.join(_cells(name, rates(name, workers)))} |"
            for worker in workers.values():
                worker.close()


def section(peer: str) -> str:
    """A part of the page of all figures."""
    return f"\n## Products and convolutions\n\nOn {machine()}.\n" + "\n".join(tables(peer, [*TARGETS], [1, 2])) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--only", default="")
    parser.add_argument("--target", nargs="*", default=[*TARGETS])
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--work", default="")
    options = parser.parse_args()
    if options.work:
        work(options.work, options.threads[0])
        return
    print(machine())
    for line in tables(options.peer, options.target, options.threads, options.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
