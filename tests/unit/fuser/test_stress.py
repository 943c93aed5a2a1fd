"""Plans and their kernels in the hands of many threads at once: shapes, dtypes, modes and programs mixed."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pytest

import engine.torch as torch
from engine.executor.plans import tiers
from engine.executor.plans.fusion import PlanFusion
from engine.fuser.backend import machine, tiering

PROGRAMS: Final = {
    "chain": "def f(x, y):\n    a = torch.tanh(x * y) + 0.5\n    return torch.where(a > 0.7, a, -y) * x.sigmoid(), a\n",
    "rows": "def f(x, y):\n    a = torch.softmax(x + y, -1)\n    return (a - a.mean(-1, True)) * y, x.log_softmax(0)\n",
    "layer": "def f(x, y):\n    return torch.relu(torch.mm(x, y.t()) + 1.0).sum(1), torch.layer_norm(x, [x.size(1)])\n",
    "steps": "def f(x, y):\n    for i in range(4):\n        x = torch.maximum(x / 2, y) - x.amax(1, True)\n"
    "    return x,\n",
    "whole": "def f(x, y):\n    a = (x * 4).to(torch.int64)\n    return (a % 3) * a + 1, (a > 1).logical_and(y > 0)\n",
}
THREADS: Final = 8


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything is worth compiling; afterwards modes and threads are what they were."""
    monkeypatch.setattr(tiers, "WORTH", -1)
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: -1)
    mode, threads = tiering.mode(), torch.get_num_threads()
    yield
    tiering.wait()
    tiering.set_mode(mode)
    torch.set_num_threads(threads)


def _args(seed: int) -> tuple[Any, Any]:
    """Two tensors of one shape, some large enough for several threads, some strided, some of doubles."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    shape = choose.choice([(1, 5), (4, 6), (7, 33), (64, 48), (300, 257), (0, 3)])
    dtype = choose.choice([np.float32, np.float32, np.float64])
    x, y = (torch.from_numpy(numbers.normal(0, 2, shape).astype(dtype)) for _ in range(2))
    return (x.t().contiguous().t(), y) if choose.random() < 0.3 else (x, y)


def _called(text: str) -> Callable[..., Any]:
    return torch.jit.CompilationUnit(text).f  # type: ignore[no-any-return]


def _outcome(function: Callable[..., Any], args: Sequence[Any]) -> list[Any] | str:
    with torch.no_grad():
        try:
            return [each.numpy() for each in function(*args)]
        except Exception as error:
            return str(error).splitlines()[-1]


def _in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """The work of each thread, begun at the same moment; what one raises is raised here."""
    barrier, raised = threading.Barrier(count), []

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def _near(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) or isinstance(found, str):
        return bool(found == wanted)
    return all(
        a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, 2e-5, 2e-5, equal_nan=True)
        for a, b in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("mode", ["eager", "background"])
def test_shapes_dtypes_and_threads_mixed(mode: str) -> None:
    """Each thread calls all programs in an order of its own, while the number of threads of kernels changes."""
    tiering.set_mode("off")
    seeds = range(8)
    wanted = {(name, s): _outcome(_called(text), _args(s)) for name, text in PROGRAMS.items() for s in seeds}
    tiering.set_mode(mode)
    functions = {name: _called(text) for name, text in PROGRAMS.items()}
    wrong: list[Any] = []

    def work(number: int) -> None:
        calls = [*wanted] * 2
        random.Random(number).shuffle(calls)
        for step, (name, seed) in enumerate(calls):
            if number == 0 and step % 10 == 0:
                torch.set_num_threads(1 + step // 10 % 3)
            if not _near(_outcome(functions[name], _args(seed)), wanted[name, seed]):
                wrong.append((name, seed))

    _in_threads(work)
    assert wrong == []


def test_threads_that_call_one_plan_get_equal_results() -> None:
    """Bit by bit, whether or not parts of the work go to the threads of kernels."""
    tiering.set_mode("eager")
    for name in ("chain", "rows", "layer"):
        function = _called(PROGRAMS[name])
        args = [torch.from_numpy(np.random.default_rng(k).normal(0, 1, (400, 300)).astype(np.float32)) for k in (1, 2)]
        wanted = _outcome(function, args)
        found: list[Any] = []
        _in_threads(lambda _: found.extend(_outcome(function, args) for _ in range(5)))  # noqa: B023
        assert len(found) == 5 * THREADS
        assert all(np.array_equal(a, b) for each in found for a, b in zip(each, wanted, strict=True))


def test_concurrent_first_calls_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of LLVM is compiled twice, whichever thread calls first."""
    tiering.set_mode("eager")
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", "0")
    compiled: Counter[str] = Counter()
    compile_now = machine._compile

    def counted(program: machine.Program) -> bytes:
        compiled[program.text] += 1
        return compile_now(program)

    monkeypatch.setattr(machine, "_compile", counted)
    function = _called("def f(x, y):\n    return torch.cos(x * 1.25 - y) * 3.5, x + y * 0.125\n")
    results: list[Any] = []
    _in_threads(lambda _: results.append(_outcome(function, _args(2))))
    assert len(compiled) >= 1
    assert set(compiled.values()) == {1}
    assert all(_near(each, results[0]) for each in results)


def test_modes_that_change_while_others_call() -> None:
    function, args = _called(PROGRAMS["rows"]), _args(3)
    tiering.set_mode("off")
    wanted, wrong = _outcome(function, args), []

    def work(number: int) -> None:
        for step in range(20):
            if number == 0:
                tiering.set_mode(tiering.MODES[step % len(tiering.MODES)])
            if not _near(_outcome(function, args), wanted):
                wrong.append(step)

    _in_threads(work)
    assert wrong == []


def test_modes_that_change_between_reading_and_installing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that finds the mode eager, and installs that after the mode is off, still ends."""
    function, args = _called("def f(x, y):\n    return torch.tanh(x * y) + 0.125, x\n"), _args(3)
    tiering.set_mode("off")
    wanted = _outcome(function, args)
    tiering.set_mode("eager")
    before = PlanFusion.install_for

    def late(fusion: PlanFusion, mode: tiering.Mode) -> None:
        monkeypatch.setattr(PlanFusion, "install_for", before)
        tiering.set_mode("off")
        before(fusion, mode)

    monkeypatch.setattr(PlanFusion, "install_for", late)
    assert _near(_outcome(function, args), wanted)
    assert tiering.mode() == "off"
