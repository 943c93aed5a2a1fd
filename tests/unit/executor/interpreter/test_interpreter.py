"""Running: results, lifetimes, calls, suspending, errors."""

import timeit
import weakref

import pytest

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.bytecode import operations
from engine.executor.bytecode.code import Code
from engine.executor.concurrency.futures import Future
from engine.executor.interpreter.interpreter import MAX_DEPTH, InterpreterState, run_function
from engine.executor.plans.executor import code_of
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.unit import Function
from engine.lang.errors import Error, ExecutionError
from engine.lang.types import BOOL, INT, NONE, STR, ClassType, FunctionType, FutureType

SUM_BELOW = """
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%n, %t, %zero)
    block0(%i : int, %acc : int):
      %next : int = aten::add(%acc, %i)
      -> (%t, %next)
  return (%s)
"""


def run(text: str, *inputs: object) -> object:
    return InterpreterState(Code(parse_ir(text), "f")).run(*inputs)


def function(name: str, graph: Graph) -> Function:
    made = Function(name)
    made._graph = graph
    return made


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Kinds `prim::spy` and `test::spy`, which passes keep, call what is put into the list, with the node's inputs."""
    calls: list[object] = []
    for kind in ("prim::spy", "test::spy"):
        monkeypatch.setitem(operations.OPERATIONS, kind, lambda _: lambda *inputs: calls[0](*inputs))  # type: ignore[operator]
    return calls


def test_a_for_loop() -> None:
    assert [run(SUM_BELOW, n) for n in (-1, 0, 1, 5)] == [0, 0, 0, 10]


def test_values_swapped_by_a_loop_do_not_overwrite_each_other() -> None:
    assert run(
        """
graph(%n : int, %a.1 : int, %b.1 : int):
  %t : bool = prim::Constant[value=1]()
  %a : int, %b : int = prim::Loop(%n, %t, %a.1, %b.1)
    block0(%i : int, %x : int, %y : int):
      -> (%t, %y, %x)
  %r : (int, int) = prim::TupleConstruct(%a, %b)
  return (%r)
""",
        3,
        10,
        20,
    ) == (20, 10)


def test_a_loop_that_ends_by_its_condition_or_by_its_count() -> None:
    text = """
graph(%n : int, %limit : int):
  %t : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %s : int = prim::Loop(%n, %t, %zero)
    block0(%i : int, %acc : int):
      %next : int = aten::add(%acc, %one)
      %c : bool = aten::lt(%next, %limit)
      -> (%c, %next)
  return (%s)
"""
    assert (run(text, 10, 3), run(text, 2, 30), run(text, 0, 5)) == (3, 2, 0)


def test_graphs_with_several_results_and_with_none() -> None:
    assert run("graph(%a : int, %b : int):\n  return (%b, %a)\n", 1, 2) == (2, 1)
    assert run("graph(%a : int):\n  return ()\n", 1) is None


def test_values_die_right_after_their_last_use(spy: list[object]) -> None:
    graph = parse_ir("""
graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  %a : int = prim::spy(%y)
  %b : int = prim::spy(%a)
  %r : (int, int) = prim::TupleConstruct(%a, %b)
  return (%r)
""")
    alive: list[weakref.ref[Tensor]] = []

    def look(value: object) -> object:
        if isinstance(value, Tensor):
            alive.append(weakref.ref(value))
            return 1
        return 2 if alive[0]() is None else 3

    spy.append(look)
    assert InterpreterState(Code(graph, "f")).run(tensor([1.0])) == (1, 2)


def test_a_call_does_not_keep_its_arguments_alive(spy: list[object]) -> None:
    callee = function(
        "callee",
        parse_ir("""
graph(%x : Tensor):
  %y : int = prim::spy(%x)
  %z : int = prim::spy(%y)
  return (%z)
"""),
    )
    graph = Graph()
    x = graph.add_input("x")
    made = graph.append("aten::neg", [x])
    name = graph.append("prim::Constant", (), [FunctionType(callee)]).set_attr("name", "callee")
    graph.register_output(graph.append("prim::CallFunction", [name.output, made.output], [INT]).output)
    alive: list[weakref.ref[Tensor]] = []

    def look(value: object) -> object:
        if isinstance(value, Tensor):
            alive.append(weakref.ref(value))
            return 1
        return alive[0]() is None

    spy.append(look)
    assert InterpreterState(Code(graph, "f")).run(tensor([1.0])) is True


def endless() -> Function:
    """def endless(x): return endless(x)"""
    graph = Graph()
    made = function("endless", graph)
    x = graph.add_input("x", INT)
    name = graph.append("prim::Constant", (), [FunctionType(made)]).set_attr("name", "endless")
    graph.register_output(graph.append("prim::CallFunction", [name.output, x], [INT]).output)
    return made


def test_recursion_without_end_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(ExecutionError, match=f"depth of calls exceeded \\({MAX_DEPTH}\\) in 'endless'"):
        run_function(endless(), [1])


