"""Modules recorded while they run, and the check of traces."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import engine as torch
from engine.torch import nn
from engine.torch.nn import functional as F

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


def near(a: Any, b: Any) -> bool:
    return bool((a - b).abs().max() < 1e-5)


class Attention(nn.Module):
    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Sequential(nn.Linear(width, width), nn.GELU())

    def forward(self, x):  # type: ignore[no-untyped-def]
        b, t, d = x.shape
        split = self.qkv(self.norm(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)[0], split.select(2, 1).transpose(1, 2), split[:, :, 2].transpose(1, 2)
        scores = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(d), dim=-1)
        return x + self.out((scores @ v).transpose(1, 2).reshape(b, t, -1))


@pytest.mark.filterwarnings("ignore::engine.frontend.tracing.position.TracerWarning")
def test_a_traced_module_takes_other_sizes(tmp_path: Path) -> None:
    module = Attention().eval()
    traced = torch.jit.trace(module, torch.randn(2, 5, 8))
    other = torch.randn(3, 4, 8)
    assert near(traced(other), module(other))
    traced.save(tmp_path / "traced.pt")
    loaded = torch.load(tmp_path / "traced.pt")
    assert near(loaded(other), module(other))
    assert loaded.qkv.code == traced.qkv.code
    assert list(traced.state_dict()) == list(module.state_dict())


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.act = nn.ReLU()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = self.act(self.lin(x))
        return self.drop(y) * y


def test_submodules_are_methods_of_their_types() -> None:
    traced = torch.jit.trace(Small().eval(), X)
    assert traced.code == (
        "def forward(self,\n    x: Tensor) -> Tensor:\n  drop = self.drop\n  act = self.act\n  lin = self.lin\n"
        "  _0 = (drop).forward((act).forward((lin).forward(x, ), ), )\n  return torch.mul(_0, _0)\n"
    )
    assert traced.lin.code == (
        "def forward(self,\n    x: Tensor) -> Tensor:\n  bias = self.bias\n  weight = self.weight\n"
        "  return torch.linear(x, weight, bias)\n"
    )
    assert traced.drop.code == (
        "def forward(self,\n    argument_1: Tensor) -> Tensor:\n  return torch.dropout(argument_1, 0.5, False)\n"
    )
    assert (traced.original_name, traced.lin.original_name) == ("Small", "Linear")
    assert [name for name, _ in traced.named_modules()] == ["", "lin", "act", "drop"]
    assert not traced.training


def test_parameters_are_shared_and_learn() -> None:
    module = Small().eval()
    traced = torch.jit.trace(module, X)
    traced(X).sum().backward()
    gradient = module.lin.weight.grad
    module.zero_grad()
    module(X).sum().backward()
    assert near(gradient, module.lin.weight.grad)
    module.lin.bias.data.fill_(2.0)
    assert near(traced(X), module(X))


class Owner(nn.Module):
    """A module inside uses a tensor of another, keeps one for later, is called twice, or is not needed at all."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.keeper = Keeper(self.lin)
        self.again = self.lin
        self.idle = nn.Identity()
        self.parts = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])
        self.scales = nn.ParameterList([torch.ones(3)])
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = self.keeper(self.again(self.lin(x)))["double"]
        self.idle(x)
        for part in self.parts:
            y = part(y)
        self.count.add_(1)
        return y * self.scales[0] + self.keeper.kept, self.count + self.lin.weight.sum()


class Keeper(nn.Module):
    def __init__(self, other: nn.Module) -> None:
        super().__init__()
        self.others = [lambda: other]

    def forward(self, x):  # type: ignore[no-untyped-def]
        self.kept = x * self.others[0]().bias
        return {"double": x * 2, "unused": [x - 1]}


