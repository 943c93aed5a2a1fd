"""Short workloads for `injection`: what programs do first, each as a function that may be called again.

In: a name.  Out: a `Workload`, made in a process that has loaded what it needs unless it is to load it itself.  Those
of `SHORT` are what the others do with the smallest programs, so that all their events can be tried.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any, Final

import engine
import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.python import binding
from engine.fuser.backend import kernel_cache
from engine.fuser.library import building, image_files, serving
from engine.fuser.library import store as library_store
from engine.fuser.library.parts import PARTS
from engine.lang.errors import CompileError


@dataclass
class Workload:
    """`run` gives `expected` at every call; `beside` is what another thread does meanwhile, with `expected_beside`.

    `folder` holds nothing but `files` afterwards.  `settings` are those of the interpreter.
    """

    run: Callable[[], Any]
    expected: Any
    beside: Callable[[], Any]
    expected_beside: Any
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tsrepl-injection-")))
    files: tuple[str, ...] = ()
    look: Callable[[Any], Any] = lambda result: result
    """What is compared of a result, asked for when its events are over."""
    left: Callable[[], list[Any]] = list
    """What is half made; not asked for where the system refused something, which then may be missing."""
    writes: bool = False
    """True where other processes at the same files would be in its way; forked ones share the place they read at."""
    settings: tuple[Any, ...] = ()


# ------------------------------------------------------------------ programs

TEXT: Final = """
def {name}(x: Tensor, n: int):
    y = torch.tanh(x)
    for i in range(n):
        y = {helper}(y) + i
    return y

def {helper}(x):
    return x * {number} if x.sum() > 0 else -x
"""
FAILING: Final = TEXT + "\ndef {name}_fails(x):\n    return {name}(x, 1).no_such_method()\n"


def helper(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + 1


class Pair:
    def __init__(self, a: torch.Tensor) -> None:
        self.a = a

    def twice(self) -> torch.Tensor:
        return self.a * 2


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.ReLU())
        self.scale = 3

    def forward(self, x):
        return helper(self.inner(x)) * self.scale


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.block(x) + Pair(self.weight).twice()

    @torch.jit.export
    def other(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x)


class Broken(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x).no_such_method()


# ------------------------------------------------------------------ workloads


def _define(unit: Any, name: str, number: int) -> Callable[[], Any]:
    def run() -> Any:
        if name in {each.name for each in unit.get_functions()}:  # what was defined, was defined as a whole
            return getattr(unit, name)(torch.ones(2), 2).tolist()
        unit.define(TEXT.format(name=name, helper=f"{name}_helper", number=number))
        return getattr(unit, name)(torch.ones(2), 2).tolist()

    return run


def define() -> Workload:
    """Two functions in a unit, one of which calls the other; beside them, others in the same unit."""
    unit = torch.jit.CompilationUnit()
    expected = _define(unit, "first", 2)()
    return Workload(_define(unit, "f", 2), expected, _define(unit, "g", 2), expected)


def define_failing() -> Workload:
    """A text that fails; beside it one in the same unit that does not, and stays."""
    unit = torch.jit.CompilationUnit()

    def fails() -> Any:
        try:
            unit.define(FAILING.format(name="h", helper="h_helper", number=2))
        except CompileError as error:
            return "no_such_method" in str(error), sorted(each.name for each in unit.get_functions())
        return "compiled"

    beside = _define(torch.jit.CompilationUnit(), "g", 2)
    expected = fails()
    expected_beside = beside()
    kept = _define(unit, "g", 2)

    def run() -> Any:
        found, names = fails()
        return found, [name for name in names if not name.startswith("g")]

    return Workload(run, expected, kept, expected_beside)


def _scripted() -> Any:
    made = torch.jit.script(Net())
    buffer = made.save_to_buffer()
    return made(torch.ones(2)).tolist(), made.other(torch.ones(2)).tolist(), len(buffer) > 0


def script() -> Workload:
    """A module with a submodule, a class and a function; the same in the other thread.  All of them can be saved."""
    torch.jit.script(torch.nn.Linear(2, 2)).save_to_buffer()
    expected = [8.0] * 2, [6.0] * 2, True
    return Workload(_scripted, expected, _scripted, expected)


def script_failing() -> Workload:
    """A module that does not compile; beside it one with the same parts that does."""
    torch.jit.script(torch.nn.Linear(2, 2)).save_to_buffer()

    def run() -> Any:
        try:
            torch.jit.script(Broken())
        except CompileError as error:
            return "no_such_method" in str(error)
        return "compiled"

    return Workload(run, True, _scripted, ([8.0] * 2, [6.0] * 2, True))


def _file(made: Workload, name: str) -> str:
    return str(made.folder / name)


def save() -> Workload:
    """A module to a file that is there already: the old one or the new one is there at any time."""
    module = torch.jit.script(Net())
    made = Workload(lambda: None, [8.0] * 2, lambda: None, [8.0] * 2, files=("model.pt", "other.pt"), writes=True)

    def saved(name: str) -> Callable[[], Any]:
        def run() -> Any:
            if os.path.exists(_file(made, name)):
                torch.jit.load(_file(made, name))
            torch.jit.save(module, _file(made, name))
            return torch.jit.load(_file(made, name))(torch.ones(2)).tolist()

        return run

    made.run, made.beside = saved("model.pt"), saved("other.pt")
    made.run()
    return made


def load() -> Workload:
    """A module from a file, and its call."""
    made = Workload(lambda: None, [8.0] * 2, lambda: None, [8.0] * 2, files=("model.pt",), writes=True)
    torch.jit.save(torch.jit.script(Net()), _file(made, "model.pt"))
    made.run = made.beside = lambda: torch.jit.load(_file(made, "model.pt"))(torch.ones(2)).tolist()
    return made


def first_call() -> Workload:
    """A plan, its groups and their kernels, in mode "eager"; kernels and numpy's functions have the same root."""
    engine.set_compile_mode("eager")
    text = TEXT.replace("torch.tanh(x)", "torch.sqrt(x)")
    torch.jit.CompilationUnit(text.format(name="f", helper="h", number=3)).f(torch.full((2,), 3.0), 2)
    unit = torch.jit.CompilationUnit(text.format(name="f", helper="h", number=2))
    unit.f.graph  # noqa: B018

    def run() -> Any:
        return [unit.f(torch.full((2,), 3.0), 2).tolist() for _ in range(3)][-1]

    alike = torch.jit.CompilationUnit(text.format(name="f", helper="h", number=2))
    expected = alike.f(torch.full((2,), 3.0), 2).tolist()
    return Workload(run, expected, run, expected)


