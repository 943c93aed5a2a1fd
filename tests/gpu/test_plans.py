"""Plans for tensors on one device: groups, guards, gradients and direct entries, with a compiler that is a stand-in.

Its kernels run operators one by one for arguments of the layout that they were lowered for, so that the tests hold
wherever the device is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import engine
import engine.torch as torch
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.values import libraries
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans import cpu_kernels, cuda_kernels, fusion, lowered
from engine.executor.plans.executor import RECENT, executor_of
from engine.executor.plans.lowered import Compiler
from engine.executor.plans.plan import ExecutionPlan
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from engine.fuser.gpu import emulated, launcher
from engine.fuser.groups.from_graph import NotFused, is_fusible
from engine.fuser.groups.from_graph import lower as lower_for_cpu
from engine.fuser.ir.kernel_text import show
from engine.fuser.stubs.binding import Binding
from engine.ir.graph import Graph
from engine.torch.compiled.objects import ScriptFunction
from tests.table.device_double import double
from tests.unit.fuser.emulated_driver import EmulatedDriver

CUDA = torch.device("cuda", 0)


@dataclass
class StandIn:
    """A compiler for the device.  `lowered` has the operators of each kernel and what it is for, `ran` the kernels that
    calls have run."""

    unfit: str = ""
    lowered: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    forms: dict[str, tuple[Graph, Sequence[Any]]] = field(default_factory=dict)

    def compiler(self) -> Compiler:
        return Compiler(is_fusible, self.lower, self.bind, show)

    def lower(self, graph: Graph, examples: Sequence[Any], results: Sequence[Any]) -> Binding:
        for node in graph.nodes():
            if node.kind == self.unfit:
                raise NotFused(node, "it does not fit")
        binding = lower_for_cpu(graph, [*map(on_cpu, examples)], [*map(on_cpu, results)])
        kinds = [node.kind.removeprefix("aten::") for node in graph.nodes() if node.kind.startswith("aten::")]
        name = f"{' '.join(kinds)} {len(self.lowered)}"
        self.lowered.append((" ".join(kinds), tuple(str(form(each)) for each in examples)))
        self.forms[name] = graph, [*map(form, examples)]
        return replace(binding, kernel=replace(binding.kernel, name=name))

    def bind(self, name: str, bindings: Sequence[Binding], fallback: Callable[..., Any]) -> Callable[..., Any]:
        known = {binding.kernel.name: self.forms[binding.kernel.name] for binding in bindings}

        def run(*args: Any) -> Any:
            records = MODE.enabled and any(isinstance(a, Tensor) and a.requires_grad for a in args)
            for kernel, (graph, wanted) in known.items():
                if HOOKS.trace is None and not records and [*map(form, args)] == wanted:
                    self.ran.append(kernel)
                    return InterpreterState(Code(graph, name)).run(*args)
            return fallback(*args)

        return run


def form(value: Any) -> Any:
    """All that a kernel depends on."""
    if not isinstance(value, Tensor):
        return type(value), value if isinstance(value, int) else None
    return value.array.shape, value.array.strides, value.array.dtype.name, str(value.device)


def on_cpu(value: Any) -> Any:
    """A tensor of the CPU of the same form."""
    if not isinstance(value, Tensor):
        return value
    array = value.array
    return Tensor(np.lib.stride_tricks.as_strided(np.ones(1, array.dtype), array.shape, array.strides))


@pytest.fixture(name="made")
def _made(cuda: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    yield from _installed(monkeypatch)


@pytest.fixture(name="made_for_two")
def _made_for_two(two: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    yield from _installed(monkeypatch)


def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made, before = StandIn(), tiering.mode()
    monkeypatch.setitem(lowered.SETTINGS.compilers, "cuda", made.compiler())
    tiering.set_mode("eager")
    try:
        yield made
    finally:
        tiering.set_mode(before)


def close(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one.detach().cpu().numpy(), other.detach().cpu().numpy(), rtol=1e-5, atol=1e-6)


def device_plans(f: Any) -> list[ExecutionPlan]:
    """The plans of a compiled function for tensors that are not on the CPU."""
    plans = executor_of(f._function).anywhere.plans
    return [plan for plan in plans if any(spec and spec.device.type != "cpu" for spec in plan.spec.tensors)]


def chain() -> Any:
    @torch.jit.script
    def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.tanh(x * y) - 0.25) / 2.0

    return chain


# -- groups


def test_a_chain_is_one_kernel_that_is_made_once(made: StandIn) -> None:
    f, x, y = chain(), torch.randn(3, 4), torch.randn(3, 4)
    expected = f(x, y)
    for _ in range(4):
        z = f(x.cuda(), y.cuda())
        assert z.device == CUDA
        close(z, expected)
    assert [ops for ops, _ in made.lowered] == ["mul tanh sub relu div"]
    assert made.ran == ["mul tanh sub relu div 0"] * 4
    (plan,) = device_plans(f)
    assert plan.fusion.accelerator == CUDA
    assert "prim::FusionGroup" in str(torch.jit.last_executed_optimized_graph())


def test_each_layout_has_a_kernel_and_others_are_left_to_the_fallback(made: StandIn) -> None:
    f, sizes = chain(), [(2, 3), (4, 3), (2, 3), (5, 3), (6, 3), (7, 3)]
    for size in sizes:
        close(f(torch.ones(size).cuda(), torch.ones(size).cuda()), f(torch.ones(size), torch.ones(size)))
    assert len(made.lowered) == len({*made.ran}) == fusion.MAX_KERNELS
    turned = torch.arange(6.0).reshape(3, 2).cuda().t()
    close(f(turned, turned), f(turned.cpu(), turned.cpu()))
    (plan,) = device_plans(f)
    assert plan.fusion.groups[0].fallbacks == fusion.MAX_KERNELS + 2


def test_layers_take_parameters_whose_device_only_the_call_tells(made: StandIn) -> None:
    net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()) for _ in range(3))).eval()
    x, scripted = torch.randn(2, 4), torch.jit.script(net)
    expected = net(x)
    there = scripted.to("cuda")
    with torch.no_grad():
        for _ in range(3):
            close(there(x.cuda()), expected)
    assert [ops for ops, _ in made.lowered] == ["linear gelu linear gelu linear gelu"]
    assert len(made.ran) == 3


def test_a_node_that_no_kernel_holds_is_left_out(made: StandIn) -> None:
    made.unfit = "aten::relu"
    f, x = chain(), torch.randn(5)
    expected = f(x, x)
    for _ in range(3):
        close(f(x.cuda(), x.cuda()), expected)
    assert [ops for ops, _ in made.lowered] == ["mul tanh sub", "div"]
    found = engine.explain(f).plans[-1]
    assert [(node.kind, node.why) for node in found.unfused] == [("aten::relu", "it does not fit")]


def test_without_a_compiler_operators_run_one_by_one(cuda: str) -> None:
    f, x = chain(), torch.randn(5)
    expected = f(x, x)
    close(f(x.cuda(), x.cuda()), expected)
    assert engine.explain(f).plans[-1].why == "there is no compiler"


def test_examples_hold_one_element(made: StandIn) -> None:
    f, seen = chain(), []
    lower = made.lower

    def look(graph: Graph, examples: Sequence[Any], results: Sequence[Any]) -> Binding:
        seen.extend([*examples, *results])
        return lower(graph, examples, results)

    lowered.SETTINGS.compilers["cuda"].lower = look
    x = torch.ones(1000, 8, device="cuda")
    f(x, x)
    assert [(each.shape, each.stride(), each.device) for each in seen] == [((1000, 8), (8, 1), CUDA)] * 3
    places, own = {libraries.address(each.array) for each in seen}, libraries.address(x.array)
    assert len(places) == 3
    assert not any(own <= place < own + x.nbytes for place in places)  # what lies behind an example may be anybody's


# -- programs on several devices


@torch.jit.script
def there_and_back(x: torch.Tensor, where: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    a = (x * 2.0 + 1.0).tanh()
    here = a.cpu()
    b = (here * 3.0 - 1.0).sigmoid()
    c = b.to(where)
    made = torch.ones(3) * 2.0
    return (c * 2.0).exp() + a, made.exp() + b


def test_groups_end_where_tensors_go_to_the_cpu(made: StandIn) -> None:
    x = torch.randn(3)
    expected = there_and_back(x, torch.device("cpu"))
    for _ in range(3):
        found = there_and_back(x.cuda(), CUDA)
        assert [each.device for each in found] == [CUDA, torch.device("cpu")]
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    assert [ops for ops, _ in made.lowered] == ["mul add tanh", "add"]
    assert "cpu" not in str(made.lowered)


def test_numbers_of_the_cpu_go_along(made: StandIn) -> None:
    f, x, y = chain(), torch.randn(4), torch.tensor(1.5)
    for _ in range(3):
        z = f(x.cuda(), y)
        assert z.device == CUDA
        close(z, f(x, y))
    assert [given[1][-5:-2] for _, given in made.lowered] == ["cpu"]
    assert len(made.ran) == 3


def test_numbers_of_the_cpu_alone_stay_there(made: StandIn) -> None:
    @torch.jit.script
    def scaled(x: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        t = (s * 2.0).exp()
        return x * t + 1.0, t

    for _ in range(3):
        y, t = scaled(torch.ones(3).cuda(), torch.tensor(0.0))
        assert (y.device, t.device) == (CUDA, torch.device("cpu"))
        assert (y.tolist(), t.item()) == ([2.0] * 3, 1.0)
    assert [ops for ops, _ in made.lowered] == ["mul add"]


def test_operands_on_two_devices_are_refused_with_their_line(made: StandIn) -> None:
    f, x = chain(), torch.ones(3)
    f(x.cuda(), x.cuda())
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu!") as caught:
        f(x.cuda(), x)
    assert "torch.tanh(x * y)" in str(caught.value)


def test_what_programs_ask_of_devices_is_answered(made: StandIn) -> None:
    @torch.jit.script
    def told(x: torch.Tensor) -> tuple[torch.Tensor, torch.device, bool]:
        y = torch.zeros(2, device=x.device)
        return (x + y).exp() if x.is_cuda else x, y.device, x.is_cuda

    assert told(torch.zeros(2).cuda())[1:] == (CUDA, True)
    assert told(torch.zeros(2))[1:] == (torch.device("cpu"), False)
    assert told(torch.zeros(2).cuda())[0].tolist() == [1.0, 1.0]


def test_each_device_has_a_plan(made_for_two: StandIn) -> None:
    f, x = chain(), torch.randn(3)
    for _ in range(2):
        for place in ("cuda:1", "cuda:0", "cpu"):
            z = f(x.to(place), x.to(place))
            assert str(z.device) == place
            close(z, f(x, x))
    assert {str(plan.spec.tensors[0].device) for plan in device_plans(f)} == {"cuda:1", "cuda:0"}
    assert len(made_for_two.lowered) == 2
    with pytest.raises(RuntimeError, match="at least two devices, cuda:1 and cuda:0!"):
        f(x.to("cuda:0"), x.to("cuda:1"))


# -- calls that go straight to kernels


def test_calls_go_straight_to_the_kernel_of_a_plan_that_is_one(made: StandIn) -> None:
    f, x = chain(), torch.randn(3)
    executor = executor_of(f._function)
    close(f(x.cuda(), x.cuda()), f(x, x))
    assert f._function.entry is not None
    assert executor.direct is executor.anywhere.direct
    ran, looked_up = len(made.ran), executor.anywhere.statistics
    for place in ("cuda", "cpu", "cuda"):
        close(f(x.to(place), x.to(place)), f(x, x))
    assert len(made.ran) == ran + 2
    assert f(x.cuda(), x.cuda()).device == CUDA
    assert RECENT.ran() is f._function
    assert torch.jit.last_executed_optimized_graph().findNode("prim::FusionGroup") is not None
    assert executor.anywhere.statistics.misses - looked_up.misses <= 1
    tiering.set_mode("off")
    assert f._function.entry is None
    close(f(x.cuda(), x.cuda()), f(x, x))


# -- gradients


def test_gradients_run_through_kernels(made: StandIn) -> None:
    f, w = chain(), torch.randn(4, 3)
    found = []
    for place in ("cpu", "cuda", "cuda", "cuda"):
        x, y = (torch.full((4, 3), 0.7, device=place, requires_grad=True) for _ in range(2))
        z = f(x, y * 2)
        assert z.device.type == place
        (z * w.to(place)).sum().backward()
        assert x.grad.device == y.grad.device == x.device
        found.append((z, x.grad, y.grad))
    assert z.grad_fn.name() == "DifferentiableGraphBackward"
    for each in found[1:]:
        for one, other in zip(each, found[0], strict=True):
            close(one, other)
    assert made.ran
    assert len({*made.ran}) == len(made.lowered)


def test_gradients_of_gradients_run_there_too(made: StandIn) -> None:
    @torch.jit.script
    def cubic(x: torch.Tensor) -> torch.Tensor:
        return (x * x * x).tanh() + x

    found = []
    for place in ("cpu", "cuda", "cuda"):
        x = torch.linspace(-1, 1, 5).to(place).requires_grad_()
        (first,) = torch.autograd.grad(cubic(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), x)
        assert second.device == x.device
        found.append(second)
    close(found[1], found[0])
    close(found[2], found[0])


def test_gradients_of_numbers_of_the_cpu_come_home(made: StandIn) -> None:
    f, x = chain(), torch.randn(5)
    found = []
    for place in ("cpu", "cuda", "cuda"):
        raw = torch.tensor([0.5, 0.25], requires_grad=True)
        scale = torch.tensor(1.5, requires_grad=True)
        f(x.to(place), (raw * torch.tensor([1.0, 2.0])).sum() * scale).sum().backward()
        assert raw.grad.device == scale.grad.device == torch.device("cpu")
        found.append((raw.grad, scale.grad))
    for each in found[1:]:
        close(each[0], found[0][0])
        close(each[1], found[0][1])


def test_a_model_learns_the_same_through_plans(made: StandIn) -> None:
    losses: dict[str, list[float]] = {}
    for place in ("cpu", "cuda"):
        torch.manual_seed(0)
        net = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
        net = net.to(place)
        x = torch.randn(16, 3).to(place)
        target, optimizer = (x * x).sum(1, keepdim=True), torch.optim.SGD(net.parameters(), lr=0.05)
        found = losses[place] = []
        for _ in range(6):
            optimizer.zero_grad()
            loss = ((net(x) - target) ** 2).mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-4)
    assert losses["cpu"][-1] < losses["cpu"][0]
    assert made.ran


def test_a_device_that_is_another_one_records_operators_one_by_one(made_for_two: StandIn) -> None:
    @torch.jit.script
    def moved(x: torch.Tensor, there: torch.device) -> torch.Tensor:
        y = (x * 2.0).tanh()
        z = y.to(there)
        return (z * z + 1.0).exp()

    for place in ("cuda:1", "cuda:0", "cpu", "cuda:1"):
        x = torch.ones(3, device="cuda:0", requires_grad=True)
        y = moved(x, torch.device(place))
        assert str(y.device) == place
        y.sum().backward()
        assert x.grad.device == x.device
        here = torch.ones(3, requires_grad=True)
        moved(here, torch.device("cpu")).sum().backward()
        close(x.grad, here.grad)


# -- profiles and guards


@pytest.fixture(name="profiling")
def _profiling() -> Iterator[None]:
    with torch.jit.fuser("fuser1"):
        yield


def moving() -> Any:
    @torch.jit.script
    def moving(x: torch.Tensor, where: torch.device) -> tuple[torch.Tensor, bool]:
        y = x.to(where)
        return (y * 2.0).tanh() + 1.0, y.is_cuda

    return moving


@pytest.mark.usefixtures("profiling")
def test_guards_tell_devices_apart(made_for_two: StandIn) -> None:
    f, x = moving(), torch.ones(3, device="cuda:0")
    for place in ("cuda:1", "cuda:1", "cuda:1", "cuda:0", "cpu", "cuda:1", "cpu", "cuda:0"):
        y, is_cuda = f(x, torch.device(place))
        assert (str(y.device), is_cuda) == (place, place != "cpu")
        close(y, torch.full((3,), float(np.tanh(2.0)) + 1))
    (profile,) = engine.explain(f).profiles
    first = profile.failures[0]
    assert (first.expected, first.actual) == ("Float(3, cuda:1)", "Float(3, cuda:0)")


@pytest.mark.usefixtures("profiling")
def test_plans_from_profiles_check_sizes_and_run_kernels(made: StandIn) -> None:
    f, x = chain(), torch.randn(4)
    expected = f(x, x)
    for _ in range(4):
        close(f(x.cuda(), x.cuda()), expected)
    (plan,) = device_plans(f)
    assert made.ran
    assert {str(note.type.device) for note in plan.guards} == {"cuda:0"}
    shown = str(torch.jit.last_executed_optimized_graph())
    assert "prim::TypeCheck" in shown
    assert "device=cpu" not in shown
    other = torch.randn(2, 3)
    close(f(other.cuda(), other.cuda()), torch.relu(torch.tanh(other * other) - 0.25) / 2.0)


@pytest.mark.skipif(not emulated.is_possible(), reason="the C library has no contexts")
def test_groups_run_as_kernels_for_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = EmulatedDriver()
    compiler = replace(cuda_kernels.COMPILER, bind=partial(launcher.bind, driver=driver), known={})
    unit = compile_source("def f(x, y):\n    h = torch.tanh(x * y + 1)\n    return torch.softmax(h, -1) * h\n")
    function = ScriptFunction(unit.functions["f"])
    x, y = torch.randn(3, 5), torch.randn(5)
    before = tiering.mode()
    tiering.set_mode("eager")
    try:
        expected = function(x, y)
        with double():
            monkeypatch.setitem(lowered.SETTINGS.compilers, "cuda", compiler)
            for _ in range(2):
                found = function(x.to("cuda"), y.to("cuda"))
                assert found.device.type == "cuda"
                np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    finally:
        tiering.set_mode(before)
    assert len(driver.launched) >= 2


def test_the_compiler_of_a_gpu_is_loaded_with_the_first_tensor_on_one() -> None:
    settings = lowered.Settings()
    assert "cuda" not in settings.compilers
    assert settings.compiler_for(torch.device("cuda", 0)) is cuda_kernels.COMPILER
    assert settings.compiler_for(None) is cpu_kernels.COMPILER
