"""Programs are given back: whoever drops a program finds as many of its parts afterwards as before.

Each scenario makes programs, runs them and drops them; a few rounds warm up what the engine keeps of its own, and
further ones leave nothing behind.  Decision 19 says who may own a program.
"""

from __future__ import annotations

import enum
import gc
import io
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

import engine.torch as torch
from engine.fuser.backend import code, tiering
from engine.lang.errors import EngineError
from engine.torch import nn
from tsrepl.session.session import Session

PARTS: Final = (
    "ClassType", "Code", "CompilationUnit", "ExecutionPlan", "Function", "Graph", "GraphExecutor", "InterfaceType",
    "Node", "Object", "Source", "Tree",
)  # fmt: skip
"""The classes whose objects are counted: the parts of programs."""
_numbers: Final = itertools.count(1)
X: Final = torch.ones(2, 3)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Dropout(0.5)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return torch.relu(x)

    @torch.jit.export
    def other(self, x: int) -> int:
        return x + 1


def text() -> None:
    """Text with a constant of its own, so that nothing made for another round fits."""
    source = "def f(x, n: int):\n    for i in range(n):\n        x = torch.sigmoid(x + i) * {0}\n    return x\n"
    unit = torch.jit.CompilationUnit(source.format(next(_numbers)))
    for _ in range(3):
        unit.f(X, 3)


def gradients() -> None:
    unit = torch.jit.CompilationUnit(f"def f(x, w):\n    return (torch.tanh(x @ w) * {next(_numbers)}).sum()")
    for _ in range(3):
        unit.f(X, torch.ones(3, 3, requires_grad=True)).backward()


def functions() -> None:
    def inner(x):
        return torch.relu(x) + 1

    def outer(x, y: int):
        return inner(x) * y

    script = torch.jit.script(outer)
    for _ in range(3):
        script(X, 4)


def modules() -> None:
    module = torch.jit.script(Net())
    for _ in range(3):
        module(X).sum().backward()
    torch.jit.freeze(module.eval())(X)


def local_modules() -> None:
    class Local(Net):
        pass

    torch.jit.script(Local())(X)


def archives() -> None:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Net()), buffer)
    buffer.seek(0)
    loaded = torch.jit.load(buffer)
    for _ in range(3):
        loaded(X)


def traces() -> None:
    module = torch.jit.trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), X)
    function = torch.jit.trace(lambda x, y: x.sin() * y, (X, X))
    for _ in range(3):
        module(X), function(X, X)


def classes() -> None:
    class Color(enum.Enum):
        RED = 1
        GREEN = 2

    class Pair(NamedTuple):
        a: int
        b: torch.Tensor

    @torch.jit.script
    class Point:
        def __init__(self, x: int):
            self.x = x

        def __len__(self) -> int:
            return self.x

    def f(c: Color, pair: Pair, point: Point):
        return c == Color.RED, pair, Pair(len(point), pair.b), Point(3)

    script = torch.jit.script(f)
    for _ in range(3):
        assert isinstance(script(Color.RED, Pair(1, X), Point(2))[1], Pair)


def failures() -> None:
    def misspelt(x):
        return nothing_of_that_name(x)  # noqa: F821

    for make in (
        lambda: torch.jit.CompilationUnit(f"def f(x):\n    return x.nothing_{next(_numbers)}()"),
        lambda: torch.jit.script(misspelt),
        lambda: torch.jit.CompilationUnit("def f(x):\n    return x @ torch.ones(2, 7)").f(X),
        lambda: torch.jit.CompilationUnit("def f(x: int):\n    raise ValueError('a')").f(1),
    ):
        with pytest.raises(EngineError):
            make()


def cells() -> None:
    session = Session()
    for entry in (
        "x = torch.ones(2)", "def f(x):\n    return x * 2\n", "f(x)", "class A:\n    def __init__(self, x: int):\n"
        "        self.x = x\n", "a = A(4)", "a.x", "for i in range(3):\n    x = x + i\n", "x.nothing()", "%graph f",
        "%passes f(x)", "%profile f(x)",
    ):  # fmt: skip
        session.execute(entry)


def training() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        optimizer.zero_grad()
        (model(X) ** 2).mean().backward()
        optimizer.step()


SCENARIOS: Final = (
    text, gradients, functions, modules, local_modules, archives, traces, classes, failures, cells, training,
)  # fmt: skip


def _parts() -> Counter[str]:
    tiering.wait()
    for _ in range(3):
        gc.collect()
    found = Counter(
        type(each).__name__ for each in gc.get_objects() if str(type(each).__module__).startswith("engine.")
    )
    return Counter({name: found[name] for name in PARTS})


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_nothing_is_left_of_dropped_programs(scenario: Callable[[], None]) -> None:
    for _ in range(2):
        scenario()
    before = _parts()
    for _ in range(3):
        scenario()
    assert _parts() - before == Counter()


def test_names_do_not_depend_on_what_was_given_back() -> None:
    def make() -> Any:
        class Alone(nn.Module):
            def forward(self, x):
                return x

        return Alone

    cls = make()
    first = torch.jit.script(cls())._ivalue.type.qualname
    gc.collect()
    assert torch.jit.script(cls())._ivalue.type.qualname == first
    gc.collect()
    assert torch.jit.script(make()())._ivalue.type.qualname != first


def test_machine_code_goes_with_its_program() -> None:
    """The code of a dropped plan is given back when code is loaded next."""
    program = "def f(x, y):\n    return torch.sigmoid(x * {0}.5) + y * {0}"
    before, tiering_before = len(code._LOADED), tiering.mode()
    tiering.set_mode("eager")
    try:
        for number in (12_001, 12_002):
            function = torch.jit.CompilationUnit(program.format(number)).f
            for _ in range(3):
                function(torch.ones(30, 30), torch.ones(30, 30))
            held = len(code._LOADED)
            del function
            gc.collect()
            assert len(code._LOADED) < held
    finally:
        tiering.set_mode(tiering_before)
    assert len(code._LOADED) - before < 12, "operators may have got code of their own"
    assert len(code._TO_GIVE_BACK) < 12
