"""Programs as plain data: what comes out in another process has equal graphs, calls and classes."""

from __future__ import annotations

import marshal
from enum import Enum
from typing import Any, NamedTuple

import pytest

import engine.torch as torch
from engine.executor.calls.call import call_function
from engine.executor.plans.executor import executor_of
from engine.ir.flat import NotPlain, flatten
from engine.ir.flat_program import ReceivedProgram, received, written
from engine.ir.unit import Function
from engine.torch import nn

TEXTS = {
    "alone": "def f(x: Tensor, n: int):\n  return x * n + 1",
    "calls": """
def h(x: Tensor):
    return x.sin()
def g(x: Tensor, n: int):
    return h(x) * n + h(x)
def f(x: Tensor, n: int):
    return g(x, n) + h(x)
""",
    "loops and branches": """
def f(x: Tensor, n: int):
    for i in range(n):
        if bool(x.sum() > 3):
            x = x - i
        else:
            x = torch.cat([x, x])[:3]
    return x, [n, 2.5], {"a": x}
""",
}


def _unit(name: str) -> Function:
    found: Function = torch.jit.CompilationUnit(TEXTS[name]).f._function
    return found


class Pair(NamedTuple):
    first: torch.Tensor
    second: int = 3


class Kind(Enum):
    ONE = 1
    TWO = 2


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.kind = Kind.TWO

    def forward(self, x: torch.Tensor) -> Pair:
        return Pair(x * self.weight, 2 if self.kind == Kind.TWO else 1)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.more = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])

    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        pair = self.inner(x)
        for each in self.more:
            x = each(x)
        return x + pair.first * pair.second * n


@torch.jit.script
class Part:
    def __init__(self, x: torch.Tensor):
        self.x = x
        self.parts = [1, 2]

    def get(self, n: int) -> torch.Tensor:
        return self.x * n + self.parts[1]


def _of_a_class(x: torch.Tensor, n: int) -> torch.Tensor:
    return Part(x).get(n)


def _class() -> Function:
    found: Function = torch.jit.script(_of_a_class)._function
    return found


def _module() -> Function:
    found: Function = torch.jit.script(Outer()).forward._function
    return found


FUNCTIONS = {**{name: lambda name=name: _unit(name) for name in TEXTS}, "a class": _class, "a module": _module}


def _elsewhere(function: Function) -> tuple[Any, ReceivedProgram]:
    program = written(function)
    kind, *data = marshal.loads(marshal.dumps(program.sent()))
    assert kind == "functions"
    return program, received(program.key, *data)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs_are_equal_in_another_process(name: str) -> None:
    function = FUNCTIONS[name]()
    program, other = _elsewhere(function)
    assert len(program.functions.things) == len(other.functions.things)
    for here, there in zip(program.functions.things, other.functions.things, strict=True):
        assert flatten(here.graph, program) == flatten(there.graph, other)
        assert str(here.graph) == str(there.graph)
        assert (here.qualname, here.is_method) == (there.qualname, there.is_method)
    assert flatten(executor_of(function).graph, program) == flatten(executor_of(other.functions.thing(0)).graph, other)


@pytest.mark.parametrize("name", [*TEXTS, "a class"])
def test_functions_run_as_they_did(name: str) -> None:
    function = FUNCTIONS[name]()
    other = _elsewhere(function)[1].functions.thing(0)
    args = [torch.arange(3.0), 4]
    here, there = (call_function(each, args, {}) for each in (function, other))
    assert str(here) == str(there)


def test_the_key_tells_programs_apart_and_nothing_else() -> None:
    made = {name: make() for name, make in FUNCTIONS.items()}
    keys = {name: written(function).key for name, function in made.items()}
    assert len({*keys.values()}) == len(keys)
    assert {name: written(function).key for name, function in made.items()} == keys


def test_constants_go_with_a_program_and_are_part_of_its_key() -> None:
    constant = torch.tensor([1.0, 2.0])
    function = torch.jit.trace(lambda x: x + constant, torch.ones(2))._function
    program, other = _elsewhere(function)
    assert [each.tolist() for each in other.tensors.things] == [[1.0, 2.0]]
    program.tensors.things[0].mul_(2)
    assert written(function).key != program.key


def test_what_is_large_or_no_plain_data_is_no_program() -> None:
    large = torch.ones(1 << 20)
    with pytest.raises(NotPlain):
        written(torch.jit.trace(lambda x: x + large, torch.ones(1))._function)
    strided = torch.ones(4, 4).t()[::2]
    with pytest.raises(NotPlain):
        written(torch.jit.trace(lambda x: x + strided, torch.ones(1))._function)


def test_what_is_named_later_has_no_name() -> None:
    program, other = _elsewhere(_class())
    stranger = torch.ones(2)
    for each in (program, other):
        with pytest.raises(NotPlain):
            each.name_of_tensor(stranger)
        with pytest.raises(NotPlain):
            each.tensor(7)
        with pytest.raises(NotPlain):
            each.source("99")


def test_operators_of_a_program_are_not_told_by_their_names() -> None:
    """Another program may have one of the same name that does something else."""
    library = torch.library.Library("flatly", "DEF")
    library.define("doubled(Tensor x) -> Tensor")
    library.impl("doubled", lambda x: x * 2, "CPU")
    function = torch.jit.trace(lambda x: torch.ops.flatly.doubled(x), torch.ones(2))._function
    with pytest.raises(NotPlain, match="flatly::doubled"):
        written(function)