def test_values_cross_the_borders_of_modules() -> None:
    module = Owner()
    traced = torch.jit.trace(module, X, check_trace=False)
    calls = [node.attr("name") for node in traced.graph.find_all_nodes("prim::CallMethod")]
    assert calls == ["forward", "forward1", "forward", "forward", "forward", "forward"]
    assert "aten::sub" not in str(traced.keeper.graph)
    before = float(module.count)
    mine = traced(X * 2)
    module.count.fill_(before)
    for a, b in zip(mine, module(X * 2), strict=True):
        assert near(a, b)


def test_convolutions_and_statistics() -> None:
    module = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)
    )
    traced = torch.jit.trace(module.eval(), torch.randn(2, 1, 4, 4))
    other = torch.randn(5, 1, 4, 4)
    assert near(traced(other), module(other))
    assert traced[0].graph.find_node("aten::_convolution") is not None
    training = torch.jit.trace(module.train(), torch.randn(2, 1, 4, 4), check_trace=False)
    count = int(module[1].num_batches_tracked)
    training(other)
    assert int(module[1].num_batches_tracked) == count + 1


class Chooser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, flip: bool = False):  # type: ignore[no-untyped-def]
        if bool(x.sum() > 0) or flip:
            x = self.lin(x)
        return x


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.jit.script(Chooser())

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.inner(x, flip=False) + 1


def test_compiled_submodules_keep_their_control_flow(tmp_path: Path) -> None:
    module = Holder()
    traced = torch.jit.trace(module, X)
    assert "if bool(" in traced.inner.code
    for x in (X, -X):
        assert near(traced(x), module(x))
    traced.save(tmp_path / "holder.pt")
    assert near(torch.load(tmp_path / "holder.pt")(-X), module(-X))


def test_methods_of_compiled_modules_outside() -> None:
    compiled = torch.jit.script(nn.Linear(3, 3))
    with pytest.raises(RuntimeError, match="no submodule of what is traced"):
        torch.jit.trace(lambda x: compiled(x), X)


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.lin(x)

    def shifted(self, x, by):  # type: ignore[no-untyped-def]
        return self.lin(x) + by


def test_several_methods() -> None:
    module = Two()
    traced = torch.jit.trace_module(module, {"forward": X, "shifted": (X, torch.ones(2))})
    assert near(traced(X), module(X))
    assert near(traced.shifted(X, torch.ones(2) * 3), module(X) + 3)
    assert torch.jit.trace(Two().forward, X).original_name == "Two"
    with pytest.raises(AttributeError, match="trace_module"):
        torch.jit.trace(module.shifted, (X, X))


def test_arguments_by_name() -> None:
    traced = torch.jit.trace(lambda a, b: a - b, example_kwarg_inputs={"b": X, "a": X + 1})
    assert [argument.name for argument in traced.schema.arguments] == ["a", "b"]
    assert traced(b=X, a=X * 3).tolist() == (X * 2).tolist()


def test_traced_functions() -> None:
    def double(x: Any) -> Any:
        return x * 2

    traced = torch.jit.trace(double, X)
    assert isinstance(traced, torch.jit.ScriptFunction)
    assert traced.name == "double"
    assert traced.code == "def double(x: Tensor) -> Tensor:\n  return torch.mul(x, CONSTANTS.c0)\n"
    outer = torch.jit.trace(lambda x: traced(x) + 1, X)
    assert outer.graph.find_node("prim::CallFunction") is not None
    assert outer(X).tolist() == (X * 2 + 1).tolist()
    module = torch.jit.trace(torch.nn.ReLU(), X)
    with pytest.warns(UserWarning, match="no-op"):
        assert torch.jit.trace(module, X) is module


def test_is_tracing_and_script_if_tracing() -> None:
    seen = []

    @torch.jit.script_if_tracing
    def clamp(x):  # type: ignore[no-untyped-def]
        if bool(x.sum() > 0):
            return x
        return -x

    def f(x: Any) -> Any:
        seen.append(torch.jit.is_tracing())
        return clamp(x) + 1

    traced = torch.jit.trace(f, X, check_trace=False)
    assert seen == [True]
    assert not torch.jit.is_tracing()
    assert traced(-X).tolist() == f(-X).tolist()


