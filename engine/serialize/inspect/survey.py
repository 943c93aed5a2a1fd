"""A program looked at without being run: its classes, functions, operators and loops.

In: the path of an archive.  Out: a `Survey`.  The module's state is read, methods are compiled one by one, and one that
does not compile is noted; code that would run while loading (`__setstate__`) does not.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import each_module, every_place, joined
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.ir.unit import Function
from engine.lang.custom_classes import PREFIX, find, is_custom, is_foreign, unknown_calls
from engine.lang.errors import ArchiveError, EngineError
from engine.lang.records import dataclass
from engine.lang.scalars import device
from engine.lang.types import ClassType, FunctionType, Type, walk
from engine.serialize.archive import load_archive
from engine.serialize.code.opaque import is_opaque
from engine.serialize.identify.identify import Identity, explained, identify
from engine.serialize.mobile.file import open_program
from engine.serialize.pickling.unpickle import NOT_RUN
from engine.serialize.upgrade.upgraders import UpgradedCall, rewrites_in

_CALLS: Final = re.compile(r"(?<![\w.\"'])(?:ops\.(\w+)|(torch))\.(\w+)\(")
_MADE: Final = re.compile(rf"({re.escape(PREFIX)}\w+\.\w+)(?=\.__new__\(|\()")
"""Classes of extensions that code makes objects of."""
FOREVER: Final = (1 << 63) - 1
MOST_REPEATED: Final = 64 << 20
"""A tensor may repeat the numbers of its storage; it may be so many bytes larger than that."""


@dataclass(frozen=True, slots=True)
class LoopSite:
    """A loop of a function: the way its number of rounds is determined, and its place in the author's text."""

    function: str
    kind: str
    """"counted" (a number in the code), "data" (a value tells), "while" (a condition), "endless"."""
    place: str


@dataclass(slots=True, eq=False)
class Survey:
    """See the module's top; `records` are the file's records with their sizes, `filled` classes with `__setstate__`."""

    identity: Identity
    module: Object
    records: dict[str, int]
    code: dict[str, str] = field(default_factory=dict)
    classes: list[ClassType] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)

    def modules(self) -> Iterator[tuple[str, Object]]:
        """The modules by dotted path, the outermost first, whose path is ""."""
        return every_place(self.module)

    def tensors(self) -> Iterator[tuple[str, str, Tensor]]:
        """Dotted path, kind ("parameter", "buffer", "attribute") and tensor of every attribute that is one.

        Constants of the code, in which frozen programs have their weights, follow as `constants.0` and so on.
        """
        for path, module in self.modules():
            for attribute, value in zip(module.type.attributes, module.slots, strict=False):
                if isinstance(value, Tensor):
                    yield joined(path, attribute.name), attribute.kind, value
        for number, tensor in enumerate(self._constants()):
            yield f"constants.{number}", "constant", tensor

    def _constants(self) -> list[Tensor]:
        """The tensors that stand in the code, each once."""
        found: dict[tuple[object, ...], Tensor] = {}
        for function in self.functions:
            for node in function.graph.find_all_nodes("prim::Constant"):
                value = constant_value(node.output)
                if isinstance(value, Tensor):
                    found.setdefault((id(value.memory.owner), value.memory.offset_of(value.array), value.shape), value)
        return list(found.values())

    def operators(self) -> Counter[str]:
        """Number of calls of each operator, by its name with overload; opaque ones by their name alone."""
        found: Counter[str] = Counter()
        for function in self.functions:
            found.update(filter(None, map(operator_of, function.graph.all_nodes())))
        return found

    def missing(self) -> Counter[str]:
        """The operators that are not in the table, and the unknown classes with their methods, with counts."""
        found: Counter[str] = Counter()
        for function in self.functions:
            found.update(node.kind for node in function.graph.all_nodes() if is_opaque(node))
            made = (node.output.type for node in function.graph.find_all_nodes("prim::CreateObject"))
            found.update(each.qualname for each in made if isinstance(each, ClassType) and is_foreign(each))
        # What does not compile has no graph: its text tells.
        named = Counter(_named(self.code.values())) if self.broken else Counter()
        for each in self.classes:
            found.update(unknown_calls(each))
        return found | named

    def rewrites(self) -> list[UpgradedCall]:
        """The calls of old operators, each with what does its work today and the author's line, if it is known."""
        found = [each for function in self.functions for each in rewrites_in(function.graph)]
        return list(dict.fromkeys(each._replace(range=each.range and each.range.original()) for each in found))

    def named_devices(self) -> list[str]:
        """The devices other than the CPU that stand in the code, each with its place: `code/__torch__.py:6 cuda`."""
        constants = (
            (node, constant_value(node.output))
            for function in self.functions
            for node in function.graph.find_all_nodes("prim::Constant")
        )
        found = [(node, value) for node, value in constants if isinstance(value, device) and value.type != "cpu"]
        return list(dict.fromkeys(f"{place_of(node)} {value}".strip() for node, value in found))

    def loops(self) -> list[LoopSite]:
        return [
            LoopSite(function.qualname, _loop_kind(node), place_of(node))
            for function in self.functions
            for node in function.graph.find_all_nodes("prim::Loop")
        ]


