"""Events, what is inside of them, averages and tables; steps that a schedule keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.aten.values.hooks import HOOKS
from engine.torch.autograd import profiler
from engine.torch.profiler import ProfilerAction, profile, schedule, tensorboard_trace_handler

X = torch.ones(3)


def test_blocks_have_names_and_hold_what_runs_inside() -> None:
    with profiler.profile(record_shapes=True) as found:
        with profiler.record_function("outer"), profiler.record_function("inner"):
            X + 1
        X * 2
    assert [event.name for event in found.function_events] == ["outer", "inner", "aten::add", "aten::mul"]
    outer, inner, add, mul = found.function_events
    assert outer.time_range.elapsed_us() == outer.cpu_time_total
    assert outer.time_range.start <= add.time_range.start <= add.time_range.end <= outer.time_range.end
    assert (outer.cpu_children, inner.cpu_children) == ([inner], [add])
    assert (add.cpu_parent, mul.cpu_parent) == (inner, None)
    assert add.input_shapes[0] == [3]
    assert outer.cpu_time_total >= inner.cpu_time_total >= add.cpu_time_total > 0
    assert inner.self_cpu_time_total == pytest.approx(inner.cpu_time_total - add.cpu_time_total)
    total = outer.cpu_time_total + mul.cpu_time_total
    assert found.self_cpu_time_total == pytest.approx(total)
    assert found.total_average().count == 4


def test_operators_of_programs_are_events() -> None:
    @torch.jit.script
    def f(x):
        return (x * 2).relu().sum()

    with profiler.profile() as found:
        f(X)
        f(X)
    counts = {each.key: each.count for each in found.key_averages()}
    assert counts == {"f": 2, "aten::mul": 2, "aten::relu": 2, "aten::sum": 2}


def test_an_operator_of_others_is_one_event() -> None:
    x = torch.ones(2, 3)
    with profiler.profile() as found:
        torch.nn.functional.layer_norm(x, [3])
    assert [event.name for event in found.function_events] == ["aten::layer_norm"]


def test_averages_are_by_name_or_by_shapes_too() -> None:
    with profiler.profile(record_shapes=True) as found:
        for size in (2, 2, 5):
            torch.ones(size) + 1
    adds = [each for each in found.key_averages(group_by_input_shape=True) if each.key == "aten::add"]
    assert sorted((each.input_shapes[0], each.count) for each in adds) == [([2], 2), ([5], 1)]
    (add,) = (each for each in found.key_averages() if each.key == "aten::add")
    assert add.cpu_time == pytest.approx(add.cpu_time_total / 3)


def test_a_table_has_a_line_for_each() -> None:
    with profiler.profile() as found:
        X + 1
        X + 2
        X * 2
    averages = found.key_averages()
    assert averages.table(sort_by="count", row_limit=1).count("aten::") == 1
    lines = averages.table(sort_by="count", header="here").splitlines()
    assert (lines[0], lines[2].split()[0], lines[4].split()[0]) == ("here", "Name", "aten::add")
    assert "Self CPU time total" in lines[-1]
    with pytest.raises(ValueError, match="cpu_time_total"):
        averages.table(sort_by="cpu_time_totl")


def test_a_profile_that_is_not_over_says_so() -> None:
    with profiler.profile() as found:
        assert found.function_events is None
        with pytest.raises(RuntimeError, match="has not finished"):
            found.key_averages()
    assert found.key_averages() == []
    with profiler.profile(enabled=False) as off:
        X + 1
    assert off.function_events is None


def test_a_function_may_be_a_block() -> None:
    @profiler.record_function("named")
    def f() -> torch.Tensor:
        return X + 1

    with profiler.profile() as found:
        f()
    assert [event.name for event in found.function_events] == ["named", "aten::add"]


def test_events_are_written_for_chrome(tmp_path: Path) -> None:
    with profiler.profile(record_shapes=True) as found, profiler.record_function("mine"):
        X + 1
    found.export_chrome_trace(tmp_path / "trace.json")
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [(row["name"], row["cat"]) for row in rows] == [("mine", "user_annotation"), ("aten::add", "cpu_op")]
    assert rows[1]["args"]["Input Dims"][0] == [3]


def test_a_schedule_tells_which_steps_are_kept() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    names = [plan(step).name for step in range(11)]
    one_round = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    assert names == ["NONE", *one_round, *one_round, "NONE", "NONE"]
    assert ProfilerAction.NONE.value == 0


def test_traces_are_ready_when_a_round_is_over(tmp_path: Path) -> None:
    counts: list[int] = []

    def ready(found: profile) -> None:
        counts.append(sum(each.count for each in found.key_averages()))
        tensorboard_trace_handler(str(tmp_path))(found)

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as found:
        for _ in range(9):
            X + 1
            found.step()
    assert counts == [2, 2]
    assert len(list(tmp_path.glob("*.pt.trace.json"))) == 2


def test_without_a_schedule_all_steps_are_kept() -> None:
    with profile() as found:
        for _ in range(3):
            X + 1
            found.step()
    assert found.events()[0].name == "aten::add"
    assert len(found.events()) == 3
    with pytest.raises(RuntimeError, match="nothing is recorded yet"):
        profile().key_averages()


def named(x):  # type: ignore[no-untyped-def]
    with torch.profiler.record_function("outer"), torch.autograd.profiler.record_function("inner", "args"):
        y = x + 1
    return y * 2


@pytest.mark.parametrize("compiled", [torch.jit.script, lambda f: torch.jit.trace(f, X)])
def test_blocks_of_programs_and_traces_are_events(compiled: Any, tmp_path: Path) -> None:
    program = compiled(named)
    program.save(tmp_path / "p.pt")
    for run in (program, torch.jit.load(tmp_path / "p.pt")):
        with profiler.profile() as found:
            assert run(X).tolist() == [4.0] * 3
        call, outer, inner, add, mul = found.function_events
        assert [each.name for each in (outer, inner, add, mul)] == ["outer", "inner", "aten::add", "aten::mul"]
        assert (call.is_function, outer.is_user_annotation) == (True, True)
        assert (outer.cpu_children, inner.cpu_children, mul.cpu_parent) == ([inner], [add], call)
        assert [run(X).tolist() for _ in range(3)] == [[4.0] * 3] * 3


def test_a_trace_has_the_blocks_that_modules_enter() -> None:
    class Inside(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            with profiler.record_function("part"):
                return x * 3

    class Around(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = Inside()

        def forward(self, x: Any) -> Any:
            with profiler.record_function("whole"):
                return self.inside(x)

    traced = torch.jit.trace(Around(), X)
    assert str(traced.graph).count("torch.classes.profiler._RecordFunction = profiler::_record_function_enter_new") == 1
    with profiler.profile() as found:
        traced(X)
    assert [(each.name, len(each.cpu_children)) for each in found.function_events] == [
        ("forward", 1), ("whole", 1), ("forward", 1), ("part", 1), ("aten::mul", 0),
    ]  # fmt: skip


def test_a_block_that_an_error_leaves_ends_with_the_profile() -> None:
    def failing(x: Any) -> Any:
        mark = torch.ops.profiler._record_function_enter_new("left", None)
        y = x.view(7)
        torch.ops.profiler._record_function_exit(mark)
        return y

    with profiler.profile() as found, pytest.raises(RuntimeError):
        failing(X)
    left, *_ = found.function_events
    assert (left.name, left.end > left.start) == ("left", True)


PROGRAM = """
def inner(x):
    return x * 2

