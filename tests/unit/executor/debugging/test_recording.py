"""Recorded runs: what was is there again, and what comes is the same."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from engine.aten.dispatch.grad_mode import MODE
from engine.aten.kernels.random import generator
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.debugging.recording import BOUND, Recording
from engine.executor.interpreter.interpreter import run_function
from engine.executor.plans.switches import optimized_execution
from engine.lang.errors import ExecutionError
from tests.fuzz.going_back import SHORT, generated, problem

from .programs import FORKS, LOOP, function, recording


@pytest.mark.parametrize("bound", [BOUND, SHORT, 1])
@pytest.mark.parametrize("seed", range(12))
def test_n_forward_and_n_back_is_where_it_was(seed: int, bound: int) -> None:
    made, arguments = generated(Random(seed))
    assert not problem(made, arguments(), bound)


def test_an_in_place_loop_is_undone() -> None:
    x = tensor([1.0, 2.0, 3.0])
    run = recording(LOOP, x, 5)
    run.go_to(10_000)
    assert run.finished
    expected = run_function(function(LOOP), [tensor([1.0, 2.0, 3.0]), 5])
    assert run.result.tolist() == expected.tolist()
    run.go_to(0)
    assert x.tolist() == [1.0, 2.0, 3.0]
    assert x._version == 0
    run.go_to(10_000)
    assert run.result.tolist() == expected.tolist()


def test_a_journal_takes_no_more_than_its_bound_and_what_it_lost_is_run_again() -> None:
    text = "def f(x: Tensor, n: int):\n    for i in range(n):\n        x.mul_(1.5)\n    return x\n"
    x = tensor(np.ones(1000, np.float32))
    run = recording(text, x, 50, bound=50_000)
    run.go_to(10_000)
    assert 0 < run.reach < run.position
    last = x.tolist()
    run.go_to(run.reach - 20)
    middle = x.tolist()
    run.go_to(0)
    assert x.tolist() == [1.0] * 1000
    run.go_to(10_000)
    assert x.tolist() == last != middle


def test_random_numbers_are_drawn_again() -> None:
    text = (
        "def f(n: int):\n    l = [torch.zeros(2)]\n    for i in range(n):\n        l += [torch.rand(2)]\n    return l\n"
    )
    for bound in (BOUND, 1000):
        generator().manual_seed(3)
        run = recording(text, 4, bound=bound)
        run.go_to(10_000)
        first = [each.tolist() for each in run.result]
        run.go_to(20)
        run.go_to(10_000)
        assert [each.tolist() for each in run.result] == first
    run.go_to(0)
    assert generator().state_bytes() == generator().manual_seed(3).state_bytes()


def test_replays_do_not_print(capsys: pytest.CaptureFixture[str]) -> None:
    text = "def f(n: int):\n    for i in range(n):\n        print(i)\n    return n\n"
    run = recording(text, 3, bound=1)
    run.go_to(10_000)
    assert capsys.readouterr().out == "0\n1\n2\n"
    run.go_to(8)
    assert capsys.readouterr().out == ""


def test_a_failing_instruction_is_undone_and_fails_again() -> None:
    run = recording("def f(x: Tensor, d: Dict[int, int]):\n    x.add_(1)\n    return x * d[3]\n", tensor([1.0]), {})
    for _ in range(2):
        with pytest.raises(ExecutionError, match="KeyError: 3"):
            run.go_to(10_000)
        assert run.error is not None
        assert run.frames[-1].instruction.name == "__getitem__"
    run.go_to(0)
    assert run.inputs[0].tolist() == [1.0]


def test_contexts_stay_open_at_an_error_and_modes_are_the_runs() -> None:
    text = "def f(x: Tensor):\n    with torch.no_grad():\n        y = x * 2\n        z = y[7]\n    return z\n"
    run = recording(text, tensor([1.0]))
    with run.running(), pytest.raises(ExecutionError):
        run.go_to(10_000)
    assert MODE.enabled
    with run.running():
        assert not MODE.enabled
        run.go_to(0)
    with run.running():
        assert MODE.enabled


def test_gradients_are_taken_back() -> None:
    text = "def f(x: Tensor):\n    y = (x * x).sum()\n    y.backward()\n    return x\n"
    x = tensor([1.0, 2.0])
    x.requires_grad = True
    run = recording(text, x)
    for _ in range(2):
        run.go_to(10_000)
        assert x.grad is not None
        assert x.grad.tolist() == [2.0, 4.0]
        run.go_to(3)
        assert x.grad is None


def test_running_statistics_are_taken_back() -> None:
    text = (
        "def f(x: Tensor, mean: Tensor, var: Tensor):\n"
        "    return torch.batch_norm(x, None, None, mean, var, True, 0.5, 1e-5, False)\n"
    )
    mean, var = tensor([0.0, 0.0]), tensor([1.0, 1.0])
    run = recording(text, tensor([[1.0, 2.0], [3.0, 4.0]]), mean, var)
    run.go_to(10_000)
    assert mean.tolist() == [1.0, 1.5]
    run.go_to(0)
    assert (mean.tolist(), var.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_forks_run_when_they_are_waited_for() -> None:
    run = recording(FORKS, tensor([1.0]))
    seen = [run.thread.number]
    while run.forward():
        seen += [run.thread.number] if run.thread.number != seen[-1] else []
    assert seen == [1, 3, 1, 2, 1]
    assert run.result.tolist() == [12.0]
    run.go_to(0)
    assert len(run.threads) == 1


def test_a_thread_may_be_chosen() -> None:
    run = recording(FORKS, tensor([1.0]))
    while len(run.threads) < 3:
        run.forward()
    assert run.switch(2)
    assert not run.switch(7)
    while not run.threads[1].state.finished:
        run.forward()
    run.go_to(10_000)
    assert run.result.tolist() == [12.0]


def test_an_error_in_a_fork_is_met_there_and_then_where_it_is_waited_for() -> None:
    text = FORKS.replace("x = x + 1", "x = x[5]")
    run = recording(text, tensor([1.0]))
    with pytest.raises(ExecutionError):
        run.go_to(10_000)
    assert run.thread.number == 3
    with pytest.raises(ExecutionError):
        run.go_to(10_000)
    assert run.thread.number == 1


@pytest.mark.parametrize("seed", range(12))
def test_runs_have_the_interpreters_meaning(seed: int) -> None:
    made, arguments = generated(Random(seed))
    with optimized_execution(False):
        expected = _told(lambda: run_function(made, arguments()))
    run = Recording(made, arguments())
    assert _told(lambda: run.go_to(100_000) or run.result) == expected


def _told(run: Callable[[], object]) -> str:
    try:
        return repr(run())
    except ExecutionError as error:
        return error.message


def test_values_stay_in_their_registers() -> None:
    run = recording("def f(x: Tensor):\n    y = x * 2\n    z = y + 1\n    return z\n", tensor([1.0]))
    while len(run._journal) < 5:
        run.forward()
    assert sum(isinstance(each, Tensor) for each in run.frames[-1].registers) >= 2