def test_stepping_goes_through_every_instruction_and_into_calls() -> None:
    state = InterpreterState(code_of(endless()))
    state.start(7)
    depths = []
    for _ in range(7):
        assert state.step()
        depths.append((len(state.frames), state.frame.pc))
    assert depths == [(1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]


def test_steps_add_up_to_a_run() -> None:
    state = InterpreterState(Code(parse_ir(SUM_BELOW), "f"))
    state.start(4)
    count = 1
    while state.step():
        count += 1
    assert (state.finished, state.result) == (True, 6)
    assert count == 7 + 4 * 6 + 2 + 3, "seven to enter, six a round, two to leave, three to return"


def test_a_hook_sees_every_instruction_and_can_suspend() -> None:
    seen: list[str] = []

    def hook(state: InterpreterState) -> None:
        seen.append(state.frame.instruction.name)
        if seen.count("add") == 1 and seen[-1] == "add":
            state.suspend()

    state = InterpreterState(Code(parse_ir(SUM_BELOW), "f"), [hook])
    state.start(2)
    assert not state.resume()
    assert seen[-1] == "add"
    state.hooks.clear()
    assert state.resume()
    assert state.result == 1


def test_hooks_cost_nothing_where_there_are_none() -> None:
    state = InterpreterState(Code(parse_ir(SUM_BELOW), "f"))
    best = min(timeit.repeat(lambda: state.run(1000), number=1, repeat=20)) / 6000
    assert best < 3e-6, "an instruction takes some 0.15 microseconds"


def test_ctrl_c_leaves_a_state_that_can_go_on(spy: list[object]) -> None:
    graph = parse_ir("graph(%x : int):\n  %y : int = prim::spy(%x)\n  %z : int = aten::neg(%y)\n  return (%z)\n")
    state = InterpreterState(Code(graph, "f"))

    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    spy.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        state.run(3)
    assert state.frame.instruction.name == "spy"
    spy[0] = lambda x: x + 1
    assert state.resume()
    assert state.result == -4


def test_our_own_assertions_pass_through(spy: list[object]) -> None:
    def fail(_: object) -> None:
        raise AssertionError("a mistake of ours")

    spy.append(fail)
    with pytest.raises(AssertionError, match="a mistake of ours"):
        run("graph(%x : int):\n  %y : int = prim::spy(%x)\n  return (%y)\n", 1)


def test_waiting_for_a_future_suspends() -> None:
    graph = Graph()
    future_value = graph.add_input("future", FutureType(INT))
    graph.register_output(graph.append("aten::wait", [future_value], [INT]).output)
    future, state = Future(), InterpreterState(Code(graph, "f"))
    state.start(future)
    assert not state.resume()
    assert state.waiting_for is future
    future.set_result(5)
    assert state.resume()
    assert state.result == 5


def test_fork_and_wait() -> None:
    assert run(FORKED, 20) == -20


def test_the_error_of_a_fork_arrives_at_wait() -> None:
    with pytest.raises(ExecutionError, match="ValueError: bad") as caught:
        run(FORKED.replace("%r : int = aten::neg(%y)", RAISE_BAD), 20)
    assert not isinstance(caught.value, Error)


FORKED = """
graph(%x : int):
  %future : Future(int) = prim::fork_0(%x)
  %z : int = aten::wait(%future)
  return (%z)
with prim::fork_0 = graph(%y : int):
  %r : int = aten::neg(%y)
  return (%r)
"""
RAISE_BAD = """%r : int = prim::Uninitialized()
  %m : str = prim::Constant[value="bad"]()
  %c : str = prim::Constant[value="builtins.ValueError"]()
  prim::RaiseException(%m, %c)"""


def context_class(log: list[str]) -> ClassType:
    made = ClassType("__torch__.Context")
    for name, extra in (("__enter__", 0), ("__exit__", 3)):
        graph = Graph()
        graph.add_input("self", made)
        for i in range(extra):
            graph.add_input(f"x{i}", NONE)
        text = graph.append("prim::Constant", (), [INT]).set_attr("value", len(log) + extra).output
        graph.append("test::spy", [text], [BOOL])
        graph.register_output(graph.append("prim::Constant", (), [NONE]).output)
        made.methods[name] = function(name, graph)
    return made


@pytest.mark.parametrize("fails", [False, True])
def test_with_leaves_its_context_also_when_the_body_fails(spy: list[object], fails: bool) -> None:
    log: list[object] = []
    spy.append(log.append)
    kind = context_class([])
    graph = Graph()
    x = graph.add_input("c", kind)
    graph.append("prim::Enter", [x], [NONE])
    if fails:
        message = graph.append("prim::Constant", (), [STR]).set_attr("value", "bad").output
        none = graph.append("prim::Constant", (), [NONE]).output
        graph.append("prim::RaiseException", [message, none], [])
    graph.append("prim::Exit", [x], [NONE])
    state = InterpreterState(Code(graph, "f"))
    if fails:
        with pytest.raises(Error, match="Exception: bad"):
            state.run(Object(kind))
    else:
        state.run(Object(kind))
    assert log == [0, 3]
    assert state.entered == []