def fails(x):
    assert bool(x.sum() > 100), "too small"
    return x

def f(x):
    y = inner(x)
    forked = torch.jit._fork(inner, x)
    return y + torch.jit._wait(forked)

def g(x):
    return fails(inner(x))
"""


@pytest.mark.parametrize("is_profiling", [False, True])
def test_calls_of_functions_are_events_around_their_operators(is_profiling: bool) -> None:
    unit, x = torch.jit.CompilationUnit(PROGRAM), torch.ones(2)
    before = torch._C._jit_set_profiling_executor(is_profiling)
    try:
        with torch.autograd.profiler.profile() as found:
            unit.f(x)
    finally:
        torch._C._jit_set_profiling_executor(before)
    inner = [event for event in found.function_events if event.name == "inner"]
    assert len({event.thread for event in inner}) == 2
    assert [[child.name for child in event.cpu_children] for event in inner] == [["aten::mul"]] * 2
    assert all(event.cpu_time_total >= event.cpu_children[0].cpu_time_total for event in inner)
    outer = next(event for event in found.function_events if event.name == "f")
    assert [child.name for child in outer.cpu_children] == ["inner", "aten::add"]


def test_calls_that_raise_end() -> None:
    unit, x = torch.jit.CompilationUnit(PROGRAM), torch.ones(2)
    with torch.autograd.profiler.profile() as found:
        with pytest.raises(RuntimeError, match="too small"):
            unit.g(x)
        unit.inner(x)
    events = [event for event in found.function_events if event.is_function]
    assert [(event.name, event.cpu_parent and event.cpu_parent.name) for event in events] == [
        ("g", None), ("inner", "g"), ("fails", "g"), ("inner", None),
    ]  # fmt: skip
    assert all(event.end >= event.start for event in events)


def test_profiles_may_end_in_any_order() -> None:
    unit = torch.jit.CompilationUnit(PROGRAM)
    first, second = torch.autograd.profiler.profile(), torch.autograd.profiler.profile()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    unit.inner(torch.ones(2))
    second.__exit__(None, None, None)
    assert [event.name for event in second.function_events if event.is_function] == ["inner"]
    assert HOOKS.calls is None


def test_script_profiles_count_profiled_runs() -> None:
    profile, before = torch.jit._ScriptProfile(), torch._C._jit_set_profiling_executor(True)
    try:
        profile.enable()
        unit = torch.jit.CompilationUnit(PROGRAM)
        for _ in range(3):
            unit.inner(torch.ones(2))
        profile.disable()
    finally:
        torch._C._jit_set_profiling_executor(before)
    assert profile.dump_string().split() == ["runs", "function", "3", "inner"]
