"""Frozen modules compute what the modules did, and keep only what they have to."""

from __future__ import annotations

import io
from typing import Any

import pytest

import engine.torch as torch
from engine.torch import nn
from engine.torch.testing import assert_close


class Affine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.factor = 3
        self.bias = nn.Parameter(torch.ones(3))
        self.names = ["a"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.factor + self.bias

    @torch.jit.export  # type: ignore[untyped-decorator]
    def other(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.factor


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))
        self.calls = 0
        self.weight = torch.ones(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(1)
        self.calls = self.calls + 1
        return x + self.seen + self.calls + self.weight


class Sharing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("whole", torch.zeros(2, 2))
        self.register_buffer("row", self.whole[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.row.add_(x)
        return self.whole * 1


class Holding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Counting()
        self.affine = Affine()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).sum() + self.affine(x)


class Modal(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            return x + 1
        return x - 1


def scripted(module: Any) -> Any:
    return torch.jit.script(module.eval())


def kinds(module: Any) -> list[str]:
    return [node.kind for node in module.graph.nodes() if node.kind != "prim::Constant"]


def slots(module: Any) -> list[str]:
    return [attribute.name for attribute in module._ivalue.type.attributes]


def test_attributes_become_constants() -> None:
    module = scripted(Affine())
    frozen = torch.jit.freeze(module)
    x = torch.randn(4, 2)
    assert kinds(frozen) == ["aten::linear", "aten::mul", "aten::add"]
    assert slots(frozen) == []
    assert list(frozen._ivalue.type.methods) == ["forward"]
    assert not hasattr(frozen, "factor")
    assert not hasattr(frozen, "linear")
    assert_close(frozen(x), module(x))
    assert not frozen(x).requires_grad
    assert hasattr(module, "linear"), "the module itself stays as it is"


def test_constants_are_named_after_attributes() -> None:
    text = str(torch.jit.freeze(scripted(Affine())).graph)
    assert "%self.linear.weight : Float(3, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::Constant" in text
    assert "%self.factor : int = prim::Constant[value=3]()" in text


def test_preserved_names_stay() -> None:
    frozen = torch.jit.freeze(scripted(Affine()), preserved_attrs=["other", "factor"])
    assert slots(frozen) == ["factor"]
    frozen.factor = 5
    assert frozen.other(torch.ones(1)).item() == 6
    assert 'prim::GetAttr[name="factor"]' in str(frozen.graph)


def test_a_preserved_submodule_stays_with_all_in_it() -> None:
    frozen = torch.jit.freeze(scripted(Holding()), preserved_attrs=["affine"])
    assert 'prim::GetAttr[name="weight"]' in str(frozen.graph)
    assert frozen.affine.factor == 3


def test_what_is_written_to_stays() -> None:
    module = scripted(Counting())
    frozen = torch.jit.freeze(module)
    assert slots(frozen) == ["seen", "calls"]
    assert frozen(torch.zeros(1)).tolist() == [3, 3]
    assert frozen(torch.zeros(1)).tolist() == [5, 5]
    assert frozen.calls == 2
    assert module.calls == 0


def test_what_shares_memory_with_what_is_written_to_stays() -> None:
    frozen = torch.jit.freeze(scripted(Sharing()))
    assert sorted(slots(frozen)) == ["row", "whole"]
    assert frozen(torch.ones(2)).tolist() == [[1, 1], [0, 0]]


def test_submodules_that_are_written_to_stay() -> None:
    module, x = scripted(Holding()), torch.ones(2)
    expected = [module(x), module(x)]
    frozen = torch.jit.freeze(scripted(Holding()))
    assert slots(frozen) == ["inner"]
    shifted = [frozen(x), frozen(x)]
    assert_close(shifted[1] - shifted[0], expected[1] - expected[0])


def test_the_mode_is_a_constant() -> None:
    assert kinds(torch.jit.freeze(scripted(Modal()))) == ["aten::sub"]


@pytest.mark.parametrize(
    ("make", "names", "message"),
    [
        (lambda: torch.jit.script(Modal()), [], "only implemented for modules in eval mode"),
        (lambda: Modal().eval(), [], "expects a ScriptModule"),
        (lambda: scripted(Modal()), ["nothing"], "Unknown name: nothing"),
    ],
)
def test_refusals(make: Any, names: list[str], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.jit.freeze(make(), preserved_attrs=names)


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Doing(nn.Module):
    step: Step

    def __init__(self) -> None:
        super().__init__()
        self.step = Modal()  # type: ignore[assignment]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.step.forward(x)


def test_calls_of_interfaces_are_inlined() -> None:
    frozen = torch.jit.freeze(scripted(Doing()))
    assert kinds(frozen) == ["aten::sub"]
    assert frozen(torch.ones(1)).item() == 0


def ready(layers: list[Any]) -> Any:
    """In eval mode, with statistics that are not those of a new normalization."""
    for layer in layers:
        if hasattr(layer, "running_mean"):
            layer.running_mean.copy_(torch.rand(layer.running_mean.shape))
            layer.running_var.copy_(torch.rand(layer.running_var.shape) + 0.5)
    return scripted(nn.Sequential(*layers))


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize(
    ("layers", "shape", "left"),
    [
        ([nn.Conv2d(2, 4, 2), nn.BatchNorm2d(4)], (1, 2, 5, 5), ["aten::conv2d"]),
        ([nn.Conv2d(2, 4, 2, bias=False), nn.BatchNorm2d(4, affine=False)], (1, 2, 5, 5), ["aten::conv2d"]),
        ([nn.Conv1d(2, 4, 2), nn.BatchNorm1d(4), nn.Dropout(0.5)], (1, 2, 5), ["aten::conv1d"]),
        ([nn.Conv2d(2, 4, 2, groups=2), nn.BatchNorm2d(4), nn.ReLU()], (1, 2, 5, 5), ["aten::conv2d", "aten::relu"]),
    ],
)
def test_normalization_is_folded(layers: list[Any], shape: tuple[int, ...], left: list[str]) -> None:
    module = ready(layers)
    frozen = torch.jit.freeze(module)
    x = torch.randn(*shape)
    assert kinds(frozen) == left
    assert "batch_norm" not in str(frozen.graph)
    assert_close(frozen(x), module(x), rtol=1e-5, atol=1e-5)
    exact = torch.jit.freeze(module, optimize_numerics=False)
    assert "batch_norm" in str(exact.graph)
    assert_close(exact(x), module(x), rtol=0, atol=0)
    assert "batch_norm" not in str(torch.jit.optimize_for_inference(module).graph)


@pytest.mark.parametrize("bias", [True, False])
def test_normalization_behind_linear_layers_is_folded_for_matrices_alone(bias: bool) -> None:
    """With three dimensions it goes along the second, also where there are as many steps as features."""
    module = ready([nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4)])
    frozen = torch.jit.freeze(module)
    assert str(frozen.graph).count("aten::batch_norm") == 1
    assert "aten::eq" in str(frozen.graph)
    for shape in ((5, 3), (2, 4, 3)):
        x = torch.randn(*shape)
        assert_close(frozen(x), module(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError):
        frozen(torch.randn(2, 5, 3))


class Scaled(nn.Module):
    def __init__(self, operand: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 2)
        self.operand = operand

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((self.conv(x) * self.operand + self.operand) / self.operand) - self.operand


@pytest.mark.parametrize(
    "operand", [2.0, torch.tensor([[[2.0]], [[3.0]]]), torch.full((1, 2, 1, 1), 0.5), torch.tensor(2.0)]
)
def test_arithmetic_with_channels_is_folded(operand: Any) -> None:
    module = scripted(Scaled(operand))
    frozen = torch.jit.freeze(module)
    x = torch.randn(1, 1, 4, 4)
    assert kinds(frozen) == ["aten::conv2d"]
    assert_close(frozen(x), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize(
    "operand", [torch.rand(3, 3), torch.full((1, 2, 1, 1), 0.5, dtype=torch.float64), torch.rand(3)]
)
def test_other_arithmetic_stays(operand: Any) -> None:
    module = scripted(Scaled(operand))
    frozen = torch.jit.freeze(module)
    x = torch.randn(1, 1, 4, 4)
    assert kinds(frozen) == ["aten::conv2d", "aten::mul", "aten::add", "aten::div", "aten::sub"]
    assert_close(frozen(x), module(x), rtol=0, atol=0)


class Shown(nn.Module):
    """The convolution's own result is wanted, too."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 2)
        self.norm = nn.BatchNorm2d(2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.conv(x)
        return y, self.norm(y)


def test_a_layer_whose_result_is_used_elsewhere_stays() -> None:
    assert "aten::batch_norm" in kinds(torch.jit.freeze(scripted(Shown())))


@pytest.mark.parametrize("make", [Affine, Counting, Holding, Shown])
def test_frozen_modules_are_saved_and_loaded(make: Any) -> None:
    frozen = torch.jit.freeze(scripted(make()))
    buffer = io.BytesIO()
    torch.jit.save(frozen, buffer)
    buffer.seek(0)
    loaded = torch.jit.load(buffer)
    x = torch.ones(1, 1, 4, 4) if make is Shown else torch.ones(2)
    assert_close(loaded(x), frozen(x))


def test_the_pass_is_public() -> None:
    frozen = torch.jit.passes.freeze_module(scripted(Affine()), preservedAttrs=["names"])
    assert slots(frozen) == ["names"]


def test_parameters_may_be_preserved() -> None:
    frozen = torch.jit.passes.freeze_module(scripted(Affine()), preserveParameters=True)
    assert [name for name, _ in frozen.named_parameters()] == ["bias", "linear.weight", "linear.bias"]


def plus_100(self: nn.Module, input: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    return output + 100


def test_hooks_of_modules_inside_stay_and_those_of_the_module_go() -> None:
    inner = Modal()
    inner.register_forward_hook(plus_100)
    assert torch.jit.freeze(scripted(inner))(torch.ones(1)).item() == 0
    assert torch.jit.freeze(scripted(nn.Sequential(inner)))(torch.ones(1)).item() == 100


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = 2
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += self.step
        return x + self.calls


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Counted()
        self.second = Counted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def test_submodules_that_stay_lose_what_is_constant() -> None:
    frozen = torch.jit.freeze(scripted(Twice()))
    assert slots(frozen) == ["first", "second"]
    assert slots(frozen.first) == slots(frozen.second) == ["calls"]


def test_dotted_names_are_preserved_in_all_modules_of_the_class() -> None:
    frozen = torch.jit.freeze(scripted(Twice()), preserved_attrs=["second.step"])
    assert slots(frozen.first) == slots(frozen.second) == ["step", "calls"]
    frozen.second.step = 10
    assert frozen(torch.zeros(1)).item() == 12
    buffer = io.BytesIO()
    torch.jit.save(frozen, buffer)
    buffer.seek(0)
    assert torch.jit.load(buffer)(torch.zeros(1)).item() == 24


def test_methods_of_modules_inside_are_preserved() -> None:
    frozen = torch.jit.freeze(scripted(Holding()), preserved_attrs=["affine.other"])
    assert list(frozen.affine._ivalue.type.methods) == ["other"]
    assert slots(frozen.affine) == []
    assert frozen.affine.other(torch.zeros(1)).item() == 3


def test_an_unknown_dotted_name_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"Unknown name: first\.nothing"):
        torch.jit.freeze(scripted(Twice()), preserved_attrs=["first.nothing"])


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by
        self.uses = 0

    def of(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.by

    def counted(self, x: torch.Tensor) -> torch.Tensor:
        self.uses += 1
        return x * self.by + self.uses


class Scaling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plain = Scale(2.0)
        self.counting = Scale(3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.plain.of(x) + self.counting.counted(x)


def test_attributes_of_objects_become_constants() -> None:
    frozen = torch.jit.freeze(scripted(Scaling()))
    assert slots(frozen) == ["counting"]
    assert str(frozen.graph).count('GetAttr[name="by"]') == 0
    assert [frozen(torch.ones(1)).item() for _ in range(2)] == [6, 7]


class Forking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = torch.ones(2)
        self.right = torch.ones(2)
        self.count = torch.zeros(2)

    def part(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x * self.left

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        later = torch.jit.fork(self.part, x)
        return torch.jit.wait(later) + self.right + self.count


def test_the_graphs_of_forks_are_frozen() -> None:
    frozen = torch.jit.freeze(scripted(Forking()))
    assert slots(frozen) == ["count"]
    assert [frozen(torch.ones(2)).tolist() for _ in range(2)] == [[3, 3], [4, 4]]


class Gathering(nn.Module):
    def __init__(self, share: bool) -> None:
        super().__init__()
        self.rows = [torch.zeros(2), torch.ones(2)]
        self.last = self.rows[1] if share else torch.ones(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows[1].add_(x)
        return self.last + 1


def test_writes_inside_containers_reach_no_other_attribute() -> None:
    frozen = torch.jit.freeze(scripted(Gathering(share=False)))
    assert slots(frozen) == []
    assert frozen(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="attributes values that overlaps"):
        torch.jit.freeze(scripted(Gathering(share=True)))


def test_parameters_stay_in_training_mode() -> None:
    frozen = torch._C._freeze_module(torch.jit.script(Affine())._c)
    assert frozen.hasattr("bias") and frozen.linear.hasattr("weight") and not frozen.hasattr("factor")


class Asking(nn.Module):
    """Does something else for an input without a batch."""

    def __init__(self, least: int) -> None:
        super().__init__()
        self.conv, self.least = nn.Conv2d(3, 4, 1), least

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return y + 1 if y.dim() >= self.least and x.size(0) > 0 else y - 1


def test_dimensions_of_convolutions_are_asked_for_unless_they_are_checked() -> None:
    asking = torch.jit.script(Asking(4)).eval()
    frozen = torch.jit.freeze(asking)
    for x in (torch.rand(3, 5, 5), torch.rand(2, 3, 5, 5)):
        assert torch.allclose(frozen(x), asking(x))
    for layers in ((nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)), (nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4))):
        folded = torch.jit.freeze(torch.jit.script(nn.Sequential(*layers)).eval()).graph
        assert not folded.findAllNodes("aten::dim")
        assert not folded.findAllNodes("aten::batch_norm")