def gradient() -> Workload:
    """Formulas that are written when they are first needed."""

    def run() -> Any:
        x = torch.ones(2, 2).requires_grad_()
        (torch.cumprod(x, 0) * torch.logsumexp(x, 1)).sum().backward()
        return [[round(each, 4) for each in row] for row in x.grad.tolist()]

    (torch.ones(2).requires_grad_() * 2).sum().backward()
    expected = [[4.3863, 4.3863], [2.6931, 2.6931]]
    return Workload(run, expected, run, expected)


def cold() -> Workload:
    """All that a first program loads, families of operators too."""

    def run() -> Any:
        x = torch.linspace(0, 1, 4).requires_grad_()
        unit = torch.jit.CompilationUnit("def f(x):\n    return torch.fft.fft(torch.cumsum(x, 0)).abs().sum()\n")
        unit.f(x).backward()
        return [round(each, 3) for each in x.grad.tolist()]

    expected = [4.0, 5.029, 4.744, 3.715]
    return Workload(run, expected, run, expected)


def store() -> Workload:
    """A kernel that is compiled and stored, in a folder of its own."""
    os.environ["TSREPL_KERNEL_CACHE"] = tempfile.mkdtemp(prefix="tsrepl-injection-")
    made = Workload(lambda: None, True, lambda: None, True, writes=True)
    folder = made.folder / "kernels"
    key = kernel_cache.key_of(["a kernel"])
    made.files = ("kernels",)

    def beside() -> Any:
        os.environ["TSREPL_KERNEL_CACHE"] = str(folder)
        kernel_cache.store(key, b"code" * 100)
        return kernel_cache.load(key) in (None, b"code" * 100)

    def run() -> Any:
        is_right = beside()
        names = os.listdir(folder) if folder.exists() else []
        return is_right and all(name == f"{key}.kernel" for name in names)

    made.run, made.beside = run, beside
    return made


# ------------------------------------------------------------------ the library of operators

SERVED: Final = "add.Scalar mul.Scalar softmax.int sum.dim_IntList sum view add_.Tensor cat".split()
"""Operators that the workload below calls."""
METHODS: Final = "__add__ add_ sum view".split()


def _operators() -> Any:
    x = torch.arange(6.0)
    y = x.view(2, 3)
    y.add_(y + 1)
    z = torch.cat([y, torch.softmax(torch.zeros(2, 3), 1) * 3]).sum(1)
    w = torch.ones(2).requires_grad_()
    (w * 3).sum().backward()
    return x.tolist(), z.tolist(), w.grad.tolist()


