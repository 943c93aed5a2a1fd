"""Recurrent layers that are scripted by themselves: every form of a call, and None in containers of modules."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

import engine.torch as torch
from engine.torch import Tensor, nn
from engine.torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

pytestmark = pytest.mark.usefixtures("mode")

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "plain": {}, "batch first": {"batch_first": True}, "both ways": {"bidirectional": True},
    "two layers": {"num_layers": 2}, "without bias": {"bias": False},
    "projected": {"proj_size": 2, "num_layers": 2, "bidirectional": True},
}  # fmt: skip
LAYERS: Final[dict[str, Any]] = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
KINDS: Final = [(kind, name) for kind in LAYERS for name in OPTIONS if kind == "LSTM" or name != "projected"]
"""Each layer with the options that it has."""


def calls(kind: str, options: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of every form of a call."""
    states = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    h, c = torch.rand(states, 2, options.get("proj_size", 4)), torch.rand(states, 2, 4)
    state: Any = (h, c) if kind == "LSTM" else h
    single: Any = (h[:, 0], c[:, 0]) if kind == "LSTM" else h[:, 0]
    x = torch.rand(2, 5, 3) if options.get("batch_first") else torch.rand(5, 2, 3)
    first = bool(options.get("batch_first"))
    packed = pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=first)
    unsorted = pack_padded_sequence(x, torch.tensor([3, 5]), batch_first=first, enforce_sorted=False)
    yield from (((given,), {}) for given in (x, torch.rand(5, 3), packed, unsorted))
    yield from (((given, state), {}) for given in (x, packed, unsorted))
    yield from [((x, None), {}), ((torch.rand(5, 3), single), {}), ((x,), {"hx": state}), ((), {"input": x})]


def flat(value: Any) -> list[Tensor]:
    if isinstance(value, (tuple, list)):
        return [part for each in value for part in flat(each)]
    return [] if value is None else [value]


def again(program: Any) -> Any:
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    return torch.jit.load(file)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_scripted_layer_takes_every_form_of_a_call(kind: str, options: str) -> None:
    layer = LAYERS[kind](3, 4, **OPTIONS[options]).eval()
    scripted = torch.jit.script(layer)
    for program in (scripted, again(scripted), torch.jit.freeze(scripted)):
        for args, kwargs in calls(kind, OPTIONS[options]):
            want = flat(layer(*args, **kwargs))
            for found in (flat(program(*args, **kwargs)), flat(program.forward(*args, **kwargs))):
                assert len(found) == len(want)
                assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, want, strict=True))


class Packed(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: PackedSequence) -> Any:
        return self.layer(x)[0].data


@pytest.mark.parametrize("kind", LAYERS)
def test_a_module_chooses_the_form_while_it_is_compiled(kind: str) -> None:
    module = Packed(LAYERS[kind](3, 4))
    packed = pack_padded_sequence(torch.rand(5, 2, 3), torch.tensor([5, 3]))
    assert torch.allclose(torch.jit.script(module)(packed), module(packed), atol=1e-5)


def test_what_no_signature_takes_is_refused_with_each() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)No signature of 'forward__0' takes.*forward__0.*forward__1"):
        torch.jit.script(nn.LSTM(3, 4))("text")


class Held(nn.Module):
    """A container that holds None in the place of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU(), None, nn.Tanh()])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": None, "c": nn.Tanh()})


class Enumerates(Held):
    def forward(self, x: Tensor) -> Any:
        for i, layer in enumerate(self.layers):
            if layer is not None:
                x = layer(x) * (i + 1)
        return x


class Indexes(Held):
    def forward(self, x: Tensor) -> Any:
        return self.layers[2](x), self.layers[-1](x), self.layers[1] is None, len(self.layers)


class Slices(Held):
    def forward(self, x: Tensor) -> Any:
        for layer in self.layers[1:]:
            x = x + 1 if layer is None else layer(x)
        return x


class Names(Held):
    def forward(self, x: Tensor) -> Any:
        found = [""]
        for name, layer in self.named.items():
            found.append(name)
            x = x * 2 if layer is None else layer(x)
        return x, found, [name for name in self.named.keys()], "b" in self.named, len(self.named)  # noqa: C416, SIM118


class Children(Held):
    def forward(self, x: Tensor) -> Any:
        count = 0
        for _name, layer in self.named.named_children():
            x, count = layer(x), count + 1
        return x, count


@pytest.mark.parametrize("kind", [Enumerates, Indexes, Slices, Names, Children])
def test_none_keeps_its_place_in_containers(kind: Callable[[], Any]) -> None:
    module, x = kind().eval(), torch.tensor([0.5, -1.0])
    scripted = torch.jit.script(module)
    for program in (scripted, again(scripted), torch.jit.freeze(scripted)):
        assert repr(program(x)) == repr(module(x))


class CallsNone(Held):
    def forward(self, x: Tensor) -> Any:
        return self.layers[1](x)


def test_none_in_a_container_is_not_called() -> None:
    with pytest.raises(RuntimeError, match="cannot call a value of type 'NoneType'"):
        torch.jit.script(CallsNone())


class Blocks(nn.Module):
    """A layer within a block of autocast, and within one that switches it off inside of that."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.layer(x)
            with torch.autocast("cpu", enabled=False):
                z = self.layer(x)
        return y, z


AUTOCAST: Final[dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]]] = {
    "Linear": (lambda: nn.Linear(2, 2), (1, 2)),
    "Conv1d": (lambda: nn.Conv1d(2, 2, 1), (1, 2, 4)),
    "Conv2d": (lambda: nn.Conv2d(2, 2, 1), (1, 2, 4, 4)),
    "Conv3d": (lambda: nn.Conv3d(2, 2, 1), (1, 2, 2, 2, 2)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 2, 1), (1, 2, 4, 4)),
}


class Off(Blocks):
    """A layer in a block that switches autocast off, between two calls without one."""

    def forward(self, x: Tensor) -> Any:
        y = self.layer(x)
        with torch.autocast("cpu", enabled=False):
            z = self.layer(x)
        return y, z, self.layer(x)


@pytest.mark.parametrize("name", AUTOCAST)
def test_a_block_that_switches_autocast_off_computes_in_full(name: str) -> None:
    make, shape = AUTOCAST[name]
    layer, x = make(), torch.rand(*shape)
    blocks, off = Blocks(layer), Off(layer)
    cast_in_programs = name != "ConvTranspose2d"  # PyTorch's list for programs is another one
    for module in (blocks, torch.jit.script(blocks)) if cast_in_programs else (blocks,):
        for _ in range(3):
            assert [each.dtype for each in module(x)] == [torch.bfloat16, torch.float32]
    for module in (off, torch.jit.script(off)):
        for _ in range(3):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                assert [each.dtype for each in module(x)] == [torch.bfloat16, torch.float32, torch.bfloat16]
            assert [each.dtype for each in module(x)] == [torch.float32] * 3
