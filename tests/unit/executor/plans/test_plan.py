"""Plans: generated code does what the interpreter does, errors, lifetimes and gradients included."""

import signal
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import no_grad
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.bytecode import operations
from engine.executor.calls.call import call_function
from engine.executor.interpreter.interpreter import MAX_DEPTH, MAX_GENERATED_DEPTH, InterpreterState, run, run_function
from engine.executor.plans.executor import GraphExecutor, executor_of
from engine.executor.plans.making import is_gradient_free
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.switches import optimized_execution
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.unit import Function
from engine.lang.errors import Error, ExecutionError
from engine.lang.types import BOOL, INT, FunctionType

pytestmark = pytest.mark.usefixtures("plans_at_once")

LARGEST = 2**63 - 1
PROGRAMS = {
    "sums that wrap": (
        "def f(a: int, b: int):\n    return a + b, a - b, a * b, -a, a * 3 + 1",
        [(1, 2), (LARGEST, 1), (-LARGEST - 1, 1), (LARGEST, LARGEST), (-LARGEST - 1, -1), (3037000500, 3037000500)],
    ),
    "quotients": (
        "def f(a: int, b: int):\n    return a // b, a % b, a / b",
        [(7, 2), (-7, 2), (7, -2), (-LARGEST - 1, -1), (1, LARGEST), (-1, -LARGEST)],
    ),
    "divisions by zero": ("def f(a: int, b: int):\n    x = a + 1\n    return x // b", [(1, 0), (0, 0)]),
    "remainders by zero": ("def f(a: int, b: int):\n    return a % b", [(1, 0)]),
    "floats": (
        "def f(a: float, b: float, n: int):\n"
        "    return a + b, a * b - 1.5, a / b, a < b, a == b, n / 3, n * a, float(n) < a, n == a, -a, min(a, b)",
        [(1.5, 2.5, 3), (1.0, 0.0, 1), (-1.0, 0.0, 0), (float("nan"), float("inf"), 2), (2.0**53, 1.0, 2**53 + 1)],
    ),
    "bits": (
        "def f(a: int, b: int):\n    return a & b, a | b, a ^ b, (a & 15) * 2, min(a, b), max(a, b)",
        [(12, 10), (-1, 7), (-LARGEST - 1, LARGEST)],
    ),
    "a while": (
        "def f(n: int):\n    t = 0\n    i = 0\n    while i < n:\n        t += i * 2\n        i += 1\n    return t, i",
        [(0,), (-3,), (5,), (50,)],
    ),
    "a while that grows out of 64 bits": (
        "def f(n: int):\n    x = 1\n    i = 0\n    while i < n:\n        x = x * 3 + i\n        i += 1\n    return x",
        [(10,), (100,)],
    ),
    "a while that counts down": (
        "def f(n: int):\n    t = 0\n    while n > 0 and t < 100:\n        t += n\n        n -= 3\n    return t, n",
        [(0,), (10,), (1000,)],
    ),
    "a while that always runs once": (
        "def f(n: int):\n    i = 0\n    t = 7\n    while i < 3:\n        t, i = i * n, i + 1\n    return t, i",
        [(0,), (9,)],
    ),
    "break and continue": (
        "def f(n: int):\n    t = 0\n    for i in range(n):\n        if i % 2 == 0:\n            continue\n"
        "        if i > 7:\n            break\n        t += i\n    return t",
        [(0,), (3,), (20,)],
    ),
    "loops in loops": (
        "def f(n: int):\n    found: List[int] = []\n    for i in range(n):\n        j = i\n        while j > 0:\n"
        "            j = j // 2\n            for k in range(j):\n                found.append(i * j - k)\n"
        "    return found",
        [(0,), (9,)],
    ),
    "values that swap": (
        "def f(n: int):\n    a, b, c = 1, 2, 3\n    for i in range(n):\n        a, b, c = b, c, a\n    return a, b, c",
        [(0,), (1,), (2,), (7,)],
    ),
    "early returns": (
        "def f(x: int):\n    if x > 3:\n        if x > 5:\n            return 'big'\n        return 'middle'\n"
        "    for i in range(x):\n        if i == 2:\n            return 'three'\n    return 'small'",
        [(0,), (3,), (4,), (6,)],
    ),
    "lists": (
        "def f(n: int):\n    x = [1, 2, 3]\n    x[1] = n\n    x.append(len(x))\n    y = x\n    y[-1] += 1\n"
        "    a, b, c, d = x\n    return x, y[0], a + d, [i * 2 for i in x], x[1:]",
        [(5,)],
    ),
    "an index out of range": ("def f(n: int):\n    x = [1, 2]\n    return x[n * 2 + 1]", [(0,), (1,), (-2,)]),
    "a place out of range": ("def f(n: int):\n    x = [1, 2]\n    x[n] = 3\n    return x", [(1,), (2,)]),
    "unpacking too few": ("def f(x: List[int]):\n    a, b = x\n    return a + b", [([1, 2],), ([1],)]),
    "dicts and text": (
        "def f(x: str):\n    d = {'a': 1, x: 2}\n    d[x + 'b'] = len(x)\n"
        "    return d[x], '{}-{}'.format(x, d['a']), x < 'm', x == 'a', x[0]",
        [("b",), ("z",)],
    ),
    "a key that is not there": ("def f(x: str):\n    d = {'a': 1}\n    return d[x]", [("a",), ("b",)]),
    "optionals": (
        "def f(x: Optional[int], y: Tuple[int, str]):\n    if x is None:\n        return y[0]\n"
        "    return x + len(y[1])",
        [(None, (1, "abc")), (4, (1, "abc"))],
    ),
    "a raise": (
        "def g(x: int):\n    if x > 1:\n        raise ValueError('no ' + str(x))\n    return x\n"
        "def f(x: int):\n    y = g(x)\n    return g(x + 1) + y",
        [(0,), (1,), (2,)],
    ),
    "an assertion": ("def f(x: int):\n    assert x > 0, 'too small'\n    return x", [(1,), (0,)]),
    "tensors": (
        "def f(x: Tensor, y: Tensor):\n    z = torch.tanh(x * y - 0.5) + y\n    w = torch.sigmoid(z).relu() / 2\n"
        "    return z, w.sum(), (w > 0.3).any(), torch.where(w > 0.3, w, -z), x.t().mm(y), w.exp().mean(0)",
        [(np.ones((2, 3), "f4"), np.full((2, 3), 2.0, "f4")), (np.ones((1, 1), "f8"), np.zeros((1, 1), "f8"))],
    ),
    "tensors of several dtypes": (
        "def f(x: Tensor, y: Tensor):\n    return x + y, x * 2, x + 0.5, x - y, y / 3, (x < y).sum(), x.float() * y",
        [
            (np.arange(3), np.ones(3, "f4")), (np.ones(2, "f8"), np.ones(2, "f4")), (np.ones(2, "i4"), np.arange(2)),
            (np.array(2.0, "f4"), np.ones(2, "f4")), (np.array(3), np.array(1.5, "f8")),
            (np.ones(2, "?"), np.arange(2)),
        ],
    ),
    "tensors without dimensions": (
        "def f(x: Tensor):\n    y = x * 2 + 1\n    return y, y.exp(), y.item(), y.unsqueeze(0), -y",
        [(np.array(1.5, "f4"),), (np.array(2.5, "f8"),)],
    ),
    "shapes that do not fit": (
        "def g(x: Tensor, y: Tensor):\n    return x * 2 + y\n"
        "def f(x: Tensor, y: Tensor):\n    a = x.exp()\n    return g(a, y)",
        [(np.ones((2, 3), "f4"), np.ones((2, 4), "f4")), (np.ones(3, "f4"), np.ones(3, "f4"))],
    ),
    "writes and views": (
        "def f(x: Tensor):\n    y = x + 1\n    v = y[0]\n    v.mul_(3)\n    z = y * 2\n    y.add_(1)\n    y[1] = 5\n"
        "    w = y.unsqueeze(0)\n    y.unsqueeze_(0)\n    return y * 1, z, v + 0, w.exp(), y.dim()",
        [(np.ones((2, 3), "f4"),)],
    ),
    "an argument that changes its shape": (
        "def f(x: Tensor, y: Tensor):\n    a = x * 2\n    x.unsqueeze_(0)\n    return a + y, x * 2, x.dim(), y.dim()",
        [(np.ones((2, 3), "f4"), np.ones((2, 3), "f4"))],
    ),
    "a write to an argument": (
        "def f(x: Tensor):\n    for i in range(3):\n        x.add_(i)\n        x = x * 2\n    return x",
        [(np.ones(2, "f4"),), (np.ones(2, "i8"),)],
    ),
    "lists of tensors": (
        "def f(x: Tensor, n: int):\n    xs = [x]\n    for i in range(n):\n        xs.append(xs[-1] * 0.5 + 1)\n"
        "    a, b = torch.stack(xs).sum(0).chunk(2)\n    return torch.cat(xs), a, b",
        [(np.ones(4, "f4"), 3), (np.ones(4, "f8"), 0)],
    ),
}  # fmt: skip


