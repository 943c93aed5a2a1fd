"""Instances of Python classes: compiled, as attributes, behind interfaces, and replaced before compiling."""

from __future__ import annotations

from enum import Enum
from typing import Any, Dict, Iterable, List  # noqa: UP035  (programs write them)

import pytest

import engine.torch as torch
from engine.lang.errors import ArgumentError, CompileError, NotSupportedError
from engine.torch import Tensor, nn


class Counter:
    made = 3

    def __init__(self, count: int) -> None:
        self.count = count

    def add(self, more: int) -> None:
        self.count += more

    @property
    def doubled(self) -> int:
        return twice(self.count)

    @torch.jit.unused
    def python_only(self, items: Iterable[int], *args: int, **more: int) -> int:
        return next(iter(items))


def twice(x: int) -> int:
    return 2 * x


@torch.jit.interface
class Changes:
    def change(self, x: Tensor) -> Tensor:
        pass


@torch.jit.script
class Adds:
    def __init__(self, amount: Tensor) -> None:
        self.amount = amount

    def change(self, x: Tensor) -> Tensor:
        return x + self.amount


class Color(Enum):
    RED = 1
    GREEN = 2


class Unknown:
    pass


class Plain:
    def change(self, x: Tensor) -> Tensor:
        return x


class Holder(nn.Module):
    part: Changes

    def __init__(self, part: Any) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        return self.part.change(x)


class Wrong:
    def bad(self) -> None:
        import os  # noqa: F401


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        pass


class Model(nn.Module):
    layer: Layer

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.ReLU()  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        for each in self.modules():
            x = each(x)
        return x


def test_an_instance_is_compiled_and_shared_with_programs() -> None:
    def add_two(counter: Counter) -> None:
        counter.add(2)

    script: Any = torch.jit.script(Counter(1))
    torch.jit.script(add_two)(script)
    assert (script.count, script.doubled) == (3, 6)
    script.count = 5
    assert script.doubled == 10


def test_instances_whose_attributes_have_other_types_are_refused() -> None:
    wrong: Any = Counter(1)
    wrong.count = "one"
    with pytest.raises(CompileError, match="Could not cast attribute 'count' to type int"):
        torch.jit.script(wrong)

    class Varied:
        def __call__(self, *args: int) -> int:
            return len(args)

    with pytest.raises(NotSupportedError, match="can't take variable number of arguments"):
        torch.jit.script(Varied())


def test_an_attribute_with_an_interface_takes_instances_of_compiled_classes() -> None:
    script: Any = torch.jit.script(Holder(Adds(torch.ones(2))))
    assert script(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(CompileError, match="a Plain is no scripted object"):
        torch.jit.script(Holder(Plain()))


def kind_of(x: Any) -> int:
    if isinstance(x, Counter):
        return x.count
    if isinstance(x, Color):
        return x.value
    return -1


def test_any_takes_instances_of_classes_that_are_compiled() -> None:
    script: Any = torch.jit.script(kind_of)
    assert [script(each) for each in (Counter(3), Color.GREEN, torch.ones(1), 7)] == [3, 2, -1, -1]
    with pytest.raises(ArgumentError, match="a Unknown has no type in TorchScript"):
        script(Unknown())


def test_class_attributes_are_named_in_the_error() -> None:
    def f() -> int:
        return Counter(1).made

    with pytest.raises(CompileError, match=r"no attribute or method 'made'.*'made' is defined as a class attribute"):
        torch.jit.script(f)


def test_mutable_defaults_of_methods_are_refused() -> None:
    class Kept:
        def __init__(self, items: List[int] = []) -> None:  # noqa: B006, UP006
            self.items = items

    with pytest.raises(NotSupportedError, match=r"Mutable default parameters.*list.*on parameter items"):
        torch.jit.script(Kept)


def test_bool_has_to_return_a_bool() -> None:
    class Odd:
        def __init__(self) -> None:
            pass

        def __bool__(self) -> int:  # type: ignore[override]
            return 1

    def f() -> int:
        return 1 if Odd() else 2

    with pytest.raises(CompileError, match="expected a bool expression for condition but found int"):
        torch.jit.script(f)


def test_the_error_of_a_class_says_who_needed_it() -> None:
    def inner() -> int:
        Wrong()
        return 1

    def outer() -> int:
        return inner()

    with pytest.raises(NotSupportedError) as caught:
        torch.jit.script(outer)
    text = str(caught.value)
    assert "Wrong' is being compiled since it was called from 'inner':" in text
    assert "'inner' is being compiled since it was called from 'outer':" in text


def test_what_prepares_itself_is_compiled_in_its_place() -> None:
    class Doubles(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    class Fancy(Doubles):
        def __prepare_scriptable__(self) -> Any:
            return nn.ReLU()

    x = torch.tensor([-1.0, 1.0])
    assert torch.jit.script(Fancy())(x).tolist() == [0, 1]
    model = nn.Sequential(Fancy(), nn.Sequential(Doubles(), Fancy()))
    assert torch.jit.script(model)(x).tolist() == [0, 2]
    assert isinstance(model[0], Fancy)
    assert model(x).tolist() == [-8, 8]

    class Sum:
        def __prepare_scriptable__(self) -> Any:
            return twice

    assert torch.jit.script(Sum())(4) == 8


def test_a_submodule_of_another_class_is_refused() -> None:
    class First(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    class Second(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    script: Any = torch.jit.script(nn.Sequential(First()))
    setattr(script, "0", torch.jit.script(First()))
    with pytest.raises(ArgumentError, match=r"Expected a value of type '.*First \(.*for field .0., but found"):
        setattr(script, "0", torch.jit.script(Second()))


def test_modules_behind_an_interface_are_not_gone_through() -> None:
    with pytest.raises(CompileError, match=r"Could not compile modules\(\) because 'layer' is an interface type"):
        torch.jit.script(Model())


def test_isinstance_of_containers() -> None:
    test: Any = torch.jit.isinstance
    with pytest.raises(CompileError, match="Attempted to use Dict without contained types"):
        test({"a": 1}, Dict)  # noqa: UP006
    with pytest.raises(ArgumentError, match="must be a type or a tuple of types"):
        test(1, [int])
    with pytest.warns(UserWarning, match="inner type of a container is lost"):
        assert test([], List[int])  # noqa: UP006
