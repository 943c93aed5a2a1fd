"""Messages about values, classes and modules of the wrong type: they say what is wanted, and what is missing of it."""

# mypy: ignore-errors
import io
from enum import Enum
from typing import Any

import pytest

import engine.torch as torch
from engine.torch import nn


class Color(Enum):
    RED = 1


class Other(Enum):
    GREEN = 2


@torch.jit.interface
class Interface:
    def one(self, x: int) -> int:
        pass

    def two(self, x: int) -> int:
        pass


class Lacking:
    def __init__(self):
        pass

    def one(self, x: int) -> int:
        return x


class Plain:
    def __init__(self):
        self.n = 1


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Doubling(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Counting(nn.Module):
    def forward(self, x: int) -> int:
        return x


class Swapping(nn.Module):
    inner: Layer

    def __init__(self):
        super().__init__()
        self.inner = Doubling()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner.forward(x)


def use(x: Interface) -> int:
    return x.one(1)


def lacks() -> int:
    return use(Lacking())


def adds():
    return Plain() + Plain()


def sorts():
    found = [Plain(), Plain()]
    found.sort()
    return found


def either(x: int | str) -> str:
    return "a"


def colored(x: Color | str) -> bool:
    return isinstance(x, str)


def takes_plain(x: Plain) -> int:
    return x.n


def purple() -> int:
    return Color.PURPLE.value


def narrowed(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        y = x
    else:
        y = x
    return y


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lacks, "does not have method 'two' but"),
        (adds, "object has no attribute or method '__add__'"),
        (purple, "has no attribute 'PURPLE'"),
    ],
)
def test_what_is_missing_is_named_by_the_compiler(function, text):
    with pytest.raises(RuntimeError, match=text):
        torch.jit.script(function)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("List", r"List without a contained type\. Please add a contained type, e\.g\. List\[int\]"),
        ("Dict", r"Dict without contained types\. Please add contained type, e\.g\. Dict\[int, int\]"),
        ("Optional", r"Optional without a contained type"),
    ],
)
def test_containers_say_of_what(name, text):
    with pytest.raises(RuntimeError, match=text):
        torch.jit.CompilationUnit(f"def f(x: {name}):\n    return x\n")


def test_what_is_missing_is_named_by_calls():
    with pytest.raises(RuntimeError, match="must define a __lt__"):
        torch.jit.script(sorts)()
    with pytest.raises(RuntimeError, match=r"Expected a member of Union\[int, str\] but .* found type List\[str\]"):
        torch.jit.script(either)(["a"])
    with pytest.raises(RuntimeError, match="object was missing attribute n"):
        torch.jit.script(takes_plain)(torch.ones(2))
    with pytest.raises(RuntimeError, match="the value is not a TorchScript compatible type"):
        torch.jit.script(use)(3)


def test_an_enum_is_a_member_of_a_union():
    scripted = torch.jit.script(colored)
    assert (scripted(Color.RED), scripted("a")) == (False, True)
    with pytest.raises(RuntimeError, match="Other"):
        scripted(Other.GREEN)


def test_modules_that_replace_others_fit_the_interface():
    scripted = torch.jit.script(Swapping())
    scripted.inner = torch.jit.script(Doubling())
    assert scripted(torch.ones(1)).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="a ScriptModule with non-scripted module"):
        scripted.inner = Doubling()
    with pytest.raises(RuntimeError, match="is not compatible with interface"):
        scripted.inner = torch.jit.script(Counting())


def test_objects_are_no_modules():
    def through(x: Layer) -> Layer:
        return x

    made = torch.jit.script(Plain)()
    with pytest.raises(RuntimeError, match="only a ScriptModule class can be subtype of module interface"):
        torch.jit.script(through)(made)


def test_interfaces_extend_nothing():
    with pytest.raises(RuntimeError, match=r"does not support inheritance yet\. Please directly"):

        @torch.jit.interface
        class Extended(nn.ReLU):
            def three(self, x: torch.Tensor) -> torch.Tensor:
                return x


def test_narrowing_comes_back_from_an_archive():
    scripted, archive = torch.jit.script(narrowed), io.BytesIO()
    torch.jit.save(scripted, archive)
    archive.seek(0)
    code = torch.jit.load(archive).code
    assert "unchecked_cast(Any, x)" in scripted.code and "unchecked_cast(Any, x)" in code
