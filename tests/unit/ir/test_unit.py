"""Units of functions and classes: what an attempt adds is there as a whole or not at all, whoever else adds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import engine.torch as torch
from engine.frontend.compilation import compile as compiling
from engine.frontend.emit import body as bodies
from engine.ir.unit import DEFINING, CompilationUnit, Function, shared_unit
from engine.lang.errors import CompileError
from engine.lang.types import ClassType


def names(unit: CompilationUnit) -> set[str]:
    return {*unit.functions, *unit.types, *unit.taken}


def add(unit: CompilationUnit, name: str) -> Any:
    """A function and a class, and the objects that somebody has to hold in a shared unit."""
    function, type = Function(f"{name}.f"), ClassType(name)
    unit.add_function(function)
    unit.add_type(name, type)
    return function, type


@pytest.mark.parametrize("make", [CompilationUnit, shared_unit])
@pytest.mark.parametrize("error", [CompileError, KeyboardInterrupt, MemoryError])
def test_an_attempt_that_raises_adds_nothing(make: Callable[[], CompilationUnit], error: type[BaseException]) -> None:
    unit = make()
    kept = add(unit, "A")
    before = names(unit)

    def inner() -> None:
        nonlocal kept
        with DEFINING, unit.attempt():
            kept += add(unit, "C")
            raise error("no")

    def outer() -> None:
        nonlocal kept
        with DEFINING, unit.attempt():
            kept += add(unit, "B")
            inner()

    with pytest.raises(error):
        outer()
    assert names(unit) == before
    with DEFINING, unit.attempt():
        kept += add(unit, "B")
        with pytest.raises(error):
            inner()
    assert names(unit) - before == {"B", "B.f"}
    assert not unit.undoing
    assert not unit.attempts


def test_an_attempt_that_was_interrupted_while_it_ended_is_undone_before_the_next_addition() -> None:
    unit = CompilationUnit()

    def interrupted() -> None:
        unit.attempt().__enter__()
        add(unit, "A")

    interrupted()
    assert "A" in unit.types
    add(unit, "B")
    assert names(unit) == {"B", "B.f"}
    interrupted()
    with DEFINING, unit.attempt():
        add(unit, "A")
    assert names(unit) == {"A", "A.f", "B", "B.f"}


def test_a_function_that_needs_itself_is_refused_and_one_whose_compilation_was_interrupted_is_not() -> None:
    def needs_itself(function: Function) -> None:
        function.ensure_defined()

    with pytest.raises(CompileError, match="called recursively"):
        Function("f", needs_itself).ensure_defined()
    unit = compiling.compile_source("def f(x: int):\n    return x + 1")
    made, function = unit.functions["f"], Function("g")

    def define(given: Function) -> None:
        given.define(made.schema, made.graph)

    function.creator, function._was_begun = define, True
    function.ensure_defined()
    assert function.graph is made.graph


# ------------------------------------------------------------------ threads


def beside(work: Callable[[], None], others: Callable[[], None]) -> None:
    """Do the work while another thread does the same thing over and over."""
    stop, errors = threading.Event(), []

    def again() -> None:
        try:
            while not stop.is_set():
                others()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        work()
    finally:
        stop.set()
        thread.join()
    assert not errors


def test_a_definition_that_fails_leaves_those_of_other_threads() -> None:
    unit = torch.jit.CompilationUnit()

    def fails() -> None:
        with pytest.raises(CompileError):
            unit.define("def h(x: Tensor):\n    return torch.tanh(x).no_such_method()\n")

    def works() -> None:
        for i in range(40):
            unit.define(f"def good{i}(x: Tensor):\n    return torch.tanh(x) + {i}\n")
            assert getattr(unit, f"good{i}")(torch.zeros(1)).tolist() == [i]

    beside(works, fails)
    assert {each.name for each in unit.get_functions()} == {f"good{i}" for i in range(40)}


class Part(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.ReLU())

    def forward(self, x):
        return self.inner(x)


class Broken(Part):
    def forward(self, x):
        return self.inner(x).no_such_method()


def test_modules_that_threads_script_at_once_can_be_saved() -> None:
    made: list[Any] = []
    wall = threading.Barrier(6)

    def script() -> None:
        wall.wait()
        made.append(torch.jit.script(Part()))

    threads = [threading.Thread(target=script) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({each._ivalue.type for each in made}) == 1
    assert all(each.save_to_buffer() for each in made)


def test_a_module_that_does_not_compile_leaves_those_of_other_threads() -> None:
    def fails() -> None:
        with pytest.raises(CompileError):
            torch.jit.script(Broken())

    def works() -> None:
        for _ in range(15):

            class Own(Part):
                pass

            assert torch.jit.script(Own()).save_to_buffer()

    beside(works, fails)


@pytest.mark.parametrize("names", [lambda unit: [each.name for each in unit], lambda unit: [*vars_of(unit)], repr])
def test_who_reads_names_sees_whole_definitions(monkeypatch: pytest.MonkeyPatch, names: Callable[[Any], Any]) -> None:
    real, inside, found = bodies.compile_body, threading.Event(), list[Any]()
    unit = torch.jit.CompilationUnit("def first(x):\n    return x\n")
    before = names(unit)

    def slowly(*args: Any) -> Any:
        inside.set()
        reading.join(0.2)
        return real(*args)

    def read() -> None:
        inside.wait()
        found.append(names(unit))

    reading = threading.Thread(target=read)
    monkeypatch.setattr(bodies, "compile_body", slowly)
    reading.start()
    with pytest.raises(CompileError):
        unit.define("def f(x):\n    return x\ndef g(x):\n    return f(x).no_such_method()\n")
    reading.join()
    assert found == [before]


def vars_of(unit: Any) -> list[str]:
    return [name for name in dir(unit) if name in ("first", "f", "g")]


# ------------------------------------------------------------------ interrupts


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_was_interrupted_is_defined_the_next_time(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException], at: int
) -> None:
    real, count = bodies.compile_body, 0

    def interrupted(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            raise error
        return real(*args)

    monkeypatch.setattr(bodies, "compile_body", interrupted)
    unit = torch.jit.CompilationUnit()
    text = "def f(x: int):\n    return g(x) + 1\ndef g(x: int):\n    return x * 2\ndef h(x: int):\n    return f(x)\n"
    with pytest.raises(error):
        unit.define(text)
    assert unit.get_functions() == []
    unit.define(text)
    assert unit.h(3) == 7
