"""Forks: real threads, runs that leave them while they wait."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import is_grad_enabled, no_grad
from engine.aten.values.tensor import tensor
from engine.executor.bytecode import operations
from engine.executor.calls.call import call_function, fork_call
from engine.executor.concurrency.forks import ForkedTask
from engine.executor.concurrency.futures import Future
from engine.executor.concurrency.workers import WORKERS
from engine.executor.interpreter.interpreter import run_function
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError, ExecutionError
from engine.lang.types import BOOL, INT, FunctionType, FutureType

MANY = """
def leaf(x: int):
    return x * 2
def f(n: int):
    futures: List[Future[int]] = []
    for i in range(n):
        futures.append(torch.jit.fork(leaf, i))
    total = 0
    for future in futures:
        total += torch.jit.wait(future)
    return total
"""


def test_forks_may_outnumber_threads() -> None:
    assert call_function(compile_source(MANY).functions["f"], [2000]) == 1999 * 2000
    assert WORKERS.threads <= WORKERS.size + 1


def nested() -> Function:
    """def nested(n): return wait(fork(nested, n - 1)) + 1 if n > 0 else 0"""
    graph, inner = Graph(), Graph()
    made = Function("nested")
    made._graph = graph
    n = graph.add_input("n", INT)
    zero = graph.append("prim::Constant", (), [INT]).set_attr("value", 0).output
    one = graph.append("prim::Constant", (), [INT]).set_attr("value", 1).output
    branch = graph.append("prim::If", [graph.append("aten::gt", [n, zero], [BOOL]).output], [INT])
    m = inner.add_input("m", INT)
    name = inner.append("prim::Constant", (), [FunctionType(made)]).set_attr("name", "nested").output
    inner.register_output(inner.append("prim::CallFunction", [name, m], [INT]).output)
    with graph.inserting_at(branch.add_block()):
        less = graph.append("aten::sub", [n, one], [INT]).output
        fork = graph.append("prim::fork", [less], [FutureType(INT)]).set_attr("Subgraph", inner)
        waited = graph.append("aten::wait", [fork.output], [INT]).output
        branch.blocks[0].register_output(graph.append("aten::add", [waited, one], [INT]).output)
    branch.add_block().register_output(zero)
    graph.register_output(branch.output)
    return made


@pytest.mark.parametrize("depth", [1, 50, pytest.param(10_000, marks=pytest.mark.slow)])
def test_forks_in_forks_that_wait_hold_no_threads(depth: int) -> None:
    before = threading.active_count()
    assert run_function(nested(), [depth]) == depth
    assert threading.active_count() <= before + WORKERS.size


def test_an_error_travels_through_waits() -> None:
    text = """
def fail(x: int):
    if x > 1:
        raise ValueError('no luck')
    return x
def middle(x: int):
    return torch.jit.wait(torch.jit.fork(fail, x)) + 1
def f(x: int):
    a = torch.jit.fork(middle, x)
    b = torch.jit.fork(fail, 0)
    return torch.jit.wait(b) + torch.jit.wait(a)
"""
    function = compile_source(text, filename="p.py").functions["f"]
    assert call_function(function, [1]) == 2
    with pytest.raises(ExecutionError, match="no luck") as caught:
        call_function(function, [2])
    assert [(frame.function, frame.range.line) for frame in caught.value.frames] == [("f", 11)]
    assert "line 7, in middle" in str(caught.value) and "line 4, in fail" in str(caught.value)


def test_two_forks_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(2)
    monkeypatch.setitem(operations.OPERATIONS, "test::meet", lambda _: lambda x: (meeting.wait(10), x)[1])
    function = Function("f")
    function._graph = parse_ir("""
graph(%x : int):
  %a : Future(int) = prim::fork_0(%x)
  %b : Future(int) = prim::fork_1(%x)
  %c : int = aten::wait(%a)
  %d : int = aten::wait(%b)
  %e : int = aten::add(%c, %d)
  return (%e)
with prim::fork_0 = graph(%y : int):
  %r : int = test::meet(%y)
  return (%r)
with prim::fork_1 = graph(%y : int):
  %r : int = test::meet(%y)
  return (%r)
""")
    assert run_function(function, [3]) == 6


def test_a_suspended_run_goes_on_when_its_future_is_complete() -> None:
    future, threads = Future(), list[int]()

    class Run:
        result: Any = None
        waiting_for: Future | None = future

        def resume(self) -> bool:
            threads.append(threading.get_ident())
            if not future.done():
                return False
            self.result = future.value() + 1
            return True

    task = ForkedTask(lambda _: Run(), ())
    task.go_on()
    assert not task.future.done()
    future.set_result(4)
    assert task.future.wait() == 5
    assert threads[0] == threading.get_ident() != threads[1]


def test_whether_gradients_are_recorded_goes_with_the_fork() -> None:
    seen: list[bool] = []

    def begin(_: Any) -> Any:
        return lambda: seen.append(is_grad_enabled())

    with no_grad():
        first = ForkedTask(begin, ())
    second = ForkedTask(begin, ())
    for task in (first, second):
        WORKERS.submit(task.go_on)
        task.future.wait()
    assert seen == [False, True]
    assert is_grad_enabled()


def test_gradients_flow_through_forks() -> None:
    text = """
def g(x: Tensor):
    return x * x
def f(x: Tensor):
    future = torch.jit.fork(g, x)
    return future.wait().sum()
"""
    x = tensor(np.full(3, 2.0, "f4"), requires_grad=True)
    call_function(compile_source(text).functions["f"], [x]).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_waiting_below_an_operator_does_not_stop_the_others() -> None:
    """A wait that has to hold its thread, as in a comparison that sorting calls, lets another thread take its place."""
    futures = [Future() for _ in range(WORKERS.size + 3)]
    tasks = [ForkedTask(lambda _, f=future: f.wait, ()) for future in futures]
    for task in tasks:
        WORKERS.submit(task.go_on)
    time.sleep(0.01)
    WORKERS.submit(lambda: [future.set_result(i) for i, future in enumerate(futures)])
    assert [task.future.wait() for task in tasks] == list(range(len(futures)))


def test_mistakes_of_ours_arrive_as_they_are() -> None:
    def fail() -> None:
        raise AssertionError("a mistake of ours")

    task = ForkedTask(lambda _: fail, ())
    task.go_on()
    with pytest.raises(AssertionError, match="a mistake of ours"):
        task.future.wait()


def test_calls_from_python_run_on_other_threads() -> None:
    function = compile_source("def f(x: int):\n    return [x + 1]\n").functions["f"]
    futures = [fork_call(function, [n], {}) for n in range(50)]
    assert [future.wait() for future in futures] == [[n + 1] for n in range(50)]
    assert fork_call(function, [], {"x": 3}).then(lambda future: future.value()[0] * 2).wait() == 8


def test_errors_of_forked_calls_wait() -> None:
    function = compile_source(
        "def f(x: int):\n    if x > 2:\n        raise ValueError('big')\n    return x\n"
    ).functions["f"]
    future = fork_call(function, [3], {})
    with pytest.raises(ExecutionError, match="ValueError: big"):
        future.wait()
    with pytest.raises(ArgumentError):
        fork_call(function, ["three"], {})


def test_forked_calls_keep_the_grad_mode() -> None:
    function = compile_source("def f(x):\n    return (x * 2).requires_grad\n").functions["f"]
    x = tensor([1.0], requires_grad=True)
    assert fork_call(function, [x], {}).wait() is True
    with no_grad():
        assert fork_call(function, [x], {}).wait() is False
