"""Plans made from profiles: the same results as the interpreter's, whatever calls come with."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any, get_args

import pytest

import engine
from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import explain
from engine.executor.plans.plan_events import GuardFailed, PlanCompiled, ValuesProfiled
from engine.executor.plans.switches import listening
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering

PROGRAMS = (
    """
def f(x, y, n: int):
    z = x + y
    for i in range(n):
        w = torch.tanh(z)
        if i == 2:
            w = torch.cat([w, w])
        z = w * 2.0 + i
        q = torch.nonzero(z > 0.5)
        if q.size(0) > 2:
            z = z + q.sum()
    return torch.tanh(z), x * x.size(0)
""",
    """
def f(x, y, n: int):
    x = x * 1
    parts = [x]
    while len(parts) < n:
        x.add_(y.sum())
        parts.append(torch.relu(x) + parts[-1])
        if x.size(0) > 3:
            x = x[1:]
            break
    return torch.cat(parts), x
""",
    """
def g(x, y):
    return torch.mm(x, y.t()) if x.dim() == 2 else x * y

def f(x, y, n: int):
    z = g(x, y)
    for i in range(n):
        if bool(z.sum() > 0):
            z = torch.sigmoid(z) - 0.5
        else:
            z = z.t() * i
    return z.sum(), z
""",
)


@pytest.fixture(params=get_args(tiering.Mode))
def profiling(request: pytest.FixtureRequest) -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode(request.param)
    PROFILING.is_enabled = True
    yield
    PROFILING.is_enabled = False
    tiering.set_mode(before)


def _arguments(chance: random.Random) -> tuple[Any, ...]:
    rows, columns = chance.choice((1, 2, 3, 4)), chance.choice((1, 3))
    dtype = chance.choice((engine.float32, engine.float32, engine.float64))
    engine.manual_seed(chance.randrange(1000))
    x, y = (engine.randn(size, columns, dtype=dtype) for size in (rows, chance.choice((1, rows))))
    return x.requires_grad_(chance.random() < 0.3), y, chance.choice((0, 1, 3, 5))


def _outcome(f: Any, args: tuple[Any, ...]) -> list[Any]:
    """Results and gradients, or the error's kind."""
    x = args[0].detach().clone().requires_grad_(args[0].requires_grad)
    try:
        results = f(x, *args[1:])
        if x.requires_grad:
            sum(each.sum() for each in results).backward()
    except RuntimeError:
        return [RuntimeError]
    return [each.detach() for each in results] + ([x.grad] if x.grad is not None else [])


@pytest.mark.usefixtures("profiling")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_results_are_the_interpreters(program: str, seed: int) -> None:
    chance = random.Random(seed)
    f, reference = engine.CompilationUnit(program).f, engine.CompilationUnit(program).f
    for _ in range(12):
        args = _arguments(chance)
        found = _outcome(f, args)
        with engine.jit.optimized_execution(False):
            wanted = _outcome(reference, args)
        assert len(found) == len(wanted)
        for mine, theirs in zip(found, wanted, strict=True):
            assert mine is theirs or engine.allclose(mine, theirs, rtol=1e-4, atol=1e-5, equal_nan=True)


def called(f: Any, *sizes: int) -> None:
    """Call the function with tensors of these sizes, each time once its plans are made."""
    for size in sizes:
        f(engine.ones(size))
        tiering.wait()


def guarded(f: Any) -> list[Any]:
    """The sizes that are guarded."""
    return [site.expected.sizes for plan in executor_of(f._function).cache.plans() for site in plan.bailouts]


SIZED = "def f(x):\n    return torch.tanh(x) * x.size(0)"


@pytest.mark.usefixtures("profiling")
def test_guards_that_fail_often_give_way_to_others_and_then_to_unknown_sizes() -> None:
    f = engine.CompilationUnit(SIZED).f
    events: list[Any] = []
    with listening(events.append):
        called(f, 3, 3)
        assert guarded(f) == [(3,)]
        called(f, 4)
        assert guarded(f) == [(3,)]
        called(f, 5, 5, 5)
        assert guarded(f) == [(5,)]
        called(f, 6, 7)
        assert not executor_of(f._function).cache.plans()
        called(f, 7, 7, 8)
    assert guarded(f) == []  # no size is certain: there is nothing to guard
    failures = [event for event in events if isinstance(event, GuardFailed)]
    assert [failure.actual for failure in failures] == ["Float(4)", "Float(5)", "Float(6)", "Float(7)"]
    assert sum(isinstance(event, ValuesProfiled) for event in events) == 3