def given(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tensor(value)
    return list(value) if isinstance(value, list) else value


def seen(value: Any) -> Any:
    """A result as something that compares."""
    if isinstance(value, Tensor):
        return "tensor", str(value.array.dtype), value.array.shape, value.array.tobytes()
    if isinstance(value, (list, tuple)):
        return type(value), [seen(each) for each in value]
    return type(value), repr(value)


def outcome(call: Any, arguments: list[Any]) -> Any:
    try:
        result = call(*arguments)
    except ExecutionError as error:
        return type(error), str(error), error.frames, type(error.__cause__), seen(arguments)
    return seen(result), seen(arguments)


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("name", PROGRAMS)
def test_generated_code_does_what_the_interpreter_does(name: str) -> None:
    text, calls = PROGRAMS[name]
    executor = executor_of(compile_source(text + "\n", filename="p.py").functions["f"])
    for arguments in calls:
        plain = outcome(InterpreterState(executor.code).run, [given(a) for a in arguments])
        for _ in range(2):
            assert outcome(lambda *args: run(executor, args), [given(a) for a in arguments]) == plain
    assert all(plan.entry is not None for plan in executor.cache.plans())


def plan_of(text: str, *arguments: Any) -> ExecutionPlan:
    function = compile_source(text + "\n").functions["f"]
    return executor_of(function).plan_for([given(a) for a in arguments])


def test_the_same_graph_gives_the_same_text() -> None:
    text, calls = PROGRAMS["tensors"]
    first, second = (plan_of(text, *calls[0]) for _ in range(2))
    assert first.source == second.source != ""
    assert str(first.graph) == str(second.graph)


def test_intermediate_results_are_bare_arrays() -> None:
    source = plan_of("def f(x: Tensor):\n    return torch.relu(x * x) + 1", np.ones(2, "f4")).source
    assert source.count("new(Tensor)") == 1


def test_the_inputs_types_tell_what_the_plan_is_for() -> None:
    text = "def f(x: Tensor, y: Tensor):\n    x.{}\n    return y + 1"
    plan = plan_of(text.format("unsqueeze_(0)"), np.ones((2, 2), "f4"), np.ones(3, "f8"))
    assert str(plan.graph.inputs[0].type) == "FloatTensor(device=cpu)", "its rank may change"
    assert plan.spec.tensors[0] is not None and plan.spec.tensors[0].rank == 2
    plan = plan_of(text.format("add_(1)"), np.ones((2, 2), "f4"), np.ones(3, "f8"))
    assert str(plan.graph.inputs[0].type) == "Float(*, *, device=cpu)", "it may come to require gradients"


# -- gradients


def test_gradients_flow_through_plans() -> None:
    text = "def f(x: Tensor, y: Tensor):\n    return (torch.tanh(x * y) + x).sum()"
    executor = executor_of(compile_source(text + "\n").functions["f"])
    gradients = []
    for way in (InterpreterState(executor.code).run, lambda *args: run(executor, args)):
        x, y = tensor(np.ones(3, "f4"), requires_grad=True), tensor(np.full(3, 0.5, "f4"))
        result = way(x, y)
        result.backward()
        assert x.grad is not None
        gradients.append(x.grad.tolist())
    assert gradients[0] == gradients[1]


def test_without_recording_tensors_that_require_grad_are_bare_arrays_too() -> None:
    x = tensor(np.ones(3, "f4"), requires_grad=True)
    executor = executor_of(compile_source("def f(x: Tensor):\n    return x * 2 + 1\n").functions["f"])
    assert run(executor, [x]).requires_grad
    with no_grad():
        result = run(executor, [x])
    assert not result.requires_grad
    with_grad, without = executor.cache.plans()
    assert "new(Tensor)" not in with_grad.source
    assert without.source.count("new(Tensor)") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n", True),
        ("graph(%x : Tensor[]):\n  return (%x)\n", False),
        ("graph(%x : (Tensor, int)):\n  return (%x)\n", True),
        ("graph(%x : (Tensor[], int)):\n  return (%x)\n", False),
        ("graph(%x : Tensor?):\n  return (%x)\n", True),
        ("graph(%x : Tensor, %t : bool):\n  %y : Tensor = aten::requires_grad_(%x, %t)\n  return (%y)\n", False),
        ("graph(%x : Tensor):\n  %y : Tensor = prim::unknown(%x)\n  return (%y)\n", False),
    ],
)
def test_when_no_gradient_can_be_asked_for(text: str, expected: bool) -> None:
    assert is_gradient_free(parse_ir(text), (True, (np.dtype("f4"), 1, False))) is expected