def test_ignored_functions_are_python() -> None:
    @torch.jit.ignore
    def helper(x: Any) -> Any:
        return x + 1

    assert torch.jit.trace(lambda x: helper(x) * 2, X)(-X).tolist() == ((1 - X) * 2).tolist()


def test_the_graph_alone() -> None:
    graph, result = torch.jit.get_trace_graph(nn.Linear(3, 2), (X,))
    assert [value.name for value in graph.inputs] == ["input", "weight", "bias"]
    assert result.shape == (2, 2)


# ------------------------------------------------------------------ the check


def test_other_graphs_at_every_call() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x * 2 if len(calls) == 1 else x + 1

    with (
        pytest.warns(torch.jit.TracerWarning, match="does not match the corresponding output of the Python function"),
        pytest.raises(torch.jit.TracingCheckError, match="Graphs differed across invocations") as caught,
    ):
        torch.jit.trace(f, X)
    text = str(caught.value)
    assert "First diverging operator" in text
    assert "aten::mul" in text
    assert f"{__file__}(" in text


def test_other_constants_at_every_call() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x + len(calls)

    with (
        pytest.warns(torch.jit.TracerWarning, match="does not match"),
        pytest.raises(torch.jit.TracingCheckError, match="Tensor-valued Constant nodes differed"),
    ):
        torch.jit.trace(f, X)
    assert torch.jit.trace(f, X, check_trace=False) is not None


def test_random_operators() -> None:
    torch.manual_seed(0)  # or the same elements may be dropped twice, and nobody is warned
    with pytest.warns(torch.jit.TracerWarning, match="Trace had nondeterministic nodes") as caught:
        torch.jit.trace(Small().train(), X)
    assert "aten::dropout" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_checks_on_other_inputs() -> None:
    def f(x: Any) -> Any:
        return x * 2 if bool((x > 0).all()) else x * 3

    with (
        pytest.warns(torch.jit.TracerWarning),
        pytest.raises(torch.jit.TracingCheckError, match="Graphs differed"),
    ):
        torch.jit.trace(f, X, check_inputs=[(X.abs(),)])


def test_inputs_stay_as_they_were_during_the_check() -> None:
    x = torch.ones(3)
    torch.jit.trace(lambda x: x.add_(1), x)
    assert x.tolist() == [2.0, 2.0, 2.0]


# ------------------------------------------------------------------ calls of submodules


class Scaled(nn.Module):
    def forward(self, x, n):  # type: ignore[no-untyped-def]
        return x.view(n, -1) * n


class Passing(nn.Module):
    """Hands a size on, calls what nobody needs, and uses the weight of one module in another."""

    def __init__(self) -> None:
        super().__init__()
        self.scaled, self.idle, self.lin = Scaled(), nn.Linear(3, 3), nn.Linear(3, 3)
        self.tied = nn.Linear(3, 3, bias=False)
        self.tied.weight = self.lin.weight

    def forward(self, x):  # type: ignore[no-untyped-def]
        self.idle(x)
        return self.tied(self.lin(self.scaled(x, x.size(0))))


def test_arguments_of_calls_come_as_they_are_used() -> None:
    traced = torch.jit.trace(Passing(), X)
    assert "def forward(self,\n    argument_1: int,\n    x: Tensor,\n    n: Tensor) -> Tensor:" in traced.scaled.code
    assert "def forward(self,\n    x: Tensor) -> NoneType:\n  return None\n" in traced.idle.code
    assert "def forward(self,\n    weight: Tensor,\n" in traced.tied.code
    assert traced(torch.ones(5, 3)).shape == (5, 3)