@pytest.fixture
def strategy(request: pytest.FixtureRequest) -> Iterator[None]:
    before, PROFILING.strategy = PROFILING.strategy, request.param
    yield
    PROFILING.strategy = before


@pytest.mark.usefixtures("profiling", "strategy")
@pytest.mark.parametrize("strategy", [(("DYNAMIC", 2),)], indirect=True)
def test_dynamic_plans_guard_ranks_and_dtypes_from_the_start() -> None:
    f = engine.CompilationUnit("def f(x):\n    y = torch.squeeze(x)\n    return torch.tanh(y) * y.size(0)").f
    for shape in ((3, 1), (3, 1), (4, 1), (5, 1), (1, 6)):
        f(engine.ones(*shape))
        tiering.wait()
    assert guarded(f) == [(None,)]
    (found,) = executor_of(f._function).profiled.recorded.values()
    assert (found.record.runs, found.rounds) == (1, 0)
    f(engine.ones(2, 3)), f(engine.ones(2, 3))
    assert (found.rounds, guarded(f)) == (1, [])


@pytest.mark.usefixtures("profiling", "strategy")
@pytest.mark.parametrize("strategy", [(("STATIC", 2),)], indirect=True)
def test_after_the_last_static_plan_there_are_no_guards() -> None:
    f = engine.CompilationUnit(SIZED).f
    called(f, 3, 3, 4, 4, 4, 4)
    assert guarded(f) == [(4,)]
    called(f, 5, 6, 6, 7)
    assert (guarded(f), len(executor_of(f._function).cache)) == ([], 1)
    (found,) = executor_of(f._function).profiled.recorded.values()
    assert (found.record.runs, found.rounds, found.refusal) == (2, 2, "guards failed too often")
    assert f(engine.ones(7)).tolist() == [pytest.approx(7 * 0.7615942)] * 7


@pytest.mark.usefixtures("profiling", "strategy")
@pytest.mark.parametrize("strategy", [()], indirect=True)
def test_a_strategy_without_plans_has_no_guards() -> None:
    f = engine.CompilationUnit(SIZED).f
    called(f, 3, 3, 3)
    assert (guarded(f), len(executor_of(f._function).cache)) == ([], 1)
    (found,) = executor_of(f._function).profiled.recorded.values()
    assert found.refusal == "the fusion strategy has no plans"


@pytest.mark.usefixtures("profiling")
def test_what_became_of_dropped_plans_is_kept() -> None:
    # A plan that is one kernel would be entered directly, without a count.
    f = engine.CompilationUnit("def f(x):\n    return torch.sort(torch.tanh(x))[0] * x.size(0)").f
    called(f, 3, 3, 3, 4, 4)
    executor = executor_of(f._function)
    assert not executor.cache.plans()
    found = explain(f._function)
    assert (found.dropped.plans, found.dropped.hits, found.dropped.failures) == (1, 3, 2)
    assert (found.statistics.forgotten, found.statistics.evictions) == (1, 0)
    assert found.dropped == f.get_debug_state().dropped_plans


def test_plans_from_profiles_are_made_in_the_background() -> None:
    f = engine.CompilationUnit(SIZED).f
    executor, events, threads = executor_of(f._function), list[Any](), set[str]()

    def listen(event: Any) -> None:
        events.append(event)
        if isinstance(event, PlanCompiled):
            threads.add(threading.current_thread().name)

    PROFILING.is_enabled = True
    try:
        with listening(listen):
            f(engine.ones(3))
            with tiering.compiling():  # the thread has to wait
                for _ in range(3):
                    assert f(engine.ones(3)).tolist() == [pytest.approx(3 * 0.7615942)] * 3
                    assert not executor.cache.plans()
                    assert "= aten::tanh" in str(executor.recent_graph)
            tiering.wait()
            assert guarded(f) == [(3,)]
            f(engine.ones(3))
    finally:
        PROFILING.is_enabled = False
    (compiled,) = [event for event in events if isinstance(event, PlanCompiled)]
    assert (compiled.tier, compiled.seconds > 0, threads) == ("generated", True, {"compiling"})
    assert (executor.statistics.hits, executor.statistics.misses) == (3, 1), "two found the plan that was being made"
    executor.settle()
    assert [plan.hits for plan in executor.cache.plans()] == [1]


