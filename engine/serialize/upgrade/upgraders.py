"""Operators whose meaning has changed since older archives: the present form of their calls.

In: an operator's name and the version of the archive that calls it.  Out: the compiled form of its call:
the body of a function (an upgrader) that does with today's operators what the operator did then.  So `torch.div` of two
integer tensors still divides without a rest in an archive of version 3, and is saved again as what it does.  The nodes
remember the call that they stand for: `rewrites_in` tells which calls of a graph were rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from engine.frontend.compilation.compile import compile_source
from engine.frontend.matching.schema_match import Actual, Call, match_schemas
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import BuiltinFunction, SimpleValue
from engine.ir.clone import inline_graph
from engine.ir.graph import Graph, InlinedFrom, Value
from engine.ir.unit import Function
from engine.lang.errors import CompileError
from engine.lang.schema import FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import NUMBER
from engine.passes.pipeline import find_pass
from engine.serialize.upgrade.earlier import EARLIER
from engine.serialize.upgrade.versions import NEWEST_READ


class Upgrade(NamedTuple):
    """For archives below version `below`: the overloads, as TorchScript text."""

    below: int
    text: str


_OPTIONS: Final = (
    "dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None, "
    "pin_memory: Optional[bool]=None"
)
_PASS: Final = "dtype=dtype, layout=layout, device=device, pin_memory=pin_memory"
_DIV: Final = """
def div_Tensor_0_3(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")
def div_Scalar_0_3(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")
def div_out_0_3(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
        return torch.div(self, other, out=out)
    return torch.div(self, other, rounding_mode="trunc", out=out)
"""
_DIV_: Final = """
def div__Tensor_0_3(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div_(self, other)
    return torch.div_(self, other, rounding_mode="trunc")
def div__Scalar_0_3(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div_(self, other)
    return torch.div_(self, other, rounding_mode="trunc")
"""
_FULL: Final = f"""
def full_0_4(size: List[int], fill_value: number, *, {_OPTIONS}) -> Tensor:
    if dtype is None:
        value = float(fill_value)
    else:
        value = fill_value
    return torch.full(size, value, {_PASS})
"""
_LINSPACE: Final = f"""
def linspace_0_7(start: number, end: number, steps: Optional[int]=None, *, {_OPTIONS}) -> Tensor:
    if steps is None:
        return torch.linspace(start, end, 100, {_PASS})
    return torch.linspace(start, end, steps, {_PASS})
def linspace_out_0_7(start: number, end: number, steps: Optional[int]=None, *, out: Tensor) -> Tensor:
    if steps is None:
        return torch.linspace(start, end, 100, out=out)
    return torch.linspace(start, end, steps, out=out)
"""
_LOGSPACE: Final = f"""
def logspace_0_8(start: number, end: number, steps: Optional[int]=None, base: float=10., *, {_OPTIONS}) -> Tensor:
    if steps is None:
        return torch.logspace(start, end, 100, base, {_PASS})
    return torch.logspace(start, end, steps, base, {_PASS})
def logspace_out_0_8(
    start: number, end: number, steps: Optional[int]=None, base: float=10., *, out: Tensor
) -> Tensor:
    if steps is None:
        return torch.logspace(start, end, 100, base, out=out)
    return torch.logspace(start, end, steps, base, out=out)
"""
_GELU: Final = """
def gelu_0_9(self: Tensor) -> Tensor:
    return torch.gelu(self, approximate="none")
def gelu_out_0_9(self: Tensor, *, out: Tensor) -> Tensor:
    return torch.gelu(self, approximate="none", out=out)
"""

UPGRADES: Final[dict[str, Upgrade]] = {
    "div": Upgrade(4, _DIV), "div_": Upgrade(4, _DIV_), "full": Upgrade(5, _FULL), "linspace": Upgrade(8, _LINSPACE),
    "logspace": Upgrade(9, _LOGSPACE), "gelu": Upgrade(10, _GELU),
    **{name: Upgrade(NEWEST_READ + 1, text) for name, text in EARLIER.items()},
}  # fmt: skip


class Added(NamedTuple):
    """An upgrade that a program adds: for archives below version `below`, calls of that schema are the upgrader."""

    below: int
    upgrader: str
    schema: FunctionSchema


ADDED: Final[dict[str, list[Added]]] = {}
"""Operator -> its added upgrades."""
ADDED_GRAPHS: Final[dict[str, Graph]] = {}
"""Added upgraders, by their names."""


class UpgradedCall(NamedTuple):
    """One call of an old archive that compiles to something else today: which operator, by which upgrader, where."""

    operator: str
    upgrader: str
    range: SourceRange | None

    def __str__(self) -> str:
        """`aten::div is done by div_Tensor_0_3 (code/__torch__.py:6)`."""
        return f"{self.operator} is done by {self.upgrader}" + (f" ({self.place})" if self.range else "")

    @property
    def place(self) -> str:
        """`code/__torch__.py:6`, "" where that is not known."""
        return f"{self.range.filename}:{self.range.line}" if self.range else ""


def operator_as_of(version: int, name: str) -> SugaredValue:
    """The meaning of `torch.name` in an archive of that version."""
    current = BuiltinFunction(f"aten::{name}")
    functions = _added(version, name)
    upgrade = UPGRADES.get(name)
    if upgrade is not None and version < upgrade.below:
        functions += _functions(name)
    return _Upgraded(functions, current) if functions else current


def _added(version: int, name: str) -> tuple[Function, ...]:
    return tuple(
        Function(entry.upgrader, _graph=ADDED_GRAPHS[entry.upgrader], _schema=entry.schema)
        for entry in ADDED.get(name, ())
        if version < entry.below and entry.upgrader in ADDED_GRAPHS
    )


def rewrites_in(graph: Graph) -> list[UpgradedCall]:
    """The calls of the graph that were rewritten when it was read, in order."""
    inlined = (call for node in graph.all_nodes() for call in node.inlined_from if call.function in upgraders())
    calls = dict.fromkeys((call.function, call.range) for call in inlined)
    return [UpgradedCall(f"aten::{upgraders()[function]}", function, range) for function, range in calls]


@cache
def upgraders() -> dict[str, str]:
    """The upgraders, each with the name of its operator."""
    return {function.name: name for name in UPGRADES for function in _functions(name)}


@cache
def _functions(name: str) -> tuple[Function, ...]:
    """The upgraders of an operator; each is a source of its own, so that the ranges of its nodes name it."""
    return tuple(_compiled(f"def {text}") for text in UPGRADES[name].text.split("\ndef ")[1:])


@cache
def _compiled(text: str) -> Function:
    name = text[len("def ") : text.index("(")]
    function = compile_source(text, filename=name, strict=False).functions[name]
    find_pass("peephole")(function.graph)
    return function


def _fitting(upgrader: Function, inputs: Sequence[Value]) -> Function:
    """The upgrader specialised for arguments of these types: its tests of a number's type are decided now.

    Otherwise a reader of the saved code would answer it, and write other code.
    """
    source = _source_of(upgrader) if upgrader.name in upgraders() else ""
    if "isinstance" not in source:
        return upgrader
    for argument, value in zip(upgrader.schema.arguments, inputs, strict=True):
        if argument.type is NUMBER:
            source = source.replace(f"{argument.name}: number", f"{argument.name}: {value.type.annotation_str}")
    return _compiled(source)


def _source_of(upgrader: Function) -> str:
    return next(node.range.source.text for node in upgrader.graph.all_nodes() if node.range is not None)


def upgrader_graphs() -> dict[str, Graph]:
    """The graph of every upgrader, by its name, made of the operator, the overload and the versions it is for."""
    return {function.name: function.graph for name in UPGRADES for function in _functions(name)}


class _Upgraded(SugaredValue):
    """An operator of an older version; a call that fits no changed overload is one of the present operator."""

    __slots__ = ("_current", "_functions")
    kind = "builtin"

    def __init__(self, functions: tuple[Function, ...], current: SugaredValue) -> None:
        self._functions, self._current = functions, current

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        functions = self._functions
        try:
            index, matched = match_schemas(b.graph, [f.schema for f in functions], Call(args, kwargs, None, range))
        except CompileError:
            return self._current.call(b, args, kwargs, range)
        upgrader = _fitting(functions[index], matched.inputs)
        call = InlinedFrom(upgrader.name, range)
        return SimpleValue(inline_graph(b.graph, upgrader.graph, matched.inputs, call)[0])
