"""The interpreter runs first calls unless they may take long, and goes on until plans are made aside."""

from __future__ import annotations

from math import inf

import pytest

from engine.aten.values.tensor import tensor
from engine.executor.calls.call import call_function
from engine.executor.plans import first_call, tiers
from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import explain
from engine.executor.plans.switches import leaving
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from engine.ir.graph import Value
from engine.ir.unit import Function
from engine.lang.errors import ExecutionError

HALF = "def half(x):\n" + "    x = x * 2 - x\n" * 60 + "    return x\n"
PROGRAMS = {
    "short": ("def f(x):\n    return half(x)\n", True),
    "called twice": ("def f(x):\n    return half(half(x))\n", True),
    "loops over dimensions": (
        "def f(x):\n    n = 1\n    for i in range(len(x.shape) - 1):\n        n *= x.shape[i]\n"
        "    return half(half(x)) * n\n",
        True,
    ),
    "loops over rows": ("def f(x):\n    for i in range(x.size(0)):\n        x = half(x)\n    return x\n", True),
    "loops over rows in a loop": (
        "def f(x):\n    for i in range(x.size(1)):\n        for j in range(9):\n            x = half(x)\n"
        "    return x\n",
        False,
    ),
    "loops to a number": (
        "def f(x):\n    n = 0\n    for i in range(30 * 1000):\n        n += 1\n    return x * (n // 30000)\n",
        False,
    ),
    "while": ("def f(x):\n    while bool((x < 0).any()):\n        x = x + 1\n    return half(half(x))\n", False),
}


def _function(text: str) -> Function:
    return compile_source(HALF + text).functions["f"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_programs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, expected = PROGRAMS[name]
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: -1)
    executor = executor_of(_function(text))
    x = tensor([[1.0, 2.0]])
    results = []
    for plans in (0 if expected else 1, 1, 1):
        results.append(call_function(executor.function, [x], {}).tolist())
        executor.wait()
        assert len(executor.cache) == plans
    assert results == [[[1.0, 2.0]]] * 3
    assert (executor.statistics.hits, executor.statistics.misses) == (2, 1)


CALLED = "def slow(x, n: int):\n    for i in range(n):\n        x = x * 1.0\n    return x\n"


@pytest.mark.parametrize(("rounds", "plans"), [(10, 0), (100_000, 1)])
def test_what_is_called_is_asked_about_when_it_is_called(
    rounds: int, plans: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    text = "def f(x, n: int):\n    if n < 0:\n        x = half(x)\n    return slow(x, n) + 1\n"
    unit = compile_source(HALF + CALLED + text)
    f, slow = executor_of(unit.functions["f"]), executor_of(unit.functions["slow"])
    assert call_function(f.function, [tensor([1.0]), rounds], {}).tolist() == [2.0]
    assert (len(f.cache), len(slow.cache)) == (0, plans)


def test_an_error_in_a_plan_that_the_interpreter_called_tells_both_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    text = "def f(x, n: int):\n    return slow(x, n) + 1\n"
    slow = CALLED.replace("        x = x * 1.0\n", "        if i > 90000:\n            raise ValueError('late')\n")
    f = compile_source(slow + text).functions["f"]
    for _ in range(2):
        with pytest.raises(ExecutionError, match="late") as caught:
            call_function(f, [tensor([1.0]), 100_000], {})
        assert [frame.function for frame in caught.value.frames] == ["f", "slow"]


def test_what_runs_meanwhile_stands_for_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: -1)
    monkeypatch.setattr(tiers, "SMALL", 0)
    executor = executor_of(_function(PROGRAMS["called twice"][0]))
    x = tensor([[1.0, 2.0]])
    with tiering.compiling():
        calls = [call_function(executor.function, [x], {}).tolist() for _ in range(4)]
        assert len(executor.cache) == 0
    assert calls == [[[1.0, 2.0]]] * 4
    assert executor.optimized_graph is not executor.graph, "it waits for the plan, or makes it"
    assert executor.statistics.misses == 1 and len(executor.cache) == 1
    assert call_function(executor.function, [x], {}).tolist() == calls[0]
    assert executor.recent_plan is executor.plans[0]


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_who_asks_for_plans_gets_those_that_calls_ran_ahead_of(calls: int) -> None:
    executor = executor_of(_function(PROGRAMS["short"][0]))
    with tiering.compiling():
        for _ in range(calls):
            call_function(executor.function, [tensor([[1.0, 2.0]])], {})
        (plan,) = executor.plans
        assert plan is executor.recent_plan and plan.occasion == "first call"
    tiering.wait()
    assert executor.plans == [plan] and executor.statistics.misses == 1
    call_function(executor.function, [tensor([[1.0, 2.0]])], {})
    assert executor.statistics.hits == calls and executor.recent_plan is plan


