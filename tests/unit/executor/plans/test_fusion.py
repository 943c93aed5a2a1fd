"""Groups of plans: what is grouped, when kernels are made and called, and that nothing else changes.

Kernels are stand-ins here: the interpreter runs the group's graph for arguments of the sizes that were asked for.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.interpreter.interpreter import InterpreterState, run_function
from engine.executor.plans import fusion, lowered, tiers
from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import explain
from engine.executor.plans.lowered import Compiler
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.plan_events import GroupFormed, KernelCompiled, NodeNotFused, PlanLookup
from engine.executor.plans.switches import listening, optimized_execution
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from engine.fuser.backend.machine import MachineError
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.ir.kernel import Kernel
from engine.fuser.stubs.binding import Binding
from engine.ir.graph import Graph, Node
from engine.ir.ops import is_pure_pointwise
from engine.ir.unit import Function
from engine.lang import progress
from engine.lang.errors import ExecutionError
from engine.lang.progress import Progress

CHAIN = "def f(x, y):\n    a = torch.tanh(x * y)\n    return torch.relu(a - 0.25) / 2.0\n"
_FUSED = {"aten::t", "aten::permute", "aten::select", "aten::slice", "aten::transpose"}


@dataclass
class StandIn:
    """A compiler whose kernels the interpreter runs; `calls` counts them."""

    unfit: str = ""
    mistake: Exception | None = None
    lowered: list[tuple[str, list[Any]]] = field(default_factory=list)
    graphs: dict[int, tuple[Graph, Any]] = field(default_factory=dict)
    calls: int = 0

    def is_fusible(self, node: Node) -> bool:
        return is_pure_pointwise(node) or node.kind in _FUSED

    def lower(self, graph: Graph, examples: Sequence[Any], results: Sequence[Any]) -> Binding:
        for node in graph.nodes():
            if node.kind == self.unfit:
                raise self.mistake or NotFused(node, "it does not fit")
        self.lowered.append((str(graph), [*examples]))
        binding = Binding(Kernel(f"k{len(self.lowered)}", (), ()), (), ())
        self.graphs[id(binding)] = graph, _sizes(examples), binding  # type: ignore[assignment]
        return binding

    def bind(self, name: str, bindings: Sequence[Binding], fallback: Callable[..., Any]) -> Callable[..., Any]:
        known = [self.graphs[id(binding)] for binding in bindings]

        def run(*args: Any) -> Any:
            for graph, sizes, *_ in known:
                if _sizes(args) == sizes:
                    self.calls += 1
                    return InterpreterState(Code(graph, name)).run(*args)
            return fallback(*args)

        return run


def _sizes(args: Sequence[Any]) -> list[Any]:
    return [a.array.shape if isinstance(a, Tensor) else None for a in args]


@pytest.fixture(name="made", autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    monkeypatch.setitem(lowered.SETTINGS.compilers, "cpu", Compiler(made.is_fusible, made.lower, made.bind, str))
    monkeypatch.setattr(tiers, "WORTH", -1)
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: -1)
    before = tiering.mode()
    tiering.set_mode("eager")
    yield made
    tiering.wait()
    tiering.set_mode(before)


def function_of(text: str) -> Function:
    return compile_source(text).functions["f"]


def of(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.linspace(-2, 2, int(np.prod(shape))).astype(dtype).reshape(shape))


def plan_of(function: Function, *args: Any) -> ExecutionPlan:
    return executor_of(function).plan_for(args)


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return isinstance(found, tuple) and all(map(same, found, wanted))
    if isinstance(wanted, Tensor):
        assert (found.array.dtype, found.array.strides) == (wanted.array.dtype, wanted.array.strides)
        return np.allclose(found.array, wanted.array, 1e-6, 1e-6)
    return bool(found == wanted)


def interpreted(function: Function, *args: Any) -> Any:
    with optimized_execution(False):
        return run_function(function, args)


PROGRAMS: dict[str, tuple[str, int]] = {
    "a chain": (CHAIN, 1),
    "arguments in another order": ("def f(x, y):\n    return (y * 2 + x).tanh()", 1),
    "several results": ("def f(x, y):\n    a = x * y\n    b = a + x\n    return b.exp() * a, a", 1),
    "a product between": ("def f(x, y):\n    a = (x * 2).tanh()\n    return (a.mm(y.t()) + 1).relu() * 2", 2),
    "views inside": ("def f(x, y):\n    return (x.t() * y.t() + 1)[0] * 2", 1),
    "a view that escapes": ("def f(x, y):\n    a = (x * y + 1).t()\n    return a, a * 2 + 1", 2),
    "a view of an argument that escapes": ("def f(x, y):\n    v = x[0]\n    return v, v * 2 + 1, v is x", 1),
    "a view taken before a write": (
        "def f(x, y):\n    b = x * 1\n    v = b.t()\n    b.add_(1)\n    return v * 2 + 1, (b + 1) * 3",
        3,
    ),
    "a write to a result": ("def f(x, y):\n    a = x * y + 1\n    a.mul_(2)\n    return (a + 1).tanh()", 2),
    "branches": (
        "def f(x, y):\n    if bool(x[0, 0] < 0):\n        z = (x * y).tanh()\n    else:\n        z = (x + y).exp()\n"
        "    return z * z + 1",
        4,
    ),
    "a loop": ("def f(x, y):\n    for i in range(9):\n        x = (x * y + 0.5).tanh()\n    return x", 1),
    "numbers": ("def f(x, y):\n    n = x.size(0)\n    return (x * n + y) / (n + 1)", 1),
    "results that are compared": (
        "def f(x, y):\n    a = (x < y).logical_or(x > 1)\n    return torch.where(a, x, y), a",
        1,
    ),
    "nothing to fuse": ("def f(x, y):\n    return x.mm(y.t()), x.dim()", 0),
    "an argument that is not used": ("def f(x, y):\n    return (x * 2).tanh()", 1),
    "an argument itself": ("def f(x, y):\n    return x, (x * 2 + y)", 1),
}


@pytest.mark.parametrize("mode", ["eager", "background"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_same(name: str, mode: str) -> None:
    tiering.set_mode(mode)
    text, groups = PROGRAMS[name]
    function, args = function_of(text), (of(3, 5), of(3, 5))
    for _ in range(4):
        assert same(run_function(function, args), interpreted(function, *args))
        tiering.wait()
    plan = plan_of(function, *args)
    assert len(plan.fusion.groups if plan.fusion else ()) == groups
    assert same(InterpreterState(plan.code).run(*args), interpreted(function, *args))


def test_kernels_are_made_before_the_first_call(made: StandIn) -> None:
    function = function_of(CHAIN)
    run_function(function, (of(3), of(3)))
    assert made.calls == len(made.lowered) == 1
    assert plan_of(function, of(3), of(3)).graph.find_node("prim::FusionGroup") is not None


def test_examples_have_sizes_and_no_memory(made: StandIn) -> None:
    run_function(function_of(CHAIN), (of(100, 100), Tensor(of(100, 200).array[:, ::2])))
    by_kind = {example.array.strides: example.array for example in made.lowered[0][1]}
    assert {array.shape for array in by_kind.values()} == {(100, 100)} and {*by_kind} == {(400, 4), (800, 8)}
    assert all(array.base is not None for array in by_kind.values())


@pytest.mark.usefixtures("plans_at_once")
def test_plans_run_without_kernels_until_there_are_some(made: StandIn) -> None:
    tiering.set_mode("background")
    function, args = function_of(CHAIN), (of(3), of(3))
    # the first does not count, the second was worth it, the third is the example; then there is a trial, by turns
    for calls in (0, 0, 0, 1, 1, 2):
        run_function(function, args)
        tiering.wait()
        assert made.calls == calls


@pytest.mark.usefixtures("plans_at_once")
@pytest.mark.parametrize("then", ["it comes", "eager", "off"])
@pytest.mark.parametrize("name", ["a chain", "a product between", "branches"])
def test_groups_that_wait_for_a_kernel_ask_for_nothing(
    name: str, then: str, made: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiering.set_mode("background")
    function, args = function_of(PROGRAMS[name][0]), (of(3, 5), of(3, 5))
    for _ in range(2):  # the second one has groups formed
        run_function(function, args)
        tiering.wait()
    waiting: list[tiering.Task] = []
    monkeypatch.setattr(tiering, "in_background", waiting.append)
    run_function(function, args)
    fused = plan_of(function, *args).fusion
    assert fused is not None and waiting
    asked = [each.fallbacks for each in fused.groups]
    assert {*asked} <= {0, 1} and any(asked)
    for _ in range(3):
        assert same(run_function(function, args), interpreted(function, *args))
    assert [each.fallbacks for each in fused.groups] == asked and not made.lowered
    if then == "it comes":
        while waiting:
            waiting.pop()()
    else:
        tiering.set_mode(then)
    for _ in range(3):
        assert same(run_function(function, args), interpreted(function, *args))
    assert (made.calls > 0) == (then != "off")


def test_what_costs_little_is_not_compiled(made: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "WORTH", 10**15)
    tiering.set_mode("background")
    function = function_of(CHAIN)
    for _ in range(100):
        run_function(function, (of(3), of(3)))
    tiering.wait()
    assert not made.lowered


def test_other_arguments_get_kernels_of_their_own_up_to_some(made: StandIn) -> None:
    function = function_of(CHAIN)
    for size in range(1, 10):
        for _ in range(3):
            assert same(run_function(function, (of(size), of(size))), interpreted(function, of(size), of(size)))
    assert len(made.lowered) == fusion.MAX_KERNELS
    assert made.calls == 3 * fusion.MAX_KERNELS


def test_a_graph_that_is_one_group_is_called_directly(made: StandIn) -> None:
    for text in (CHAIN, "def f(x, y):\n    c = y * 2 + x\n    return c * y, c"):
        function, args = function_of(text), (of(3), of(3))
        run_function(function, args)
        plan = plan_of(function, *args)
        assert plan.fusion is not None
        assert plan.entry is plan.fusion.groups[0].run


def test_errors_tell_the_line_of_the_program(made: StandIn) -> None:
    function = function_of("def f(x, y):\n    a = x.exp()\n    b = a * 2\n    c = b + y\n    return c.mm(c) + 1\n")
    for mode in ("eager", "background", "off"):
        tiering.set_mode(mode)
        for _ in range(4):
            with pytest.raises(ExecutionError) as caught:
                run_function(function, (of(2, 3), of(2, 4)))
            with pytest.raises(ExecutionError) as wanted, optimized_execution(False):
                run_function(function, (of(2, 3), of(2, 4)))
            tiering.wait()
            assert str(caught.value) == str(wanted.value)
            assert caught.value.frames == wanted.value.frames


def test_a_node_that_no_kernel_holds_is_left_out(made: StandIn) -> None:
    made.unfit = "aten::exp"
    function = function_of("def f(x, y):\n    a = (x * y + 1).exp()\n    return a.tanh() * 2 + x, a")
    heard: list[Any] = []
    with listening(heard.append):
        for _ in range(3):
            assert same(run_function(function, (of(3), of(3))), interpreted(function, of(3), of(3)))
    fused = plan_of(function, of(3), of(3)).fusion
    assert fused is not None
    assert [(each.kind, why) for each, why in fused.refused.items()] == [("aten::exp", "it does not fit")]
    assert len(fused.groups) == 2 and made.calls > 0
    (left_out,) = [each for each in heard if isinstance(each, NodeNotFused)]
    assert left_out.kind == "aten::exp" and left_out.range is not None and left_out.range.text == "(x * y + 1).exp()"
    assert sum(isinstance(each, GroupFormed) for each in heard) == 3
    assert sum(isinstance(each, KernelCompiled) for each in heard) == 2


def test_who_waits_for_kernels_is_told_how_many_there_are(made: StandIn) -> None:
    function = function_of(
        "def f(x, y):\n    a = (x * y + 1).tanh()\n    b = torch.sort(a)[0]\n    return (b * 2 + x).exp()"
    )
    told: list[Progress] = []
    with progress.listening(told.append):
        for _ in range(3):
            run_function(function, (of(3), of(3)))
    assert {(each.action, each.of) for each in told} == {("compiling kernels", "f")}
    assert [(each.done, each.total) for each in told] == [(0, 2), (1, 2), (1, 2), (2, 2)]


def test_nothing_is_fused_where_there_is_no_machine_code(made: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise MachineError("no LLVM")

    monkeypatch.setattr(lowered.SETTINGS.compiler_for(None), "bind", refuse)
    function, args = function_of(PROGRAMS["a product between"][0]), (of(3, 5), of(3, 5))
    for _ in range(3):
        assert same(run_function(function, args), interpreted(function, *args))
    plan = plan_of(function, *args)
    assert plan.graph.find_node("prim::FusionGroup") is None
    assert explain(function).plans[0].why == "no LLVM"


def test_a_call_that_gets_no_kernel_runs_once(made: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    made.unfit = "aten::batch_norm"
    monkeypatch.setattr(lowered.SETTINGS.compiler_for(None), "is_fusible", lambda node: node.kind == made.unfit)
    f = torch.jit.CompilationUnit(
        "def f(x, m, v):\n    return torch.nn.functional.batch_norm(x, m, v, training=True, momentum=0.5)\n"
    ).f
    mean = torch.zeros(2)
    f(torch.full((3, 2), 8.0), mean, torch.ones(2))
    assert mean.tolist() == [4.0, 4.0]


def test_results_that_are_asked_for_their_layout_have_the_interpreters(made: StandIn) -> None:
    text = "def f(x, y):\n    a = x.permute(2, 0, 1) * y.permute(2, 0, 1)\n    return a.stride(), a\n"
    function = function_of(text)
    for _ in range(3):
        assert run_function(function, (of(1, 3, 4), of(1, 3, 4)))[0] == [1, 4, 4]
    assert not made.lowered
    for _ in range(3):
        assert run_function(function, (of(2, 3, 4), of(2, 3, 4)))[0] == [1, 12, 4]
    assert made.calls == 3


def test_lists_that_are_written_out_as_text_stay(made: StandIn) -> None:
    function = function_of("def f(x):\n    sizes = [x.size(0), 7]\n    return '{} {}'.format(1, sizes), x * 2 + 1\n")
    assert run_function(function, (of(3),))[0] == "1 [3, 7]"
    assert made.calls == 1


def test_modes_change_what_runs(made: StandIn) -> None:
    function, args = function_of(CHAIN), (of(3), of(3))
    run_function(function, args)
    tiering.set_mode("off")
    run_function(function, args)
    assert made.calls == 1
    assert plan_of(function, *args).graph.find_node("prim::FusionGroup") is None
    tiering.set_mode("background")
    run_function(function, args)
    assert made.calls == 2


def test_concurrent_first_calls_compile_once(made: StandIn) -> None:
    function, args = function_of(CHAIN), (of(3), of(3))
    wanted, results = interpreted(function, *args), []
    compiler = lowered.SETTINGS.compilers["cpu"]
    assert compiler is not None
    compiler.cost = lambda *_: time.sleep(0.05)  # the others come while the kernel is there and not yet known
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        results.append(run_function(function, args))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and all(same(each, wanted) for each in results)
    assert len(made.lowered) == 1 and made.calls == 8


def test_where_gradients_are_recorded_forward_and_backward_graphs_are_fused(made: StandIn) -> None:
    function, x, y = function_of(CHAIN), of(3), of(3)
    x.requires_grad = True
    result = run_function(function, (x, y))
    assert result.requires_grad and len(made.lowered) == 1
    result.sum().backward()
    assert len(made.lowered) == 2


def test_groups_that_a_program_comes_with_are_grouped_anew(made: StandIn) -> None:
    from engine.ir.clone import copy_graph
    from engine.passes.create_fusion_groups import create_fusion_groups

    function, args = function_of(CHAIN), (of(3), of(3))
    graph = copy_graph(function.graph)
    assert create_fusion_groups(graph)
    another = Function("f", _graph=graph)
    another.declare(function.schema)
    assert same(run_function(another, args), interpreted(function, *args))
    tiering.set_mode("off")
    assert same(run_function(another, args), interpreted(function, *args))


def test_explanations_tell_lines_kernels_and_why_the_rest_runs_without(made: StandIn) -> None:
    f = torch.jit.CompilationUnit("def f(x, y):\n    a = (x * y).tanh()\n    b = a.mm(a)\n    return b.relu()\n").f
    assert torch.explain(f).plans == ()
    f(of(3, 3), of(3, 3))
    (plan,) = torch.explain(f).plans
    group, last = plan.groups
    assert [line.text for line in last.lines] == ["return b.relu()"]
    assert [(line.number, line.text) for line in group.lines] == [(2, "a = (x * y).tanh()")]
    assert "aten::tanh" in group.graph and plan.arguments.startswith("(x: Float(*, *)")
    assert [(node.kind, node.line and node.line.number, node.why) for node in plan.unfused] == [
        ("aten::mm", 3, "no kernel holds it")
    ]
    (kernel,) = group.kernels
    assert kernel.name == "k1" and kernel.cost is not None and 0 < kernel.measure(0.001) < 1
    torch.set_compile_mode("off")
    assert [each.why for each in torch.explain(f).plans] == ["the compile mode is off"]


def test_a_plan_is_written_anew_for_another_mode_when_it_is_called(made: StandIn) -> None:
    function, args = function_of(CHAIN), (of(3), of(3))
    wanted = run_function(function, args)
    (plan,) = executor_of(function).plans
    source, calls = plan.generated, made.calls
    for mode in ("off", "background", "off"):
        tiering.set_mode(mode)
        assert plan.generated is source
    assert same(run_function(function, args), wanted)
    assert plan.generated is not source and made.calls == calls


def test_calls_of_a_script_function_go_straight_to_its_kernel(made: StandIn) -> None:
    f = torch.jit.CompilationUnit(CHAIN).f
    x = of(3)
    for calls in (1, 2, 3):
        wanted = f(x, x)
        assert made.calls == calls
    assert f._function.entry is not None
    assert executor_of(f._function).statistics.hits == 0
    assert "FusionGroup" in str(torch.jit.last_executed_optimized_graph())
    assert same(f(x, y=x), wanted) and same(f(x.double(), x.double()), interpreted(f._function, x.double(), x.double()))
    assert "FusionGroup" in str(f.graph_for(x, x))
    with pytest.raises(torch.errors.ArgumentError, match="missing value for argument 'y'"):
        f(x)
    torch.set_compile_mode("off")
    assert f._function.entry is None
    assert same(f(x, x), wanted)


def test_results_that_python_sees_converted_are_not_taken_from_kernels_directly(made: StandIn) -> None:
    f = torch.jit.CompilationUnit("def f(x, y):\n    a = x * y\n    return {'a': a + 1}").f
    for _ in range(3):
        assert same(f(of(3), of(3))["a"], interpreted(f._function, of(3), of(3))["a"])
    assert f._function.entry is None


def test_watched_calls_do_not_go_straight_to_kernels(made: StandIn) -> None:
    f = torch.jit.CompilationUnit(CHAIN).f
    f(of(3), of(3))
    heard: list[Any] = []
    with listening(heard.append):
        f(of(3), of(3))
    assert any(isinstance(each, PlanLookup) for each in heard)
    traced = torch.jit.trace(lambda x: f(x, x), (of(3),))
    assert "prim::CallFunction" in str(traced.graph)


def test_a_mistake_of_the_compiler_is_noted_and_the_program_goes_on(made: StandIn) -> None:
    made.unfit = "aten::tanh"
    made.mistake = ZeroDivisionError("oh")
    function, args = function_of(CHAIN), (of(3), of(3))
    for _ in range(3):
        assert same(run_function(function, args), interpreted(function, *args))
    assert len(tiering.failures()) == 1 and "ZeroDivisionError: oh" in tiering.failures()[0]
    tiering.forget_failures()
    assert {node.why for node in explain(function).plans[0].unfused} == {"a mistake of the compiler"}


def test_groups_that_do_the_same_share_a_kernel(made: StandIn) -> None:
    layers = (
        "def f(x, y):\n    a = (x.mm(y) * 2 + 1).tanh()\n    b = (a.mm(y) * 2 + 1).tanh()\n    return b.mm(y) * 3 + 1\n"
    )
    function, args = function_of(layers), (of(3, 3), of(3, 3))
    for _ in range(2):
        assert same(run_function(function, args), interpreted(function, *args))
    assert made.calls == 6 and len(made.lowered) == 2
