"""The types that a module was traced with, in archives: written, read, and refused where they do not fit."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import ArchiveError
from engine.torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3)

    def forward(self, image: Any, mask: Any) -> Any:
        return self.conv(image).mean((2, 3)) * mask

    def other(self, x: Any) -> Any:
        return x * 2


class Pairs(nn.Module):
    def forward(self, pair: Any, named: Any) -> Any:
        return pair[0] + pair[1] * named["x"]


IMAGE, MASK = torch.ones(1, 3, 8, 9), torch.ones(1, 2, dtype=torch.float64)


def sizes(graph: Any) -> list[tuple[list[int] | None, str | None]]:
    return [(value.type().sizes(), value.type().scalarType()) for value in list(graph.inputs())[1:]]


def strides(graph: Any) -> list[Any]:
    return [value.type().strides() for value in list(graph.inputs())[1:]]


def examples() -> dict[str, tuple[Any, list[tuple[list[int], str]]]]:
    by_name = {"mask": MASK, "image": IMAGE}
    wanted = [([1, 3, 8, 9], "Float"), ([1, 2], "Double")]
    odd = [([1, 3, 8, 9], "Half"), ([0, 2], "Long")]
    return {
        "plain": (torch.jit.trace(Net().eval(), (IMAGE, MASK)), wanted),
        "by name": (torch.jit.trace(Net().eval(), example_kwarg_inputs=by_name), wanted),
        "methods": (torch.jit.trace_module(Net().eval(), {"forward": (IMAGE, MASK), "other": torch.ones(4)}), wanted),
        "odd": (
            torch.jit.trace(
                Mixed(), (IMAGE.half().transpose(2, 3).contiguous().transpose(2, 3), torch.ones(0, 2).long())
            ),
            odd,
        ),
    }


class Mixed(nn.Module):
    def forward(self, image: Any, empty: Any) -> Any:
        return image * 2, empty + 1


@pytest.mark.parametrize("name", ["plain", "by name", "methods", "odd"])
def test_sizes_come_back(name: str, tmp_path: Path) -> None:
    module, wanted = examples()[name]
    path = tmp_path / "m.pt"
    module.save(path)
    assert sizes(torch.jit.load(path).graph) == [(None, None)] * 2
    loaded = torch.jit.load(path, _restore_shapes=True)
    assert sizes(loaded.graph) == wanted
    assert strides(loaded.graph) == strides(module.graph)
    if name == "methods":
        assert sizes(loaded.other.graph) == [([4], "Float")]
    loaded.save(path)
    assert sizes(torch.jit.load(path, _restore_shapes=True).graph) == wanted
    with zipfile.ZipFile(path) as file:
        memory = [each for each in file.namelist() if each.startswith("m/traced_inputs/")]
        assert memory and not any(file.getinfo(each).file_size for each in memory)


def test_programs_with_sizes_take_others(tmp_path: Path) -> None:
    module, _ = examples()["plain"]
    module.save(tmp_path / "m.pt")
    loaded = torch.jit.load(tmp_path / "m.pt", _restore_shapes=True)
    image = torch.ones(2, 3, 5, 5)
    for _ in range(3):
        assert loaded(image, MASK).tolist() == module(image, MASK).tolist()


def test_containers_come_back_as_far_as_their_types_go(tmp_path: Path) -> None:
    x = torch.ones(2)
    module = torch.jit.trace(Pairs(), ((x, x), {"x": x}), strict=False)
    module.save(tmp_path / "m.pt")
    pair, named = list(torch.jit.load(tmp_path / "m.pt", _restore_shapes=True).graph.inputs())[1:]
    assert str(pair.type()).count("Float(2") == 2 or "Tensor" in str(pair.type())
    assert str(named.type()) == "Dict[str, Tensor]"


def test_who_wants_none_stores_none(tmp_path: Path) -> None:
    kept = [torch.jit.trace(Net().eval(), (IMAGE, MASK), _store_inputs=False),
            torch.jit.trace_module(Net().eval(), {"forward": (IMAGE, MASK)}, _store_inputs=False),
            torch.jit.freeze(torch.jit.trace(Net().eval(), (IMAGE, MASK))), torch.jit.script(nn.ReLU()),
            torch.jit.trace(torch.relu, MASK)]  # fmt: skip
    for module in kept:
        module.save(tmp_path / "m.pt")
        with zipfile.ZipFile(tmp_path / "m.pt") as file:
            assert not any(name.endswith("traced_inputs.pkl") for name in file.namelist())
        torch.jit.load(tmp_path / "m.pt", _restore_shapes=True)


DAMAGES: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda data: data.replace(b"forward", b"forwarX"), "no method 'forwarX'"),
    (lambda data: data[:40], "refused|ends|cut"),
    (lambda data: b"\x80\x02K\x01.", "it is no dict"),
    (lambda data: b"\x80\x02}X\x07\0\0\0forward]s.", "takes 2 arguments, and was traced with 0"),
    (lambda data: b"\x80\x02}X\x07\0\0\0forwardNs.", "no method 'forward'"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES)
def test_damaged_records_are_refused(damage: Callable[[bytes], bytes], reason: str, tmp_path: Path) -> None:
    module, _ = examples()["plain"]
    module.save(tmp_path / "m.pt")
    with zipfile.ZipFile(tmp_path / "m.pt") as old, zipfile.ZipFile(tmp_path / "n.pt", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, damage(data) if name.endswith("traced_inputs.pkl") else data)
    torch.jit.load(tmp_path / "n.pt")
    with pytest.raises(ArchiveError, match=reason) as caught:
        torch.jit.load(tmp_path / "n.pt", _restore_shapes=True)
    assert caught.value.record == "traced_inputs.pkl"


def test_the_handle_of_a_traced_module_knows_the_arguments() -> None:
    traced = torch.jit.trace(Net().eval(), (IMAGE, MASK))
    image, mask = traced._c._retrieve_traced_inputs()["forward"]
    assert image.equal(IMAGE)
    assert mask.equal(MASK)
    forgetful = torch.jit.trace(Net().eval(), (IMAGE, MASK), _store_inputs=False)
    assert forgetful._c._retrieve_traced_inputs() == {}