def test_hooks_belong_to_the_caller() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    module[0].register_forward_hook(lambda module, args, result: result * 2)
    module[1].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    traced = torch.jit.trace(module, X)
    assert [n.kind for n in traced.graph.nodes() if n.kind.startswith("aten::")] == ["aten::mul", "aten::add"]
    assert near(traced(-X), module(-X))


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x):  # type: ignore[no-untyped-def]
        self.runs += 1
        return x + self.runs, x - self.runs


def test_the_check_stops_at_results_that_differ() -> None:
    module = Counting()
    with pytest.warns(torch.jit.TracerWarning, match="does not match") as caught:
        torch.jit.trace(module, X)
    assert float(module.runs) == 4.0  # two traces, one run of the first, one of the program
    assert len(caught) == 2


def test_convolutions_are_recorded_before_they_require_grad() -> None:
    traced = torch.jit.trace(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), torch.randn(1, 1, 4, 4))
    kinds = {n.kind: n.output.type().str() for n in traced.inlined_graph.all_nodes() if n.kind in RESULTS}
    assert "requires_grad=0" in kinds["aten::_convolution"]
    assert "requires_grad=1" in kinds["aten::relu"]


RESULTS = ("aten::_convolution", "aten::relu")


def test_checks_fail_with_an_error_of_their_own() -> None:
    assert not issubclass(torch.jit.TracingCheckError, RuntimeError)


def test_a_scripted_function_is_traced_with_its_defaults() -> None:
    @torch.jit.script
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor

    traced = torch.jit.trace(scaled, (X,))
    assert torch.equal(traced(X), X * 2)
    assert len(list(traced.graph.inputs())) == 1


class Exporting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count, self.part = 3, nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.part(x)

    @torch.jit.export
    def shifted(self, x: torch.Tensor, by: int) -> torch.Tensor:
        return self.part(x) + by * self.count + self.inner()

    def inner(self) -> int:
        return 1

    @torch.jit.ignore
    def left(self) -> int:
        return 5


def test_exported_methods_are_compiled_beside_the_trace(tmp_path: Path) -> None:
    module = Exporting().eval()
    traced = torch.jit.trace(module, X)
    assert torch.allclose(traced.shifted(X, 2), module.shifted(X, 2))
    torch.jit.save(traced, tmp_path / "m.pt")
    assert torch.allclose(torch.jit.load(tmp_path / "m.pt").shifted(X, 2), module.shifted(X, 2))

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = module

        def forward(self, x: Any) -> Any:
            return self.inside(x) * 2

    assert torch.jit.trace(Around(), X).inside.shifted(X, 1).shape == X.shape


def test_a_parameter_given_as_the_argument_stays_a_parameter() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.x = nn.Parameter(torch.ones(2))

        def forward(self, y: Any) -> Any:
            return self.x + y

    net = Net()
    assert torch.jit.trace(net, net.x)(torch.zeros(2)).tolist() == [1.0, 1.0]


def test_tensors_of_old_constructors_are_constants() -> None:
    traced = torch.jit.trace(lambda x: (x + 1, torch.FloatTensor([3]), torch.LongTensor(2).fill_(7)), X)
    _, three, sevens = traced(X)
    assert (three.tolist(), sevens.tolist()) == ([3.0], [7, 7])


class Forking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part, self.bias = nn.Linear(3, 3), nn.Parameter(torch.ones(3))

    def forward(self, x: Any) -> Any:
        first = torch.jit.fork(self.part, x)
        both = torch.jit.fork(lambda y: (y + self.bias, [y * 2]), x)
        shifted, (twice,) = both.wait()
        return torch.jit.wait(first) + shifted, twice


def test_forks_are_recorded_with_what_they_do(tmp_path: Path) -> None:
    module = Forking()
    traced = torch.jit.trace(module, X, strict=False)
    assert len(traced.graph.findAllNodes("prim::fork")) == len(traced.graph.findAllNodes("aten::wait")) == 2
    torch.jit.save(traced, tmp_path / "m.pt")
    for run in (traced, torch.jit.load(tmp_path / "m.pt")):
        for result, wanted in zip(run(X * 2), module(X * 2), strict=True):
            assert torch.allclose(result, wanted)
    torch._C._jit_pass_inline_fork_wait(graph := traced.inlined_graph)
    assert not graph.findAllNodes("prim::fork")