# -- lifetimes


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Kind `test::spy` calls what is put into the list, with the node's inputs."""
    calls: list[Any] = []
    monkeypatch.setitem(operations.OPERATIONS, "test::spy", lambda _: lambda *inputs: calls[0](*inputs))
    return calls


def executor_for(text: str) -> GraphExecutor:
    function = Function("f")
    function._graph = parse_ir(text)
    return executor_of(function)


def test_values_die_right_after_their_last_use(spy: list[Any]) -> None:
    executor = executor_for("""
graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%y)
  %a : int = test::spy(%l)
  %b : bool = test::spy(%a)
  %c : int = prim::If(%b)
    block0():
      %d : int = test::spy(%a)
      -> (%d)
    block1():
      %e : int = test::spy(%l)
      -> (%e)
  return (%c)
""")
    alive: list[weakref.ref[Tensor]] = []

    def look(value: Any) -> Any:
        if isinstance(value, list):
            alive.append(weakref.ref(value[0]))
            return 1
        return True if len(alive) == 1 and alive[0]() is not None else 7

    looked: list[bool] = []
    spy.append(look)
    assert executor.plan_for([tensor([1.0])]).entry is not None

    def look_in_turn(value: Any) -> Any:
        if isinstance(value, list):
            return look(value)
        looked.append(alive[0]() is not None)
        return True

    spy[0] = look_in_turn
    run(executor, [tensor([1.0])])
    assert looked == [True, False], "needed until the branch is known, and dead where it is not used"


