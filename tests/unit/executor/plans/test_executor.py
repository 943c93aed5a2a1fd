"""Executors: made once, when first needed; plans by what calls come with."""

import threading
from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import no_grad
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.calls.call import call_function
from engine.executor.interpreter.interpreter import InterpreterState, run
from engine.executor.plans.executor import MAX_PLANS, RECENT, code_of, executor_of, last_executed_optimized_graph
from engine.executor.plans.plan_cache import PlanCounts
from engine.executor.plans.plan_events import PlanCompiled, PlanEvicted, PlanLookup
from engine.executor.plans.switches import listening, optimized_execution
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.schema import FunctionSchema
from engine.passes.pipeline import PassEvent


def test_a_function_is_compiled_and_linearised_when_it_first_runs() -> None:
    compiled: list[str] = []

    def create(function: Function) -> None:
        compiled.append(function.name)
        function.define(FunctionSchema("f"), Graph())

    function = Function("__torch__.f", create)
    assert not compiled
    executor = executor_of(function)
    assert executor_of(function) is executor
    assert code_of(function) is executor.code
    assert (compiled, executor.code.name) == (["f"], "f")
    assert executor.graph is not function.graph
    assert str(executor.graph) == str(function.graph)


def function(text: str, name: str = "f") -> Function:
    return compile_source(text + "\n").functions[name]


def test_a_dead_write_is_gone_before_it_can_fail() -> None:
    made = function(
        "def f(x: Tensor):\n    i = 0\n    while i < 2:\n        x = x + 1\n        i += 1\n"
        "    for row in x:\n        x.sub_(row)\n    return i"
    )
    x = tensor(np.ones((2, 3), "f4"))
    assert run(executor_of(made), [x]) == 2
    with optimized_execution(False):
        assert run(executor_of(made), [x]) == 2


@pytest.mark.usefixtures("plans_at_once")
def test_plans_are_kept_by_dtype_rank_and_grad() -> None:
    executor = executor_of(function("def f(x: Tensor):\n    return x + 1"))
    calls = [np.ones(2, "f4"), np.ones(3, "f4"), np.ones((2, 2), "f4"), np.ones(2, "f8"), np.ones(4, "f4")]
    for array in calls:
        assert run(executor, [tensor(array)]).array.dtype == array.dtype
    with no_grad():
        run(executor, [tensor(calls[0])])
    assert (executor.statistics.hits, executor.statistics.misses) == (2, 4)
    assert (executor.statistics.hits, executor.statistics.misses) == (2, 4), "asking counts as nothing"
    assert [str(plan.spec) for plan in executor.cache.plans()] == [
        "(x: Float(*, *))", "(x: Double(*))", "(x: Float(*))", "(x: Float(*)) without grad",
    ]  # fmt: skip


def test_plans_are_bounded() -> None:
    executor = executor_of(function("def f(x: Tensor):\n    return x.dim()"))
    with listening(events := list[Any]().append):
        for rank in range(MAX_PLANS + 3):
            assert run(executor, [tensor(np.ones((1,) * rank, "f4"))]) == rank
    assert (len(executor.cache), executor.statistics.evictions) == (MAX_PLANS, 3)
    assert executor.dropped == PlanCounts(plans=3)
    told = events.__self__  # type: ignore[attr-defined]
    assert sum(isinstance(event, PlanEvicted) for event in told) == 3


@pytest.mark.usefixtures("plans_at_once")
def test_the_graph_that_ran_is_told() -> None:
    made = function("def g(x: Tensor):\n    return x + 1\ndef f(x: Tensor):\n    return g(x) * 2")
    call_function(made, [tensor([1.0])])
    graph = executor_of(made).recent_graph
    assert graph is last_executed_optimized_graph()
    text = str(graph)
    assert "CallFunction" not in text
    assert "%x.1 : Float(*, requires_grad=0, device=cpu)" in text
    assert "CallFunction" in str(executor_of(made).graph)


