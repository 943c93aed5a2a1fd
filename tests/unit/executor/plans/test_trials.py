"""A kernel is used where it takes less time than what it takes the place of, which the program's own calls tell."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.executor.plans import kept_plans, tiers, trials
from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import explain
from engine.executor.plans.verifying import NOT_TAKEN
from engine.fuser.backend import tiering, worker
from engine.fuser.library import beside
from tests.unit.executor.small_modules import Pointwise

SLEEP = 0.002


def _logging(log: list[str], name: str, seconds: float = 0.0, result: Any = None) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        log.append(name)
        time.sleep(seconds)
        return result

    return run


@pytest.mark.parametrize("faster", ["kernel", "unfused"])
def test_calls_run_both_by_turns_then_the_faster_one(faster: str) -> None:
    log, told = list[str](), list[float]()
    kernel, unfused = (_logging(log, name, 0.0 if name == faster else SLEEP) for name in ("kernel", "unfused"))
    tried = trials.on_trial(kernel, unfused, lambda args: True, told.append, _logging(log, "otherwise"))
    for _ in range(2 * trials.ROUNDS + 5):
        tried()
    assert log == ["kernel", "unfused"] * trials.ROUNDS + [faster] * 5
    (ratio,) = told
    assert trials.is_slower(ratio) == (faster == "unfused")


def test_calls_that_take_no_time_that_a_clock_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[float]()
    tried = trials.on_trial(lambda: 1, lambda: 2, lambda args: True, told.append, lambda: 3)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    assert [tried() for _ in range(2 * trials.ROUNDS + 1)] == [1, 2] * trials.ROUNDS + [1]
    assert len(told) == 1 and not trials.is_slower(told[0])


def test_other_calls_count_for_nothing() -> None:
    log, told = list[str](), list[float]()
    tried = trials.on_trial(
        _logging(log, "kernel", result=NOT_TAKEN), _logging(log, "unfused"), lambda args: args[0] > 0, told.append,
        _logging(log, "otherwise", result=3),
    )  # fmt: skip
    assert [tried(0) for _ in range(20)] == [3] * 20
    assert {*log} == {"otherwise"}
    assert tried(1) == 3 and log[-2:] == ["kernel", "otherwise"], "its guards hold for other arguments"
    assert told == []


def test_errors_are_the_programs_and_count_for_nothing() -> None:
    def fail(*args: Any) -> Any:
        raise ValueError("no")

    told = list[float]()
    tried = trials.on_trial(fail, fail, lambda args: True, told.append, fail)
    for _ in range(20):
        with pytest.raises(ValueError, match="no"):
            tried()
    assert told == []


@pytest.fixture
def beside_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The thread that compiles, with a store of its own, and no other process."""
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    kept_plans._engine.cache_clear()
    monkeypatch.setattr(worker, "is_wanted", lambda: False)
    monkeypatch.setattr(beside, "_STATE", beside._State(has_asked=True))
    monkeypatch.setattr(tiers, "WORTH", -1)
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: -1)
    before = tiering.mode()
    tiering.set_mode("background")
    yield
    tiering.wait()
    tiering.set_mode(before)
    kept_plans._engine.cache_clear()


def _opened(saved: bytes) -> Any:
    return torch.jit.load(io.BytesIO(saved)).eval()


def _called(m: Any, x: Any, calls: int) -> Any:
    with torch.no_grad():
        for _ in range(calls):
            found = m(x)
            tiering.wait()
    return found


@pytest.mark.parametrize("is_slower", [False, True])
def test_a_slower_kernel_is_not_used_here_or_by_others(
    is_slower: bool, beside_alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "SLOWER", 1e-9 if is_slower else float("inf"))
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Pointwise()), file)
    x = torch.arange(12.0).reshape(3, 4)
    with torch.no_grad():
        expected = Pointwise()(x)
    for attempt in range(2):
        m = _opened(file.getvalue())
        assert torch.allclose(_called(m, x, 10 + 2 * trials.ROUNDS if attempt == 0 else 2), expected)
        (plan,) = executor_of(m.forward._function).plans
        assert plan.fusion is not None and tiering.failures() == []
        (group,) = plan.fusion.groups
        assert group.on_trial == []
        assert [len(group.kernels), len(group.slower)] == ([0, 1] if is_slower else [1, 0])
        (kernel,) = [*group.kernels, *group.slower]
        assert kernel.ratio > 0
        (shown,) = explain(m.forward._function).plans[-1].groups[0].kernels
        assert shown.is_used is not is_slower and shown.measure() is not None
        before = group.fallbacks
        _called(m, x, 3)
        assert group.fallbacks - before == (3 if is_slower else 0)


def test_no_trials_where_kernels_are_asked_for(beside_alone: None) -> None:
    tiering.set_mode("eager")
    m = torch.jit.script(Pointwise()).eval()
    _called(m, torch.arange(12.0).reshape(3, 4), 2)
    (plan,) = executor_of(m.forward._function).plans
    assert plan.fusion is not None
    for group in plan.fusion.groups:
        assert group.kernels and not group.on_trial
