"""Time and memory of what runs, node by node."""

from collections.abc import Iterator

import pytest

import engine.torch as torch
from engine.executor.conversion.from_python import unwrapped
from engine.executor.debugging.measuring import Cost, Measurement, measure_memory, measure_time
from engine.executor.interpreter.interpreter import run_function
from engine.executor.plans.executor import executor_of
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from engine.ir.unit import Function
from engine.lang.errors import ExecutionError


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


def compiled(text: str, name: str = "f") -> Function:
    return compile_source(text, filename="prog.py").functions[name]


def kinds(measured: Measurement) -> dict[str, Cost]:
    return {each.node.kind: each for each in measured.costs if each.node is not None}


def test_nodes_are_counted_and_their_seconds_make_the_whole() -> None:
    f = compiled("def f(x, n: int):\n    for i in range(n):\n        x = torch.nonzero(x)\n    return x\n")
    inputs = [torch.ones(3, 3), 4]
    run_function(f, inputs)
    measured, runs = measure_time(f, inputs, runs=3)
    assert runs == 3
    assert kinds(measured)["aten::nonzero"].count == 4
    assert measured.seconds == pytest.approx(sum(each.seconds for each in measured.costs))
    assert all(each.seconds >= 0 for each in measured.costs)
    assert torch.equal(measured.result, run_function(f, inputs))


def test_kernels_run_as_in_any_call_and_are_one_node() -> None:
    f = compiled("def f(x):\n    h = torch.tanh(x * 2)\n    return torch.nonzero(h)\n")
    inputs = [torch.ones(3, 3)]
    for _ in range(2):
        run_function(f, inputs)
    plan = executor_of(f).recent_plan
    assert plan is not None
    assert plan.fusion is not None
    (group,) = plan.fusion.groups
    measured, _ = measure_time(f, inputs)
    assert [each.count for each in measured.costs if each.node is group.node] == [1]
    assert group.fallbacks <= 1
    assert "aten::tanh" not in kinds(measured)


def test_memory_is_that_of_the_node_and_peak_that_of_the_call() -> None:
    f = compiled("def f(n: int):\n    a = torch.zeros(n, dtype=torch.float64)\n    b = a.clone()\n    return len(b)\n")
    run_function(f, [100_000])
    measured = measure_memory(f, [100_000])
    assert 800_000 <= kinds(measured)["aten::zeros"].allocated < 900_000
    assert measured.peak >= 1_600_000


def test_calls_that_stay_calls_have_their_nodes_told_apart() -> None:
    f = compiled("def g(x):\n    return torch.nonzero(x)\ndef f(x):\n    return g(g(g(x)))\n")
    f.inlines = False
    inputs = [torch.ones(3, 1)]
    run_function(f, inputs)
    measured, _ = measure_time(f, inputs)
    assert {each.plan.name for each in measured.costs} == {"f", "g"}
    assert sum(each.count for each in measured.costs if each.node and each.node.kind == "aten::nonzero") == 3


def test_what_the_interpreter_runs_is_measured_by_instruction() -> None:
    f = compiled("def f(x):\n    return torch.nonzero(x)\n")
    inputs = [torch.ones(3)]
    executor_of(f).plan_for(inputs).entry = None
    measured, _ = measure_time(f, inputs)
    assert kinds(measured)["aten::nonzero"].count == 1


def test_errors_are_those_of_the_call() -> None:
    f = compiled("def f(x, i: int):\n    return [1, 2][i]\n")
    with pytest.raises(ExecutionError) as wanted:
        run_function(f, [torch.ones(1), 7])
    with pytest.raises(ExecutionError) as found:
        measure_time(f, [torch.ones(1), 7])
    assert str(found.value) == str(wanted.value)


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(x)


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(Inner(), Inner())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_modules_are_told_by_their_paths() -> None:
    module = torch.jit.script(Outer())
    method, self = module.forward._function, unwrapped(module)
    inputs = [self, torch.ones(2, 2)]
    run_function(method, inputs)
    measured, _ = measure_time(method, inputs)
    nonzero = [each.module for each in measured.costs if each.node and each.node.kind == "aten::nonzero"]
    assert nonzero == ["layers.0", "layers.1"]


def test_frames_of_errors_tell_their_modules() -> None:
    module = torch.jit.script(Outer())
    with pytest.raises(ExecutionError) as found:
        run_function(module.forward._function, [unwrapped(module), None])
    assert [(frame.function, frame.module) for frame in found.value.frames] == [
        ("forward", ""), ("forward", "layers"), ("forward", "layers.0"),
    ]  # fmt: skip
    assert "in forward of layers.0" in str(found.value)