def test_a_mode_without_a_background_makes_the_plan_that_waits() -> None:
    f = engine.CompilationUnit(SIZED).f
    executor, before = executor_of(f._function), tiering.mode()
    PROFILING.is_enabled = True
    try:
        with tiering.compiling():
            f(engine.ones(3)), f(engine.ones(3))
            assert not executor.cache.plans()
            tiering.set_mode("eager")
            f(engine.ones(3))
            assert guarded(f) == [(3,)]
        executor.wait()
        assert len(executor.cache) == 1
    finally:
        PROFILING.is_enabled = False
        tiering.set_mode(before)


@pytest.mark.usefixtures("profiling")
def test_the_graph_that_ran_is_told_though_its_plan_is_dropped() -> None:
    f = engine.CompilationUnit(SIZED).f
    called(f, 3, 3, 3, 4)
    assert "prim::BailOut" in str(f.graph_for(engine.ones(4)))
    assert not executor_of(f._function).cache.plans()


@pytest.mark.usefixtures("profiling")
def test_sizes_that_are_guarded_are_constants_of_the_plan() -> None:
    f = engine.CompilationUnit("def f(x, y):\n    return torch.tanh(x + y) * x.size(0)").f
    for _ in range(3):
        f(engine.ones(3), engine.ones(3))
        tiering.wait()
    text = str(f.graph_for(engine.ones(3), engine.ones(3))).partition("with prim::BailOut")[0]
    assert "prim::BailOut" in text
    assert "aten::size" not in text


def test_a_call_that_is_wanted_is_profiled_though_there_is_a_plan() -> None:
    f = engine.CompilationUnit(SIZED).f
    executor = executor_of(f._function)
    called(f, 3, 3)
    assert executor.recent_plan is not None
    assert executor.recent_plan.record is None
    executor.profile_next()
    called(f, 3)
    assert executor.recent_plan is None
    called(f, 3, 3)
    assert [site.expected.sizes for site in executor.recent_plan.bailouts] == [(3,)]
    (found,) = executor.profiled.recorded.values()
    assert (found.record.runs, found.refusal) == (1, "")


CHAIN = "def f(x, y):\n    return torch.tanh(x + y) * y"


@pytest.fixture
def entered() -> Iterator[Any]:
    """A function whose calls go straight to the kernel of its guarded plan."""
    before = tiering.mode()
    tiering.set_mode("eager")
    PROFILING.is_enabled = True
    f = engine.CompilationUnit(CHAIN).f
    for _ in range(4):
        f(engine.ones(2, 3), engine.ones(2, 3))
    assert f._function.entry is not None
    yield f
    PROFILING.is_enabled = False
    tiering.set_mode(before)


def _is_right(f: Any, *sizes: int) -> bool:
    x, y = engine.randn(*sizes), engine.randn(*sizes)
    return bool(engine.allclose(f(x, y), engine.tanh(x + y) * y, rtol=1e-5, atol=1e-6))


def test_kernels_that_are_called_directly_hold_the_guards(entered: Any) -> None:
    sites = executor_of(entered._function).cache.plans()[0].bailouts
    assert [site.expected.sizes for site in sites] == [(2, 3), (2, 3)]
    assert _is_right(entered, 2, 3) and [site.count for site in sites] == [0, 0]
    assert _is_right(entered, 5, 3) and [site.count for site in sites] == [1, 0]
    assert _is_right(entered, 2, 3) and [site.count for site in sites] == [1, 0]


def test_a_bailout_that_is_asked_for_happens_once(entered: Any) -> None:
    (plan,) = executor_of(entered._function).cache.plans()
    plan.request_bailout(1)
    assert entered._function.entry is None
    assert _is_right(entered, 2, 3) and [site.count for site in plan.bailouts] == [0, 1]
    assert entered._function.entry is not None
    assert _is_right(entered, 2, 3) and [site.count for site in plan.bailouts] == [0, 1]


def test_a_plan_that_is_dropped_is_not_entered_any_more(entered: Any) -> None:
    executor = executor_of(entered._function)
    (plan,) = executor.cache.plans()
    for rows in range(5, 5 + PROFILING.failures):
        assert _is_right(entered, rows, 3)
    assert plan.is_dropped and executor.cache.plans() == []
    assert entered._function.entry is None
    plan.enter_again()
    assert entered._function.entry is None


def test_a_call_that_is_wanted_is_profiled_though_calls_go_straight_to_a_kernel(entered: Any) -> None:
    executor = executor_of(entered._function)
    executor.profile_next()
    assert _is_right(entered, 4, 3)
    (found,) = executor.profiled.recorded.values()
    assert found.record.runs == 2
    assert _is_right(entered, 2, 3)
    assert [site.expected.sizes for site in executor.cache.plans()[0].bailouts] == [(None, 3), (None, 3)]