def test_a_loop_keeps_only_what_it_carries(spy: list[Any]) -> None:
    executor = executor_for("""
graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %first : Tensor = aten::neg(%x)
  %y : Tensor = prim::Loop(%n, %t, %first)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::neg(%a)
      %s : int = test::spy(%b)
      -> (%t, %b)
  return (%y)
""")
    alive: list[weakref.ref[Tensor]] = []
    counts: list[int] = []

    def look(value: Tensor) -> int:
        alive.append(weakref.ref(value))
        counts.append(sum(each() is not None for each in alive))
        return 0

    spy.append(look)
    run(executor, [tensor([1.0]), 5])
    assert counts == [1] * 5


# -- depth, interrupts


def recursive(then: str) -> Function:
    """def f(n): return f(n - 1) + 1 if n > 0 else <then>"""
    graph = Graph()
    made = Function("f")
    made._graph = graph
    n = graph.add_input("n", INT)

    def constant(value: int) -> Any:
        return graph.append("prim::Constant", (), [INT]).set_attr("value", value).output

    zero, one = constant(0), constant(1)
    name = graph.append("prim::Constant", (), [FunctionType(made)]).set_attr("name", "f").output
    again = graph.append("aten::gt", [n, zero], [BOOL]).output
    branch = graph.append("prim::If", [again], [INT])
    with graph.inserting_at(branch.add_block()):
        less = graph.append("aten::sub", [n, one], [INT]).output
        called = graph.append("prim::CallFunction", [name, less], [INT]).output
        branch.blocks[0].register_output(graph.append("aten::add", [called, one], [INT]).output)
    with graph.inserting_at(branch.add_block()):
        branch.blocks[1].register_output(
            graph.append(then, [zero, n] if then == "aten::floordiv" else [n], [INT]).output
        )
    graph.register_output(branch.output)
    return made