@pytest.mark.parametrize("is_small", [True, False])
def test_calls_wait_for_nothing_while_something_else_is_compiled(
    is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: -1)
    monkeypatch.setattr(tiers, "SMALL", 300 if is_small else 0)
    executor = executor_of(_function(PROGRAMS["called twice"][0]))
    call_function(executor.function, [tensor([[1.0, 2.0]])], {})
    tiering.wait()
    with tiering.compiling():
        tiering.in_background(lambda: None)
        call_function(executor.function, [tensor([[1.0, 2.0]])], {})
        call_function(executor.function, [tensor([1.0])], {})
        assert len(executor.cache) == (2 if is_small else 0), "what is being compiled may take long"
    tiering.wait()
    assert len(executor.cache) == 2


def test_the_interpreter_goes_on_until_it_has_run_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = executor_of(_function(PROGRAMS["called twice"][0]))
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: 10**12)
    for _ in range(5):
        call_function(executor.function, [tensor([[1.0, 2.0]])], {})
    assert tiering.is_idle() and len(executor.cache) == 0
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: 1)
    call_function(executor.function, [tensor([[1.0, 2.0]])], {})
    (plan,) = executor.cache.plans()
    assert plan.occasion == "first call" and executor.statistics.misses == 1
    assert explain(executor.function).plans[0].interpreted == plan.spent / 1e9 > 0


def test_first_calls_count_for_nothing() -> None:
    executor = executor_of(_function(PROGRAMS["called twice"][0]))
    call_function(executor.function, [tensor([[1.0, 2.0]])], {})
    assert explain(executor.function).plans[0].interpreted == 0


def test_what_was_never_compiled_counts_for_some_nodes() -> None:
    text = "def f(x, n: int):\n    if n < 0:\n        x = half(x)\n    return x\n"
    unit = compile_source(HALF + text)
    f = unit.functions["f"]
    assert first_call.size_of(f, 300) == sum(
        sum(1 for _ in unit.functions[name].graph.all_nodes()) for name in ("f", "half")
    )
    assert first_call.size_of(f, 100) == inf
    unit.functions["half"].undefine(lambda function: None)
    assert first_call.size_of(f, 300) == sum(1 for _ in f.graph.all_nodes()) + first_call.UNCOMPILED
    assert first_call.size_of(f, first_call.UNCOMPILED) == inf


CHAINS = {
    "shared": "n = n + n",
    "long": "n = n + x.size(0)",
}


@pytest.mark.parametrize("name", CHAINS)
def test_counts_at_the_end_of_arithmetic_are_estimated_in_few_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "def f(x, n: int):\n"
        + f"    {CHAINS[name]}\n" * 2000
        + "    for i in range(n):\n        x = x + 1\n    return x\n"
    )
    graph, steps, once = _function(text).graph, 0, first_call._Rounds._most_of

    def counted(self: first_call._Rounds, number: Value, depth: int) -> float:
        nonlocal steps
        steps += 1
        assert steps < 100
        return once(self, number, depth)

    monkeypatch.setattr(first_call._Rounds, "_most_of", counted)
    assert not first_call.runs_before_plan(graph, [tensor([1.0]), 1])


def test_loops_within_loops_exceed_no_number() -> None:
    body = "".join(f"{'    ' * d}while bool(x.sum() > {d}):\n" for d in range(1, 21))
    graph = _function(f"def f(x, n: int):\n{body}{'    ' * 21}x = x - 1\n    return x\n").graph
    assert not first_call.runs_before_plan(graph, [tensor([1.0]), 2**63 - 1])


def test_only_where_compiling_goes_on_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x = executor_of(_function(PROGRAMS["called twice"][0])).graph, tensor([[1.0, 2.0]])
    for mode in ("eager", "off", "background"):
        monkeypatch.setattr(tiering, "mode", lambda mode=mode: mode)
        assert first_call.runs_before_plan(graph, [x]) == (mode == "background")


@pytest.mark.parametrize("inlines", [True, False])
@pytest.mark.parametrize("text", ["    return x * 2\n", "    return half(x) * 2\n"])
def test_what_ends_with_the_process_has_no_plan(text: str, inlines: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    function = _function("def f(x):\n" + text)
    function.inlines = inlines
    with leaving():
        assert call_function(function, [tensor([1.0])], {}).tolist() == [2.0]
        assert not executor_of(function).cache
        call_function(function, [tensor([1.0])], {})
    assert executor_of(function).cache


@pytest.mark.parametrize(("text", "plans"), [("    return x * 2\n", 0), ("    return half(x)\n", 1)])
def test_what_runs_once_has_no_plan_but_for_what_it_calls(
    text: str, plans: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    function = _function("def f(x):\n" + text)
    function.inlines = False
    executor = executor_of(function)
    assert call_function(function, [tensor([1.0])], {}).tolist() == [2.0 if plans == 0 else 1.0]
    assert len(executor.cache) == plans


def test_expansions_of_an_example_are_gone_in_every_call() -> None:
    """The sizes of an implicit expansion are those that a trace was made with, of which the first call knows nothing
    better than later ones do."""
    traced = "def f(x, y):\n    return x.expand([3, 2], implicit=True) + y\n"
    function = compile_source(traced).functions["f"]
    for rows in (4, 4, 4, 3):
        assert list(call_function(function, [tensor([1.0, 2.0]), tensor([[0.5, 0.5]] * rows)], {}).shape) == [rows, 2]
