"""Weights that are computed from others (`weight_norm` and the like), in programs."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

import engine.torch as torch
from engine.torch import nn

pytestmark = pytest.mark.usefixtures("mode")


class Symmetric(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu() + x.triu(1).transpose(-1, -2)


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Summed(nn.Module):
    """Several originals."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a + b + c

    def right_inverse(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x / 2, x / 4, x / 4


def by(make: Callable[[], Any]) -> Callable[..., Any]:
    return lambda layer, name="weight": nn.utils.parametrize.register_parametrization(layer, name, make())


def twice(layer: Any, name: str = "weight") -> Any:
    return by(Doubled)(by(Doubled)(layer, name), name)


NORMS: Final[dict[str, Callable[..., Any]]] = {
    "weight_norm of old": nn.utils.weight_norm, "spectral_norm of old": nn.utils.spectral_norm,
    "weight_norm": nn.utils.parametrizations.weight_norm, "spectral_norm": nn.utils.parametrizations.spectral_norm,
    "orthogonal": nn.utils.parametrizations.orthogonal, "of the program": by(Symmetric), "two": twice,
    "several originals": by(Summed), "pruned": lambda layer: nn.utils.prune.l1_unstructured(layer, "weight", 0.5),
    "pruned twice": lambda layer: nn.utils.prune.random_unstructured(
        nn.utils.prune.ln_structured(layer, "weight", 0.3, n=2, dim=0), "weight", 0.3),
}  # fmt: skip
LAYERS: Final[dict[str, tuple[Callable[[], Any], tuple[int, ...]]]] = {
    "Linear": (lambda: nn.Linear(4, 4), (2, 4)),
    "Conv1d": (lambda: nn.Conv1d(4, 4, 4), (1, 4, 9)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 4, 4, 2), (1, 4, 4, 4)),
    "Bilinear": (lambda: Both(4), (2, 4)),
}


class Both(nn.Module):
    """A layer with two inputs."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.layer = nn.Bilinear(n, n, n)
        self.weight = self.layer.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.bilinear(x, x, self.weight, self.layer.bias)


def again(program: Any) -> Any:
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    return torch.jit.load(file)


WAYS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "script": lambda m, x: torch.jit.script(m),
    "script, loaded": lambda m, x: again(torch.jit.script(m)),
    "script, frozen": lambda m, x: torch.jit.freeze(torch.jit.script(m)),
    "trace": torch.jit.trace,
    "trace, loaded": lambda m, x: again(torch.jit.trace(m, x)),
    "trace, frozen": lambda m, x: torch.jit.freeze(torch.jit.trace(m, x)),
}


def cases() -> Iterator[Any]:
    for norm in NORMS:
        for layer in LAYERS:
            yield pytest.param(norm, layer, id=f"{norm}, {layer}")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize(("norm", "layer"), list(cases()))
def test_every_way_gives_the_modules_result(norm: str, layer: str) -> None:
    make, shape = LAYERS[layer]
    module, x = nn.Sequential(NORMS[norm](make()), nn.LeakyReLU()).eval(), torch.rand(*shape)
    want = module(x)
    for way, made in ((way, convert(module, x)) for way, convert in WAYS.items()):
        assert torch.allclose(made(x), want, atol=1e-5), way
        assert torch.allclose(made(x), want, atol=1e-5), way


@pytest.mark.parametrize("norm", NORMS)
def test_scripts_follow_the_parameters(norm: str) -> None:
    module, x = NORMS[norm](nn.Linear(4, 4)).eval(), torch.rand(2, 4)
    scripted = torch.jit.script(module)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(torch.rand(parameter.shape) + 0.5)
    assert torch.allclose(scripted(x), module(x), atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_reach_the_originals(norm: str) -> None:
    module, x = NORMS[norm](nn.Linear(4, 4)).eval(), torch.rand(2, 4)
    names = [name for name, _ in module.named_parameters()]
    module(x).sum().backward()
    want = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
    module.zero_grad()
    scripted = torch.jit.script(module)
    assert [name for name, _ in scripted.named_parameters()] == names
    scripted(x).sum().backward()
    for name, parameter in module.named_parameters():
        assert torch.allclose(parameter.grad, want[name], atol=1e-5), name


def test_training_moves_the_vectors_of_spectral_norm() -> None:
    module, x = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), torch.rand(2, 4)
    scripted = torch.jit.script(module)
    before = module.parametrizations.weight[0]._u.clone()
    scripted(x)
    assert not torch.equal(module.parametrizations.weight[0]._u, before)


def test_an_object_as_a_hook_is_refused_in_words() -> None:
    class Hook:
        def __call__(self, module: Any, inputs: Any) -> None:
            pass

    module = nn.Linear(2, 2)
    module.register_forward_pre_hook(Hook())
    with pytest.raises(RuntimeError, match="is a Hook, and no function"):
        torch.jit.script(module)