def _let_library_begin_anew() -> None:
    """The library was not looked for, and no operator or member of tensors was used."""
    for name in binding.written():
        delattr(torch.Tensor, name)
    binding._WRITTEN.clear()
    binding.bind(binding._SPECIAL)
    for name in table.methods():
        binding._bind_method(name)
    for op in table.entries():
        op.give_back()
    library_store._STORE, serving._STATE = library_store._Store(), serving._State()


def _not_served() -> list[Any]:
    """What the library does not serve, of all that was called, and parts that are not in use."""
    ops = [op for name in SERVED if (op := table.find(f"aten::{name}")) is not None]
    left: list[Any] = [op for op in ops if op.impl is not op._first and type(op.impl) is not BuiltinFunctionType]
    left += [name for name in METHODS if not isinstance(vars(torch.Tensor)[name], MethodDescriptorType)]
    return left + [count for count in (len(library_store._STORE.found), serving._STATE.parts) if count != len(PARTS)]


def library() -> Workload:
    """The library is found, mapped, and serves operators and methods that are first called; beside it, the same."""
    room = image_files.folder()
    assert room is not None
    building.build(room, waits=True)
    expected = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0], [9.0, 27.0, 3.0, 3.0], [3.0, 3.0]
    assert _operators() == expected
    _operators()
    _let_library_begin_anew()
    return Workload(_operators, expected, _operators, expected, left=_not_served, writes=True)  # reads a folder


# ------------------------------------------------------------------ the same, short


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.weight


def _called(function: Any) -> Any:
    return function(torch.ones(2)).tolist()


def short_define() -> Workload:
    """A function in a unit; beside it, another in the same unit."""
    unit = torch.jit.CompilationUnit("def known(x):\n    return x + 1\n")

    def defined(name: str) -> Callable[[], Any]:
        def run() -> Any:
            if name not in {each.name for each in unit.get_functions()}:
                unit.define(f"def {name}(x):\n    return x + 1\n")
            return getattr(unit, name)

        return run

    return Workload(defined("f"), [2.0] * 2, defined("g"), [2.0] * 2, look=_called)


def short_script() -> Workload:
    """A module with a parameter and a method."""
    torch.jit.script(torch.nn.Linear(2, 2)).save_to_buffer()
    Scale()  # reads files of the library: a fork in between, and child and parent would share the place in the file

    def saved(made: Any) -> Any:
        return _called(made), len(made.save_to_buffer()) > 0

    def run() -> Any:
        return torch.jit.script(Scale())

    expected = [1.0] * 2, True
    return Workload(run, expected, run, expected, look=saved)


def short_save() -> Workload:
    """The module to a file that is there already."""
    module = torch.jit.script(Scale())
    made = Workload(lambda: None, [1.0] * 2, lambda: None, [1.0] * 2, files=("model.pt", "other.pt"), writes=True)
    made.look = lambda name: _called(torch.jit.load(_file(made, name)))

    def saved(name: str) -> Callable[[], str]:
        def run() -> str:
            torch.jit.save(module, _file(made, name))
            return name

        return run

    made.run, made.beside = saved("model.pt"), saved("other.pt")
    made.look(made.run())
    return made


def short_load() -> Workload:
    """The module from a file."""
    made = Workload(lambda: None, [1.0] * 2, lambda: None, [1.0] * 2, files=("model.pt",), look=_called, writes=True)
    torch.jit.save(torch.jit.script(Scale()), _file(made, "model.pt"))
    made.run = made.beside = lambda: torch.jit.load(_file(made, "model.pt"))
    made.look(made.run())
    return made


def short_call() -> Workload:
    """Calls of a function of two operators, in mode "eager": a plan, a group, its kernel."""
    engine.set_compile_mode("eager")
    _called(torch.jit.CompilationUnit("def f(x):\n    return x * 3 + 1\n").f)
    unit = torch.jit.CompilationUnit("def f(x):\n    return x * 2 + 1\n")
    unit.f.graph  # noqa: B018

    def run() -> Any:
        return [_called(unit.f) for _ in range(3)]

    return Workload(run, [[3.0] * 2] * 3, run, [[3.0] * 2] * 3)


SHORT: Final = (short_define, short_script, short_save, short_load, short_call, store)
LONG: Final = (define, define_failing, script, script_failing, save, load, first_call, gradient, cold, library)
WORKLOADS: Final[dict[str, Callable[[], Workload]]] = {each.__name__: each for each in (*SHORT, *LONG)}