@pytest.mark.parametrize("depth", [3, MAX_GENERATED_DEPTH + 5, MAX_DEPTH - 2])
def test_calls_within_calls_go_as_deep_as_in_the_interpreter(depth: int) -> None:
    function = recursive("aten::neg")
    assert run_function(function, [depth]) == depth
    assert executor_of(function).cache.plans()[0].calls


def test_recursion_without_end_is_the_same_error() -> None:
    function = recursive("aten::neg")
    messages = []
    depth = MAX_DEPTH + 2 * MAX_GENERATED_DEPTH
    code = executor_of(function).code
    for call in (lambda: run_function(function, [depth]), lambda: InterpreterState(code).run(depth)):
        with pytest.raises(ExecutionError, match=f"depth of calls exceeded \\({MAX_DEPTH}\\)") as caught:
            call()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_an_error_deep_in_calls_tells_the_same_stack() -> None:
    function = recursive("aten::floordiv")
    executor = executor_of(function)
    for depth in (0, 5, MAX_GENERATED_DEPTH + 50):
        plain = outcome(InterpreterState(executor.code).run, [depth])
        assert plain[0] is ExecutionError
        assert outcome(lambda *args: run(executor, args), [depth]) == plain


def test_little_room_on_pythons_stack_is_no_error() -> None:
    function = recursive("aten::neg")
    run_function(function, [1])

    def deeper(levels: int) -> int:
        return deeper(levels - 1) if levels else run_function(function, [300])

    frames = sys.getrecursionlimit() - 250
    assert deeper(frames - len(list(_frames()))) == 300


def _frames() -> Iterator[Any]:
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


def test_ctrl_c_ends_a_loop() -> None:
    text = "def f(n: int):\n    i = 0\n    while True:\n        i = (i + 1) % 1000\n    return i"
    plan = plan_of(text, 1)
    assert plan.entry is not None
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            plan.entry(1)
    finally:
        signal.signal(signal.SIGALRM, before)


# -- what the interpreter has to run


FORKS = """
def g(x: int):
    if x > 3:
        raise ValueError('big')
    return x * 2
def h(x: int):
    one, two = torch.jit.fork(g, x), torch.jit.fork(g, x + 1)
    return torch.jit.wait(one) + torch.jit.wait(two)
def f(x: int):
    future = torch.jit.fork(h, x)
    return h(x) + torch.jit.wait(future)
"""


