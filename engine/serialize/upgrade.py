"""Operators that old archives mean differently: how their calls are written today.

In: an operator's name and the version of the archive that calls it.  Out: what a call of it compiles to:
the body of a function that does with today's operators what the operator did then.  So `torch.div` of two
integer tensors still divides without a rest in an archive of version 3, and is saved again as what it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from engine.frontend.builder import Builder
from engine.frontend.compile import compile_source
from engine.frontend.schema_match import Actual, Call, match_schemas
from engine.frontend.sugar import SugaredValue
from engine.frontend.values import BuiltinFunction, SimpleValue
from engine.ir.clone import inline_graph
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange


class Upgrade(NamedTuple):
    """For archives below version `below`: the overloads, as TorchScript text."""

    below: int
    text: str


_OPTIONS: Final = (
    "dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None, "
    "pin_memory: Optional[bool]=None"
)
_PASS: Final = "dtype=dtype, layout=layout, device=device, pin_memory=pin_memory"
_FULL: Final = f"""
def full(size: List[int], fill_value: number, *, {_OPTIONS}) -> Tensor:
    if dtype is None:
        value = float(fill_value)
    else:
        value = fill_value
    return torch.full(size, value, {_PASS})
"""
_LINSPACE: Final = f"""
def linspace(start: number, end: number, steps: Optional[int]=None, *, {_OPTIONS}) -> Tensor:
    if steps is None:
        return torch.linspace(start, end, 100, {_PASS})
    return torch.linspace(start, end, steps, {_PASS})
"""
_LOGSPACE: Final = f"""
def logspace(start: number, end: number, steps: Optional[int]=None, base: float=10., *, {_OPTIONS}) -> Tensor:
    if steps is None:
        return torch.logspace(start, end, 100, base, {_PASS})
    return torch.logspace(start, end, steps, base, {_PASS})
"""
_GELU: Final = """
def gelu(self: Tensor) -> Tensor:
    return torch.gelu(self, approximate="none")
"""
_DIV: Final = """
def div_tensor(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")
def div_scalar(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")
def div_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
        return torch.div(self, other, out=out)
    return torch.div(self, other, rounding_mode="trunc", out=out)
"""
_DIV_: Final = """
def div_tensor(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div_(self, other)
    return torch.div_(self, other, rounding_mode="trunc")
def div_scalar(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div_(self, other)
    return torch.div_(self, other, rounding_mode="trunc")
"""

UPGRADES: Final[dict[str, Upgrade]] = {
    "div": Upgrade(4, _DIV), "div_": Upgrade(4, _DIV_), "full": Upgrade(5, _FULL), "linspace": Upgrade(8, _LINSPACE),
    "logspace": Upgrade(9, _LOGSPACE), "gelu": Upgrade(10, _GELU),
}  # fmt: skip


def operator_as_of(version: int, name: str) -> SugaredValue:
    """What `torch.name` stands for in an archive of that version."""
    upgrade = UPGRADES.get(name)
    current = BuiltinFunction(f"aten::{name}")
    return current if upgrade is None or version >= upgrade.below else _Upgraded(name, current)


@cache
def _functions(name: str) -> tuple[Function, ...]:
    return tuple(compile_source(UPGRADES[name].text, filename="<upgrade>").functions.values())


def upgrader_graphs() -> dict[str, Graph]:
    """The graph of every function that does what an operator did, by a name that tells the versions it is for."""
    return {
        f"{function.name}_0_{upgrade.below - 1}": function.graph
        for name, upgrade in UPGRADES.items()
        for function in _functions(name)
    }


class _Upgraded(SugaredValue):
    """An operator as it was; a call that fits none of its old overloads is one of those that never changed."""

    __slots__ = ("_current", "_name")
    kind = "builtin"

    def __init__(self, name: str, current: SugaredValue) -> None:
        self._name, self._current = name, current

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        functions = _functions(self._name)
        try:
            index, matched = match_schemas(b.graph, [f.schema for f in functions], Call(args, kwargs, None, range))
        except CompileError:
            return self._current.call(b, args, kwargs, range)
        return SimpleValue(inline_graph(b.graph, functions[index].graph, matched.inputs)[0])
