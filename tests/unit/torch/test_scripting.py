"""Python classes on their way through programs."""

import enum
from typing import NamedTuple

import pytest

import engine
import engine.torch
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
        engine.torch.jit.script(Around())
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