def test_forks_are_generated_and_wait_suspended_where_a_worker_runs_them() -> None:
    plan = plan_of(FORKS, 1)
    assert plan.entry is not None
    assert plan.waits
    assert plan.source.count("fork(function_") == 3
    function = compile_source(FORKS).functions["f"]
    assert [call_function(function, [n]) for n in range(3)] == [4, 12, 20]
    with pytest.raises(ExecutionError, match="ValueError: big") as caught:
        call_function(function, [3])
    with pytest.raises(ExecutionError) as wanted, optimized_execution(False):
        call_function(function, [3])
    # A fork that was inlined goes by the name of the function that it is in.
    assert str(caught.value).replace(", in h", ", in f") == str(wanted.value).replace(", in h", ", in f")


CONTEXT = """
class Depth(object):
    def __init__(self, log: List[int]):
        self.log = log
    def __enter__(self):
        self.log.append(1)
    def __exit__(self, type: Any, value: Any, tb: Any):
        self.log.append(-1)
def f(x: Tensor, n: int, log: List[int]):
    with Depth(log):
        with Depth(log):
            y = x * n
            assert n < 3, 'many'
        log.append(n)
    return y, log
"""


def test_contexts_are_generated_and_left_behind_errors() -> None:
    function = compile_source(CONTEXT).functions["f"]
    x = tensor([1.0, 2.0])
    plan = executor_of(function).plan_for([x, 2, []])
    assert plan.entry is not None
    y, log = run_function(function, [x, 2, []])
    assert (y.tolist(), log) == ([2.0, 4.0], [1, 1, -1, 2, -1])
    log = []
    with pytest.raises(ExecutionError, match="AssertionError: many") as caught:
        run_function(function, [x, 3, log])
    assert log == [1, 1, -1, -1]
    with pytest.raises(ExecutionError) as wanted, optimized_execution(False):
        run_function(function, [x, 3, []])
    assert str(caught.value) == str(wanted.value)


def test_gradients_that_a_context_switches_on_are_recorded() -> None:
    text = "def f(x):\n    with torch.enable_grad():\n        y = x * 2\n    return y, x * 3\n"
    function = compile_source(text).functions["f"]
    with no_grad():
        inside, outside = call_function(function, [tensor([1.0], requires_grad=True)])
    assert (inside.requires_grad, outside.requires_grad) == (True, False)


def test_loops_nested_deeper_than_python_has_it_are_interpreted() -> None:
    depth = 30
    lines = ["def f(n: int):", "    t = 0"]
    lines += ["    " * (i + 1) + f"for i{i} in range(n):" for i in range(depth)]
    lines += ["    " * (depth + 1) + "t += 1", "    return t"]
    executor = executor_of(compile_source("\n".join(lines) + "\n").functions["f"])
    assert run(executor, [1]) == 1
    assert "nested too deeply" in executor.cache.plans()[0].reason


def test_a_raise_of_the_program_keeps_its_class() -> None:
    executor = executor_of(compile_source(PROGRAMS["a raise"][0] + "\n").functions["f"])
    with pytest.raises(Error, match="ValueError: no 2") as caught:
        run(executor, [2])
    assert [(frame.function, frame.range.line) for frame in caught.value.frames] == [("f", 6), ("g", 3)]
    assert caught.value.__cause__ is None


def test_plans_know_which_optional_tensors_are_none() -> None:
    text = (
        "def f(x: Tensor, y: Optional[Tensor]) -> Tensor:\n    if y is not None:\n        x = x + y\n"
        "    else:\n        x = x * 2\n    return x\n"
    )
    function = compile_source(text).functions["f"]
    with no_grad():
        for y, kind in ((None, "aten::mul"), (tensor([1.0]), "aten::add"), (None, "aten::mul")):
            graph = executor_of(function).plan_for([tensor([3.0]), y]).graph
            assert [node.kind for node in graph.nodes() if node.kind != "prim::Constant"] == [kind]
            assert run_function(function, [tensor([3.0]), y]).tolist() == [4.0 if y is not None else 6.0]
