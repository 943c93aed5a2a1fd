"""A process in which one implementation runs workloads, when `programs.py` says so.

    python benchmarks/programs_worker.py engine|torch.jit|torch.compile|numexpr|numba|onnxruntime FOLDER

In: lines of JSON on standard input: `["prepare", name]`, `["turn", seconds]`, `["first", name]`, `["limits"]`.  Out: a
line of JSON for each: of a preparation a sum over the result; of a turn seconds per call; of a first call its seconds;
an `error` where that implementation cannot say the same.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from workloads import MODELS, PROGRAMS, Workload, make_models

THREADS: Final = 2
Call = Callable[[], Any]


class Unavailable(Exception):
    """This implementation cannot run the workload."""


# ------------------------------------------------------------------ implementations


def _library(name: str) -> Any:
    if name == "engine":
        sys.path.insert(0, str(Path(__file__).parents[1]))
        torch = import_module("engine.torch")
    else:
        torch = import_module("torch")
    torch.set_num_threads(THREADS)
    return torch


def _given(torch: Any, workload: Workload) -> list[Any]:
    return [torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in workload.arguments()]


def _training(torch: Any, function: Callable[..., Any], given: Sequence[Any]) -> Call:
    leaves = [each.requires_grad_() for each in given[1:]]

    def call() -> Any:
        found = function(*given)
        loss = sum(each.sum() for each in found) if isinstance(found, tuple) else found
        for leaf in leaves:
            leaf.grad = None
        loss.backward()
        return loss

    return call


def _calling(torch: Any, function: Callable[..., Any], workload: Workload) -> Call:
    given = _given(torch, workload)
    if workload.trains:
        return _training(torch, function, given)

    def call() -> Any:
        with torch.no_grad():
            return function(*given)

    return call


def _scripted(name: str, workload: Workload, folder: Path) -> Call:
    torch = _library(name)
    if workload in MODELS.values():
        return _calling(torch, torch.jit.load(str(folder / f"{workload.text}.pt")).eval(), workload)
    if workload.text.endswith(".pt"):
        return _calling(torch, torch.jit.load(workload.text).eval(), workload)
    return _calling(torch, torch.jit.CompilationUnit(workload.text).f, workload)


def _python(workload: Workload, names: dict[str, Any]) -> Callable[..., Any]:
    """The program as Python's own, from a file, for those who read its source."""
    if workload not in PROGRAMS.values():
        raise Unavailable("no text in Python")
    path = Path(_FOLDER) / f"text{abs(hash(workload.text))}.py"
    path.write_text(workload.text)
    exec(compile(workload.text, str(path), "exec"), names)
    function: Callable[..., Any] = names["f"]
    return function


def _compiled(name: str, workload: Workload, folder: Path) -> Call:
    torch = _library(name)
    names = {"torch": torch, "Tensor": torch.Tensor, "List": list, "Dict": dict}
    return _calling(torch, torch.compile(_python(workload, names)), workload)


def _numexpr(name: str, workload: Workload, folder: Path) -> Call:
    numexpr = import_module("numexpr")
    numexpr.set_num_threads(THREADS)
    if not workload.numexpr:
        raise Unavailable("no expression")
    x, y = workload.arguments()
    return lambda: numexpr.evaluate(workload.numexpr, {"x": x, "y": y})


def _numba(name: str, workload: Workload, folder: Path) -> Call:
    numba = import_module("numba")
    given = workload.arguments()
    if any(isinstance(each, np.ndarray) for each in given):
        raise Unavailable("no arrays")
    text = workload.text.replace("List[int] = []", "object = [0 for _ in range(0)]")
    text = text.replace("Dict[int, int] = {}", "object = Dict.empty(int64, int64)")
    names: dict[str, Any] = {"Dict": import_module("numba.typed").Dict, "int64": numba.int64}
    exec(text, names)
    function = numba.njit(names["f"])
    return lambda: function(*given)


def _onnxruntime(name: str, workload: Workload, folder: Path) -> Call:
    if workload not in MODELS.values():
        raise Unavailable("no model")
    runtime, torch = import_module("onnxruntime"), _library("torch")
    (x,) = workload.arguments()
    path = str(folder / f"{workload.text}.onnx")
    torch.onnx.export(
        torch.jit.load(str(folder / f"{workload.text}.pt")).eval(), (torch.from_numpy(x),), path, dynamo=False
    )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x}
    return lambda: session.run(None, feed)[0]


IMPLEMENTATIONS: Final[dict[str, Callable[[str, Workload, Path], Call]]] = {
    "engine": _scripted, "torch.jit": _scripted, "torch.compile": _compiled, "numexpr": _numexpr, "numba": _numba,
    "onnxruntime": _onnxruntime,
}  # fmt: skip

# ------------------------------------------------------------------ what is asked

WARM: Final = 6
"""Calls before the first turn; more, for at most a second, while there is anything to be compiled."""


def _prepare(name: str, workload: Workload, folder: Path) -> tuple[Call, dict[str, Any]]:
    call = IMPLEMENTATIONS[name](name, workload, folder)
    result = call()
    for _ in range(WARM):
        call()
    if name == "engine":
        _settle(call)
    return call, {"sum": _sum(result)}


def _first(name: str, workload: Workload, folder: Path) -> dict[str, float]:
    call = IMPLEMENTATIONS[name](name, workload, folder)
    start = time.perf_counter()
    call()
    return {"first": time.perf_counter() - start}


def _settle(call: Call) -> None:
    """Call until nothing more is being compiled."""
    tiering = import_module("engine.fuser.backend.tiering")
    for _ in range(5):
        end = time.perf_counter() + 0.3
        while time.perf_counter() < end:
            call()
        tiering.wait()


def _sum(value: Any) -> float:
    value = value[0] if isinstance(value, tuple) else value
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    return float(np.abs(np.asarray(value, np.float64)).sum())


def _turn(call: Call, seconds: float) -> float:
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    count = max(1, round(seconds / max(once, 1e-7)))
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def limits() -> dict[str, float]:
    """The bytes a second that copies move (read and written), the flops a second of products; the best of some."""
    array, target = np.ones(1 << 25, np.float32), np.empty(1 << 25, np.float32)
    a = np.ones((2048, 2048), np.float32)
    copy = min(_turn(lambda: np.copyto(target, array), 0.05) for _ in range(5))
    multiply = min(_turn(lambda: a @ a, 0.05) for _ in range(5))
    return {"bytes": 2 * array.nbytes / copy, "flops": 2 * 2048**3 / multiply}


def main(name: str, folder: Path, archives: dict[str, Workload]) -> None:
    call: Call | None = None
    known = {**PROGRAMS, **MODELS, **archives}
    for line in sys.stdin:
        what, *given = json.loads(line)
        try:
            if what == "prepare":
                call, reply = _prepare(name, known[given[0]], folder)
            elif what == "first":
                reply = _first(name, known[given[0]], folder)
            elif what == "models":
                make_models(_library("torch"), folder)
                reply = {}
            elif what == "limits":
                reply = limits()
            else:
                assert call is not None
                reply = {"seconds": _turn(call, given[0])}
        except Exception as error:  # a row that does not run says why
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(reply), file=_REPLIES, flush=True)


if __name__ == "__main__":
    _FOLDER = sys.argv[2]
    _REPLIES, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no reply
    archives = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    main(
        sys.argv[1], Path(_FOLDER),
        {each: Workload(path, [tuple(s) for s in shapes], 1.3, 0.5) for each, (path, shapes) in archives.items()},
    )  # fmt: skip