def test_what_leaks_out_of_a_fork_is_refused() -> None:
    kept: list[Any] = []

    def leaking(x: Any) -> Any:
        torch.jit.fork(lambda y: kept.append(y + 1) or y, x).wait()
        return kept[0] * 2

    with pytest.raises(RuntimeError, match="did not have observable data dependence with trace inputs") as error:
        torch.jit.trace(leaking, X)
    assert "return it from the function that is forked" in str(error.value)


# ------------------------------------------------------------------ functions with gradients of their own


class Straight(torch.autograd.Function):
    """Rounds; gradients pass as if it had not."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, others: Any = ()) -> Any:
        return (x * scale).round() + sum(others)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 100, None, None


class Swapped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return y, x, None

    @staticmethod
    def backward(ctx: Any, for_y: Any, for_x: Any, _: Any) -> Any:
        return for_x, for_y


class Shifted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


def test_a_function_with_a_gradient_keeps_it_in_a_trace() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x: Any) -> Any:
            return Straight.apply(self.w * x, 2) * 2

    net = Net()
    traced = torch.jit.trace(net, X)
    call = traced.graph.findNode("prim::PythonOp")
    assert f'^Straight[inplace=0, module="{__name__}"](2)(' in str(traced.graph)
    assert (call.i("inplace"), call.s("module")) == (0, __name__)
    assert "^Straight(2)(torch.mul(w, x))" in traced.code
    for _ in range(4):
        net.zero_grad()
        traced(X).sum().backward()
        assert net.w.grad.tolist() == (200 * X.sum(0)).tolist()
    with pytest.raises(RuntimeError, match="Could not export Python function call 'Straight'") as error:
        traced.save_to_buffer()
    assert "trace a version without the torch.autograd.Function" in str(error.value)


def test_tensors_in_lists_of_arguments_are_followed() -> None:
    traced = torch.jit.trace(lambda x: Straight.apply(x, 1, [x, x * 2]), X)
    assert "(1, [Tensor, Tensor])(%x, %x, %" in str(traced.graph)
    assert torch.equal(traced(X * 3), X * 12)


def test_a_function_with_several_results() -> None:
    traced = torch.jit.trace(lambda x, y: Swapped.apply(x.relu(), y.relu())[:2], (X, X[:1]))
    shapes = [f"Float({n}, 3, strides=[3, 1], requires_grad=0, device=cpu)" for n in (1, 2)]
    assert f"({shapes[0]}, {shapes[1]}, NoneType) = ^Swapped" in str(traced.graph)
    first, second = traced(X, X * 2)
    assert torch.equal(first, (X * 2).relu())
    assert torch.equal(second, X.relu())


def test_a_function_that_writes_to_its_argument_does_not_run_in_a_program() -> None:
    traced = torch.jit.trace(lambda x: Shifted.apply(x * 1), X, check_trace=False)
    assert traced.graph.findNode("prim::PythonOp").i("inplace") == 1
    with pytest.raises(RuntimeError, match="inplace Shifted not supported in the JIT"):
        traced(X)


def test_what_a_function_may_return() -> None:
    class Strange(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x, object()

    with pytest.raises(RuntimeError, match=r"Strange: Only tensors, lists.* returned a object"):
        torch.jit.trace(lambda x: Strange.apply(x)[0], X)


def test_checkpoints_are_recorded_with_their_operators() -> None:
    layer = nn.Linear(3, 3)
    traced = torch.jit.trace(
        lambda x: torch.utils.checkpoint.checkpoint(torch.tanh, x), X.clone().requires_grad_(), check_trace=False
    )
    assert [node.kind() for node in traced.graph.nodes()] == ["aten::tanh"]
    assert near(traced(layer(X)), layer(X).tanh())


# ------------------------------------------------------------------ writes as new tensors


def outplace(function: Any, *inputs: Any) -> Any:
    return torch.jit.trace(function, inputs, _force_outplace=True)


def kinds(traced: Any) -> list[str]:
    return [node.kind() for node in traced.graph.nodes() if node.kind() != "prim::Constant"]


def test_writes_are_recorded_as_new_tensors_on_request() -> None:
    def written(x: Any) -> Any:
        y = x + 1
        y.relu_().clamp_(0, 3).mul_(x)
        z = torch.zeros_like(x)
        z.copy_(y)
        z[0].sum()
        return z.detach_(), y.zero_(), (x * 1).fill_(3)

    traced = outplace(written, X)
    assert kinds(traced)[:6] == [f"aten::{name}" for name in ("add", "relu", "clamp", "mul", "zeros_like", "expand_as")]
    assert not any(kind.endswith("_") for kind in kinds(traced))
    for result, wanted in zip(traced(X * 2), written(X * 2), strict=True):
        assert torch.equal(result, wanted)


def test_copies_into_another_dtype_or_into_views_stay_writes() -> None:
    def converted(x: Any) -> Any:
        z = torch.zeros(2, 3, dtype=torch.int64)
        z.copy_(x)
        return z

    def into_view(x: Any) -> Any:
        y = x * 1
        y[0, 1] = 4
        return y

    for function in (converted, into_view):
        traced = outplace(function, X)
        assert "aten::copy_" in kinds(traced)
        assert torch.equal(traced(X * 3), function(X * 3))


def test_views_that_miss_a_write_are_told() -> None:
    def through_a_view(x: Any) -> Any:
        x.view(-1).add_(-x.view(-1))
        return x

    with pytest.warns(torch.jit.TracerWarning, match="in-place operator add_ .* cause the trace to be incorrect"):
        torch.jit.trace(through_a_view, X.clone(), _force_outplace=True, check_trace=False)
    with pytest.warns(torch.jit.TracerWarning, match="Output nr 1. of the traced function does not match"):
        torch.jit.trace(through_a_view, X.clone(), check_inputs=[X.clone()], _force_outplace=True)


def test_a_tensor_detached_in_place_is_a_new_value() -> None:
    def detached(x: Any) -> Any:
        y = x * 2
        y.detach_()
        return y

    traced = torch.jit.trace(detached, X)
    assert kinds(traced) == ["aten::mul", "aten::detach"]
    assert not traced(X.clone().requires_grad_()).requires_grad


# ------------------------------------------------------------------ results and attributes


@pytest.mark.parametrize("result", [lambda x: [[x], [x]], lambda x: [(x, x)]])
def test_lists_hold_tensors_alone(result: Any) -> None:
    with pytest.raises(RuntimeError, match="Only tensors, lists, tuples of tensors"):
        torch.jit.trace(result, X, strict=False)


def test_tensors_are_keys_of_a_returned_dict() -> None:
    traced = torch.jit.trace(lambda a, b: {a: b, b: a}, (X, X * 2), strict=False)
    a, b = X * 3, X * 4
    assert [(key is a, value is b) for key, value in traced(a, b).items()] == [(True, True), (False, False)]


def test_a_submodule_that_is_none_is_there_for_exported_methods_alone() -> None:
    class Without(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Linear(1, 1)
            self.part = None

        def forward(self, x: Any) -> Any:
            return x * 2

    class Exporting(Without):
        @torch.jit.export
        def other(self, x):  # type: ignore[no-untyped-def]
            return x + 1 if self.part is None else self.part(x)

    assert not hasattr(torch.jit.trace(Without(), X), "part")
    assert torch.jit.trace(Exporting(), X).other(X).tolist() == (X + 1).tolist()