def numbers_of(path: str, tensor: Tensor) -> Array:
    """The tensor's array.  Raises ArchiveError where a few numbers are repeated beyond all that the file holds."""
    size = tensor.numel() * tensor.dtype.itemsize
    if size > tensor.memory.owner.size * tensor.dtype.itemsize + MOST_REPEATED:
        raise ArchiveError(f"'{path}' is a tensor of {size:,} bytes, which is more than the file holds")
    return tensor.array


def survey(path: str | os.PathLike[str]) -> Survey:
    """Look at the archive.  Raises ArchiveError, which says what the file is when it is no program."""
    found = identify(path)
    if not found.is_program:
        raise explained(ArchiveError(f"'{found.path}' holds no program"), path)
    filled: list[str] = []

    def note(function: Function, arguments: list[Any]) -> object:
        filled.append(arguments[0].type.qualname)
        return NOT_RUN

    module = load_archive(path, map_location="cpu", run=note, lazy=True)
    container = open_program(path)
    try:
        records = {name: container.size(name) for name in container.names()}
        code = {n: container.read(n).decode(errors="replace") for n in records if n.endswith(".py")}
    finally:
        container.close()
    return walked(Survey(found, module, records, code, filled=sorted(set(filled))))


def walked(result: Survey) -> Survey:
    """The survey, with the classes and functions that can be reached from its module."""
    _SurveyWalk(result).types([each.type for _, each in reversed(list(each_module(result.module)))])
    return result


def operator_of(node: Node) -> str | None:
    """The operator's name with its overload; None for a node that is part of the language."""
    if is_opaque(node):
        return node.kind
    if not table.overloads(node.kind):
        return None
    found = op_of(node)
    return found.qualified_name if found is not None else node.kind


def place_of(node: Node) -> str:
    """The node's place in the author's source: `model.py:12`."""
    if node.range is None:
        return ""
    range = node.range.original()
    return f"{range.filename}:{range.line}"


@dataclass(slots=True, eq=False)
class _SurveyWalk:
    """Everything that can be reached from the module's class."""

    survey: Survey
    _seen: set[int] = field(default_factory=set)

    def types(self, waiting: list[Type]) -> None:
        while waiting:
            for part in walk(waiting.pop()):
                if isinstance(part, ClassType) and self._is_new(part):
                    self.survey.classes.append(part)
                    waiting += (attribute.type for attribute in part.attributes)
                    callees = () if is_custom(part) else part.methods.values()
                    for callee in (*callees, *part.forward_hooks, *part.forward_pre_hooks):
                        waiting += self._function(callee)
                elif isinstance(part, FunctionType):
                    waiting += self._function(part.function)

    def _function(self, callee: Any) -> Sequence[Type]:
        if not isinstance(callee, Function) or not self._is_new(callee):
            return ()
        try:
            graph = callee.graph
        except EngineError as error:
            self.survey.broken.append((callee.qualname, str(error)))
            return ()
        self.survey.functions.append(callee)
        return _types_in(graph)

    def _is_new(self, thing: object) -> bool:
        new = id(thing) not in self._seen
        self._seen.add(id(thing))
        return new


def _types_in(graph: Graph) -> list[Type]:
    """The classes and functions that the graph's values have."""
    found: dict[int, Type] = {}
    for node in graph.all_nodes():
        for value in node.outputs:
            if value.type.contained() or isinstance(value.type, (ClassType, FunctionType)):
                found[id(value.type)] = value.type
    return list(found.values())


def _loop_kind(node: Node) -> str:
    count, condition = (constant_value(value) for value in node.inputs[:2])
    again = constant_value(node.blocks[0].outputs[0])
    if condition is not True or again is not True:
        return "while"
    if count is NOT_CONSTANT:
        return "data"
    return "endless" if count == FOREVER else "counted"


def _named(texts: Any) -> Iterator[str]:
    """The operators that code names and the table does not have."""
    for text in texts:
        for namespace, _, name in _CALLS.findall(text):
            full = f"{namespace or 'aten'}::{name}"
            if namespace not in ("prim", "torch") and not table.overloads(full) and full not in _FORMS:
                yield full
        yield from (name for name in _MADE.findall(text) if find(name) is None)


_FORMS: Final = frozenset({"aten::device", "aten::fork", "aten::autograd"})
"""Words of the language that stand behind `torch.`."""
