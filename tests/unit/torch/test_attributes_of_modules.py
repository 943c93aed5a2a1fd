"""Attributes of modules that are no data of programs, annotations of base classes, and interfaces."""

from __future__ import annotations

import collections
import enum
import functools
import logging
import re
import threading
from collections.abc import Callable
from typing import Any, Dict, Final, List, NamedTuple, Optional  # noqa: UP035

import numpy as np
import pytest

import engine.torch as torch
from engine.lang.errors import CompileError
from engine.torch import Tensor, nn

pytestmark = pytest.mark.usefixtures("mode")

# ruff: noqa: UP006, UP045


class Table:
    def __init__(self, words: Any) -> None:
        self.places = {w: k for k, w in enumerate(words)}


class Around:
    def __init__(self, words: Any) -> None:
        self.inner = Table(words)


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a) -> None:  # type: ignore[no-untyped-def]
        self.a = a


class Partly:
    def __init__(self, a: Any) -> None:
        if a:
            self.x = 1


class Answering:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Takes:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args


class Listed(enum.Enum):
    A = [1]  # noqa: RUF012


HELPERS: Final[dict[str, Any]] = {
    "dict inside": Table("ab"), "object inside": Around("ab"), "slots": Slotted("x"), "partly set": Partly(0),
    "raising": Answering(), "any arguments": Takes(1), "list": [Table("a")], "dict": {"k": Table("a")},
    "tuple": (1, Table("a")), "ordered": collections.OrderedDict(a=Table("b")), "lock": threading.Lock(),
    "pattern": re.compile("a"), "logger": logging.getLogger("x"), "set": {1}, "bytes": b"x", "range": range(3),
    "mixed": [1, "a"], "big": 2**70, "big inside": [2**70], "enum": Listed.A, "class": Table, "lambda": lambda x: x,
    "partial": functools.partial(len, [1]), "array": np.ones(2), "method": Around("a").__init__,  # type: ignore[misc]
    "exception": ValueError("x"), "module": re, "deque": collections.deque([1]),
}  # fmt: skip


class Holds(nn.Module):
    def __init__(self, helper: Any) -> None:
        super().__init__()
        self.helper = helper

    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Uses(Holds):
    def forward(self, x: Tensor) -> Any:
        return x, self.helper


@pytest.mark.parametrize("name", HELPERS)
def test_what_no_program_uses_may_be_anything(name: str) -> None:
    scripted: Any = torch.jit.script(Holds(HELPERS[name]))
    assert scripted(torch.ones(1)).item() == 2


@pytest.mark.parametrize("name", HELPERS)
def test_a_use_is_refused_with_the_attributes_name(name: str) -> None:
    with pytest.raises(RuntimeError, match="helper"):
        torch.jit.script(Uses(HELPERS[name]))


class Annotates(nn.Module):
    state: List[int]
    best: Optional[float]


class Between(Annotates):
    table: Dict[str, int]

    def __init__(self) -> None:
        super().__init__()
        self.state, self.table, self.best = [], {}, None

    def forward(self, x: int) -> int:
        self.state.append(x)
        self.table["a"] = x
        self.best = 2.0
        return len(self.state) + len(self.table)


class Lowest(Between):
    other: int

    def __init__(self) -> None:
        super().__init__()
        self.other = 1


class Narrower(Between):
    best: float  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.best = 1.0


@pytest.mark.parametrize("kind", [Between, Lowest, Narrower])
def test_annotations_of_all_classes_hold(kind: type[nn.Module]) -> None:
    for _ in range(2):
        scripted: Any = torch.jit.script(kind())
        assert [scripted(5), scripted(6)] == [2, 3]


class Pair(NamedTuple):
    a: int
    b: str


class SubPair(Pair):
    pass


def takes_sub_pair(p: SubPair) -> str:
    return p.b + str(p.a)


def test_a_class_under_a_named_tuple_has_its_types() -> None:
    scripted: Any = torch.jit.script(takes_sub_pair)
    assert scripted(SubPair(2, "x")) == "x2"


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Good(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class OtherName(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        return input


class OtherType(nn.Module):
    def forward(self, x: int) -> Tensor:
        return torch.ones(x)


class OtherResult(nn.Module):
    def forward(self, x: Tensor) -> int:
        return 1


class More(nn.Module):
    def forward(self, x: Tensor, y: int = 2) -> Tensor:
        return x


class Less(nn.Module):
    def forward(self) -> Tensor:
        return torch.ones(1)


class NoForward(nn.Module):
    @torch.jit.export
    def other(self, x: Tensor) -> Tensor:
        return x


class ByDict(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"a": layer, "b": Good()})

    def forward(self, x: Tensor, which: str) -> Tensor:
        layer: Layer = self.layers[which]
        return layer.forward(x)


class ByList(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList([layer, Good()])

    def forward(self, x: Tensor, which: int) -> Tensor:
        layer: Layer = self.layers[which]
        return layer.forward(x)


class ByAttribute(nn.Module):
    layer: Layer

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer.forward(x)


class ByArgument(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def run(self, layer: Layer, x: Tensor) -> Tensor:
        return layer.forward(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self.layer, x)


class ByResult(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def chosen(self) -> Layer:
        return self.layer  # type: ignore[return-value]

    def forward(self, x: Tensor) -> Tensor:
        return self.chosen().forward(x)


GAPS: Final[dict[type[nn.Module], str]] = {
    OtherName: "its argument 'input' has to be called 'x'",
    OtherType: "its argument 'x' is of type int, and not Tensor",
    OtherResult: "it returns int, and not Tensor",
    More: "it takes 2 arguments, and not 1",
    Less: "it takes 0 arguments, and not 1",
    NoForward: "does not have method 'forward'",
}


@pytest.mark.parametrize("holder", [ByDict, ByList, ByAttribute, ByArgument, ByResult])
@pytest.mark.parametrize("layer", GAPS)
def test_a_layer_that_does_not_fit_an_interface_is_refused_with_the_reason(
    holder: Callable[[nn.Module], nn.Module], layer: Callable[[], nn.Module]
) -> None:
    torch.jit.script(holder(Good()))
    with pytest.raises(CompileError) as caught:
        torch.jit.script(holder(layer()))
    assert GAPS[layer] in str(caught.value)  # type: ignore[index]
