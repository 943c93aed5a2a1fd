"""Python classes on their way through programs."""

import enum
from typing import NamedTuple

import pytest

import engine
import engine.torch as torch
from engine.lang.errors import CompileError
from engine.torch import nn


class Point(NamedTuple):
    x: int
    y: float = 1.5


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def moved(p: Point) -> Point:
    return Point(p.x + 1, p.y)


def other(c: Color) -> Color:
    if c == Color.RED:
        return Color.BLUE
    return Color.RED


def test_named_tuples_come_back_as_their_own_class() -> None:
    result = engine.script(moved)(Point(1, 2.0))
    assert type(result) is Point
    assert result == Point(2, 2.0)
    assert engine.script(moved)((1, 2)) == Point(2, 2.0)


def test_enum_members_come_back_as_themselves() -> None:
    assert engine.script(other)(Color.RED) is Color.BLUE


def test_a_function_is_compiled_once() -> None:
    assert engine.script(moved).graph == engine.script(moved).graph
    assert engine.script(moved).qualified_name.startswith("__torch__.")


class Broken(nn.Module):
    def forward(self, x: engine.torch.Tensor) -> engine.torch.Tensor:
        return self.helper(x)

    def helper(self, x: engine.torch.Tensor) -> engine.torch.Tensor:
        return x.nosuch()


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.ReLU(), Broken())

    def forward(self, x: engine.torch.Tensor) -> engine.torch.Tensor:
        return self.layers(x)


def test_an_error_tells_the_calls_and_the_submodule_it_is_in() -> None:
    with pytest.raises(CompileError, match="no attribute or method 'nosuch'") as caught:
        torch.jit.script(Around())
    assert [frame.function for frame in caught.value.frames] == ["helper"]
    assert caught.value.hints == ("this is the submodule layers.1",)


def left_out(x: engine.torch.Tensor, m: engine.torch.Tensor = None) -> engine.torch.Tensor:
    return x


def added(x: engine.torch.Tensor, m: engine.torch.Tensor = None) -> engine.torch.Tensor:
    return x + m


def test_a_tensor_may_be_left_out_where_python_says_none() -> None:
    x = engine.tensor([1.0])
    program = engine.script(left_out)
    assert str(program.schema) == "left_out(Tensor x, Tensor m=[ Tensor (undefined) ]) -> Tensor"
    assert program(x) is x
    assert "m: Tensor)" in program.code
    program = engine.script(added)
    assert program(x, x).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="Expected a proper Tensor but got None"):
        program(x)
    with pytest.raises(CompileError, match="NoneType"):
        engine.CompilationUnit("def f(x: Tensor, m: Tensor = None):\n    return x\n")


def test_classes_of_one_name_in_a_file_are_told_apart_by_their_methods() -> None:
    @torch.jit.script
    class Scale:
        def __init__(self) -> None:
            self.factor = 2

        def first(self, x: int) -> int:
            return x * self.factor

    before = Scale

    @torch.jit.script  # type: ignore[no-redef]
    class Scale:
        def __init__(self) -> None:
            self.factor = 3

        def second(self, x: int) -> int:
            return x * self.factor

    @torch.jit.script
    def run(x: int) -> int:
        return Scale().second(x)

    assert run(5) == 15
    assert before().first(5) == 10


def test_names_are_free_again_once_the_registry_is_cleared() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return x + 1

    before = torch.jit.script(Net())
    torch.jit.clear_class_registry()

    class Net(torch.nn.Module):  # type: ignore[no-redef]
        def forward(self, x: torch.Tensor):
            return x + 2

    after = torch.jit.script(Net())
    assert after._c.qualified_name == before._c.qualified_name
    assert (before(torch.zeros(1)).item(), after(torch.zeros(1)).item()) == (1, 2)
    assert torch.jit.script(Net())._c._type() is not before._c._type()


class OwnError(ValueError):
    pass


def raises(which: int) -> int:
    if which == 0:
        raise OwnError("mine")
    if which == 1:
        raise ValueError("built in")
    if which == 2:
        raise OwnError("a", 1)
    assert which != 3, "asserted"
    return which


def raises_local() -> int:
    class Local(KeyError):
        pass

    @torch.jit.script
    def raising() -> int:
        raise Local("inside")

    return raising()


@pytest.mark.usefixtures("mode")
def test_errors_name_the_exception_class_with_its_module() -> None:
    """Those of Python itself without."""
    here = OwnError.__module__
    compiled = torch.jit.script(raises)
    lasts = f"{here}.OwnError: mine", "ValueError: built in", f"{here}.OwnError: (a, 1)", "AssertionError: asserted"
    for which, last in enumerate(lasts):
        with pytest.raises(torch.jit.Error) as caught:
            compiled(which)
        assert str(caught.value).splitlines()[-1] == last
    with pytest.raises(torch.jit.Error, match=rf"(?m)^{here}.Local: inside"):
        raises_local()


def test_unknown_operators_are_like_others_by_two_letters() -> None:
    for name, words in (("tanhh", "\taten::tanh\n"), ("set_anomaly_enabled", "may not be currently supported")):
        with pytest.raises(CompileError, match="Unknown builtin op") as caught:
            torch.jit.CompilationUnit(f"def f(x):\n    return torch.{name}(x)\n")
        assert words in str(caught.value)