def test_nothing_is_optimized_where_that_is_asked_for() -> None:
    executor = executor_of(function("def f(x: Tensor):\n    return x + 1"))
    RECENT.ran = lambda: None
    with optimized_execution(False):
        assert run(executor, [tensor([1.0])]).tolist() == [2.0]
        assert last_executed_optimized_graph() is None
        with optimized_execution(True):
            run(executor, [tensor([1.0])])
    assert last_executed_optimized_graph() is not None
    assert len(executor.cache) == 1


def test_a_call_with_hooks_is_interpreted() -> None:
    made = function("def f(n: int):\n    return n + 1")
    seen: list[str] = []

    def hook(state: InterpreterState) -> None:
        seen.append(state.frame.instruction.name)

    assert call_function(made, [1], hooks=[hook]) == 2
    assert "add" in seen
    assert len(executor_of(made).cache) == 0


# -- events


def test_lookups_and_plans_are_told_with_reasons() -> None:
    made = function("def f(x: Tensor):\n    return x + 1")
    events: list[Any] = []
    with listening(events.append):
        for array in (np.ones(2, "f4"), np.ones(2, "f4"), np.ones((2, 2), "f8")):
            call_function(made, [tensor(array)])
    call_function(made, [tensor([1.0])])
    lookups = [(event.hit, event.reason) for event in events if isinstance(event, PlanLookup)]
    assert lookups == [(False, "first call"), (True, ""), (False, "x: Float(*) → Double(*, *)")]
    plans = [event for event in events if isinstance(event, PlanCompiled)]
    assert [(event.function, event.tier, event.nodes > 0, event.reason) for event in plans] == [
        ("f", "generated", True, "")
    ] * 2
    assert {event.name for event in events if isinstance(event, PassEvent)} >= {
        "inline",
        "cse",
        "lower_simple_tuples",
    }


# -- threads

MIXED = """
def g(x: Tensor, n: int):
    for i in range(n):
        x = torch.tanh(x * 0.5) + i
    return x
def f(x: Tensor, y: Tensor, n: int):
    a = g(x, n) + y
    t = 0
    while t < n:
        t += 1
    return a.sum(), t
"""


def test_threads_that_mix_specialisations_agree() -> None:
    made = function(MIXED)
    calls = [
        [tensor(np.full(shape, 0.5, dtype), requires_grad=grad), tensor(np.ones(shape, dtype)), n]
        for shape in ((), (3,), (2, 3)) for dtype in ("f4", "f8") for grad in (False, True) for n in (0, 2)
    ]  # fmt: skip
    expected = [InterpreterState(code_of(made)).run(*arguments) for arguments in calls]
    wrong: list[object] = []

    def work(offset: int) -> None:
        try:
            for i in range(1000):
                place = (i * 7 + offset) % len(calls)
                result = call_function(made, calls[place])
                if result[1] != expected[place][1] or not same(result[0], expected[place][0]):
                    wrong.append((place, result))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=[offset]) for offset in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong
    executor = executor_of(made)
    assert executor.statistics.misses == 12, "one plan for each combination, made once"
    assert executor.statistics.hits == 8000 - 12


def same(result: Tensor, expected: Tensor) -> bool:
    return result.array.tobytes() == expected.array.tobytes() and result.requires_grad == expected.requires_grad


def test_one_thread_makes_an_executor_and_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    made = function("def f(n: int):\n    return n + 1")
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(executor_of(made))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(set(map(id, found))) == 1


@pytest.mark.usefixtures("plans_at_once")
def test_functions_that_do_not_inline_leave_what_they_call_to_its_own_plans() -> None:
    unit = compile_source("def g(x):\n    return x + x\n\ndef f(x):\n    return g(x) * 2\n")
    f, g = unit.functions["f"], unit.functions["g"]
    f.inlines = False
    for _ in range(2):
        assert run(executor_of(f), [tensor([1.0])]).item() == 4
    (plan,) = executor_of(g).cache.plans()
    assert "aten::add" in str(plan.graph)
    assert "prim::CallFunction" in str(executor_of(f).recent_graph)
