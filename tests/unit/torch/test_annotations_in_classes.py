"""Names that only the annotations of a class's methods use, and methods that a class drops."""

from __future__ import annotations  # the classes below come from texts that do without

import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import engine.torch as torch
from engine.torch.jit.python_types import should_drop

TEXT = """
from typing import Dict, Iterator, List, Optional, Tuple
import engine.torch as torch

def made():
    tensor_t = torch.Tensor
    place_t = torch.device
    many_t = List[int]
    maybe_t = Optional[Dict[str, float]]

    class A:
        def __init__(self) -> None:
            self.n = 3

        def tensor(self, x: tensor_t, y: torch.device) -> tensor_t:
            return x.to(device=y) + self.n

        def place(self, x: place_t) -> place_t:
            return x

        def places(self, l: List[place_t]) -> place_t:
            return l[0]

        def many(self, l: many_t) -> int:
            return l[0] + self.n

        def maybe(self, d: maybe_t = None) -> bool:
            return d is None

        @property
        def own(self) -> many_t:
            return [self.n]

        @torch.jit._drop
        def __iter__(self) -> Iterator[torch.Tensor]:
            return iter(())

        @torch.jit._drop
        def unread(self, x: Undeclared if False else "Whatever", *more, **others) -> "also.unknown":
            with open(x) as file:
                return [line async for line in file]

    def calls() -> Tuple[float, torch.device, int, bool, int]:
        a = A()
        cpu = torch.device("cpu")
        return a.tensor(torch.tensor([1.0]), cpu).item(), a.places([a.place(cpu)]), a.many([4]), a.maybe(), a.own[0]

    def alone(x: tensor_t) -> tensor_t:
        return x

    return A, calls, alone
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("classes") / "annotated_classes.py"
    path.write_text(TEXT.replace("async for", "for"))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), vars(module))
    yield module
    del sys.modules[path.stem]


def test_local_names_of_annotations_are_types_in_methods(program: Any) -> None:
    _, calls, _ = program.made()
    assert torch.jit.script(calls)() == (4.0, torch.device("cpu"), 7, True, 3)


def test_functions_know_them_only_where_their_code_does(program: Any) -> None:
    with pytest.raises(RuntimeError, match="Unknown type name 'tensor_t'"):
        torch.jit.script(program.made()[2])


def test_a_class_reads_nothing_of_methods_that_it_drops(program: Any) -> None:
    cls, _, _ = program.made()
    made = torch.jit.script(cls)()
    assert made.many([1]) == 4


def test_a_module_raises_for_a_method_that_is_dropped() -> None:
    class Outer(torch.nn.Module):
        @torch.jit._drop
        def gone(self, x: torch.Tensor) -> torch.Tensor:
            return x

        def forward(self, x: torch.Tensor, run: bool) -> torch.Tensor:
            return self.gone(x) if run else x + 1

    module = torch.jit.script(Outer())
    assert module(torch.ones(1), False).item() == 2.0
    with pytest.raises(torch.jit.Error, match="annotated to be ignored and cannot be run"):
        module(torch.ones(1), True)


def test_the_older_name_of_drop_warns_and_drops() -> None:
    def function(x):  # type: ignore[no-untyped-def]
        return x

    with pytest.warns(FutureWarning, match="TorchScript will now drop the function"):
        marked = torch.jit.ignore(drop_on_export=True)(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert should_drop(marked)
        assert not should_drop(torch.jit.ignore(drop_on_export=False)(lambda x: x))


def test_parameters_that_are_kept_are_not_traced() -> None:
    class Symmetric(torch.nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x.triu() + x.triu(1).mT

    parametrize = torch.nn.utils.parametrize
    model = parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
    x = torch.ones(1, 3)
    traced = torch.jit.trace(model, x)
    with parametrize.cached():
        assert torch.allclose(traced(x), model(x))
        with pytest.raises(RuntimeError, match="Cannot trace a model while caching"):
            torch.jit.trace(model, x)
    assert torch.allclose(torch.jit.trace(model, x)(x), model(x))
