"""Plans come to call native entries, and what they do stays the same."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.grad_mode import no_grad
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.calls.call import call_function
from engine.executor.interpreter.interpreter import run_function
from engine.executor.plans import fusion
from engine.executor.plans.executor import executor_of
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.switches import optimized_execution
from engine.frontend.compilation.compile import compile_source
from engine.fuser import tiering
from engine.fuser.entries import native
from engine.ir.unit import Function
from engine.lang.errors import ExecutionError

CHAIN = "def f(x, y):\n    a = torch.tanh(x * y)\n    return torch.relu(a - 0.25) / 2.0\n"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fusion.SETTINGS, "compiler", None)
    before = native.SETTINGS.enabled, native.SETTINGS.threshold
    tiering.wait()
    native.SETTINGS.enabled, native.SETTINGS.threshold = True, 0
    yield
    native.SETTINGS.enabled, native.SETTINGS.threshold = before


def function_of(text: str) -> Function:
    return compile_source(text).functions["f"]


def plan_after(function: Function, calls: int, *args: Any) -> ExecutionPlan:
    for _ in range(calls):
        run_function(function, args)
    return executor_of(function).plan_for(args)


def of(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.linspace(-2, 2, int(np.prod(shape))).astype(dtype).reshape(shape))


def calls_of_native(plan: ExecutionPlan) -> int:
    assert plan.generated is not None
    things = plan.generated.environment
    return sum(
        type(thing).__name__ == "builtin_function_or_method" for name, thing in things.items() if name[-1:].isdigit()
    )


def test_the_second_call_is_native_and_gives_the_same_bits() -> None:
    function, args = function_of(CHAIN), (of(3, 5), of(3, 5))
    with optimized_execution(False):
        wanted = run_function(function, args)
    found = [run_function(function, args) for _ in range(4)]
    assert all(np.array_equal(each.array, wanted.array) for each in found)
    plan = executor_of(function).plan_for(args)
    assert "array" not in plan.source
    assert "quiet()" not in plan.source
    assert calls_of_native(plan) == 5


def test_a_plan_counts_calls_first(monkeypatch: pytest.MonkeyPatch) -> None:
    function, args = function_of(CHAIN), (of(4), of(4))
    monkeypatch.setattr(native.SETTINGS, "threshold", 5)
    assert "array" in plan_after(function, 5, *args).source
    run_function(function, args)  # a look
    tiering.wait()
    assert "array" not in plan_after(function, 100, *args).source


@pytest.mark.parametrize(
    "args",
    [(of(3, 5), of(5)), (Tensor(of(4, 4).array[:, ::2]), of(4, 2)), (of(300, 300), of(300, 300))],
    ids=["broadcast", "gaps", "long"],
)
def test_what_entries_are_not_made_for_stays_numpys(args: tuple[Tensor, Tensor]) -> None:
    function = function_of("def f(x, y):\n    return x * y\n")
    plan = plan_after(function, 3, *args)
    assert calls_of_native(plan) == 0
    assert "quiet()" in plan.source


def test_arrays_of_other_shapes_go_through_the_same_plan() -> None:
    function = function_of(CHAIN)
    plan = plan_after(function, 3, of(3, 5), of(3, 5))
    args = of(3, 5), of(1, 5)
    assert executor_of(function).plan_for(args) is plan
    with optimized_execution(False):
        wanted = run_function(function, args)
    assert np.array_equal(run_function(function, args).array, wanted.array)


def test_two_arrays_that_nobody_needs_as_tensors_stay_arrays() -> None:
    text = (
        "def f(x, y):\n    a, b = x.chunk(2, 1)\n    c = torch.tanh(a) * torch.tanh(b)\n    return torch.exp(c) * y\n"
    )
    function, args = function_of(text), (of(2, 8), of(2, 4))
    plan = plan_after(function, 3, *args)
    assert calls_of_native(plan) == 2
    with optimized_execution(False):
        wanted = run_function(function, args)
    assert np.array_equal(run_function(function, args).array, wanted.array)


def test_errors_keep_their_places() -> None:
    function = function_of(CHAIN)
    plan_after(function, 3, of(2, 3), of(2, 3))
    with pytest.raises(ExecutionError) as caught:
        call_function(function, [of(2, 3), of(3, 2)])
    with optimized_execution(False), pytest.raises(ExecutionError) as wanted:
        call_function(function, [of(2, 3), of(3, 2)])
    assert str(caught.value) == str(wanted.value)
    with pytest.raises(ExecutionError, match="must match"):
        call_function(function_of(CHAIN), [of(2, 3), of(3, 2)])  # while a plan looks


def test_gradients_are_recorded() -> None:
    function = function_of(CHAIN)
    x, y = tensor([0.5, 2.0], requires_grad=True), tensor([1.0, 3.0])
    for _ in range(4):
        assert run_function(function, (x, y)).requires_grad
        with no_grad():
            assert not run_function(function, (x, y)).requires_grad
        assert not run_function(function, (y, y)).requires_grad


def test_nothing_changes_while_native_entries_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native.SETTINGS, "enabled", False)
    plan = plan_after(function_of(CHAIN), 3, of(3, 5), of(3, 5))
    assert calls_of_native(plan) == 0
    assert plan.entry.__name__ == "run"


def test_calls_in_loops_and_branches() -> None:
    text = (
        "def f(x, n: int):\n    for i in range(n):\n        if i % 2 == 0:\n            x = x * 0.5 + i\n"
        "        else:\n            x = torch.tanh(x)\n    return x\n"
    )
    function = function_of(text)
    for n in (0, 3, 11, 12, 11):
        with optimized_execution(False):
            wanted = run_function(function, (of(7), n))
        assert np.array_equal(run_function(function, (of(7), n)).array, wanted.array)
