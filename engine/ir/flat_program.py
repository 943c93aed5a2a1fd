"""A function, and all that it calls, as plain data: for programs that are in no archive.

In: a function.  Out: a `WrittenProgram`: numbers for what the graphs refer to, and the graphs and classes themselves as
data (`sent`), by which the program is known (`key`).  In another process `received` makes a program of that data whose
graphs are equal, whose functions call each other as they did, and whose numbers are the same; texts stay behind.

    program    functions, classes and other named types, tensors; the first function is the one that was asked for
    function   name, graph
    type       kind, then for a class: name, whether it is a module, attributes, methods that are called
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.ir.flat import NotPlain, flat_type, flatten, is_plain_data, type_of_flat, unflatten
from engine.ir.graph import Node
from engine.ir.match import callee_of
from engine.ir.unit import Function
from engine.lang.errors import CompileError
from engine.lang.interpreter_settings import deep_recursion
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.source import Source
from engine.lang.types import ClassAttribute, ClassType, EnumType, FunctionType, InterfaceType, TupleType, Type

KIND: Final = "functions"
"""The kind of program that `received` opens."""
SAME_IN_ALL: Final = 0
"""The version of marshal that writes equal values the same; later ones tell what is shared and interned."""
MANY: Final = 1 << 20
"""Bytes of constants from which on a program is none."""
Data = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class _Numbered:
    """Things by number, in the order in which they were first named, until no more are taken."""

    things: list[Any] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    is_complete: bool = False

    def number(self, thing: Any) -> int:
        found = self.numbers.get(id(thing))
        if found is None:
            if self.is_complete:
                raise NotPlain(type(thing).__name__)
            found = self.numbers[id(thing)] = len(self.things)
            self.things.append(thing)
        return found

    def thing(self, number: Any) -> Any:
        if not 0 <= int(number) < len(self.things):
            raise NotPlain(str(number))
        return self.things[int(number)]


@dataclass(eq=False, slots=True)
class _Names:
    """Numbers as the names of what graphs refer to."""

    functions: _Numbered = field(default_factory=_Numbered)
    types: _Numbered = field(default_factory=_Numbered)
    tensors: _Numbered = field(default_factory=_Numbered)
    sources: _Numbered = field(default_factory=_Numbered)

    def complete(self) -> None:
        """Name nothing more from here on."""
        for each in (self.functions, self.types, self.tensors, self.sources):
            each.is_complete = True

    def name_of_source(self, source: Source) -> str:
        return str(self.sources.number(source))

    def source(self, name: str) -> Source:
        found: Source = self.sources.thing(name)
        return found

    def name_of_type(self, type: Type) -> str:
        return str(self.types.number(type))

    def type(self, name: str) -> Type:
        found: Type = self.types.thing(name)
        return found

    def name_of_function(self, type: FunctionType) -> str:
        if not isinstance(type.function, Function):
            raise NotPlain(type.function.name)
        return str(self.functions.number(type.function))

    def function(self, name: str) -> FunctionType:
        return FunctionType(self.functions.thing(name))

    def name_of_tensor(self, tensor: Tensor) -> int:
        return self.tensors.number(tensor)

    def tensor(self, name: int) -> Tensor:
        found: Tensor = self.tensors.thing(name)
        return found


@dataclass(eq=False, slots=True)
class WrittenProgram(_Names):
    """A program, its numbers, and itself as data."""

    data: Data = ()
    key: str = ""

    def open(self) -> None:
        """Nothing: it is written anew for each plan."""

    def sent(self) -> Data:
        return KIND, *self.data


def written(function: Function) -> WrittenProgram:
    """The program of a function.  Raises NotPlain for what is no plain data."""
    names = WrittenProgram()
    names.functions.number(function)
    functions, types, methods = list[Data](), list[Data](), dict[int, dict[str, int]]()
    with deep_recursion():
        while len(functions) < len(names.functions.things):
            functions.append(_function(names.functions.things[len(functions)], names, methods))
        while len(types) < len(names.types.things):
            types.append(_type(names.types.things[len(types)], names))
    called = tuple((number, tuple(found.items())) for number, found in methods.items())
    names.complete()
    tensors = tuple(flat_tensors(names.tensors.things))
    names.data = tuple(functions), tuple(types), called, tensors, len(names.sources.things)
    try:
        names.key = hashlib.sha256(marshal.dumps(names.data, SAME_IN_ALL)).hexdigest()
    except ValueError as error:  # nested too deeply for marshal
        raise NotPlain(str(error)) from error
    return names


def _function(function: Function, names: _Names, methods: dict[int, dict[str, int]]) -> Data:
    """The name and the graph; methods that it calls are noted by their classes.  One that does not compile has none."""
    graph = function.body
    if graph is None:
        return function.qualname, None
    flat = flatten(graph, names)
    for node in graph.all_nodes():
        if node.kind == "prim::CallMethod" and isinstance(node.inputs[0].type, ClassType):
            number, name = _method(node, names)
            methods.setdefault(int(names.name_of_type(node.inputs[0].type)), {})[name] = number
    return function.qualname, flat


def _method(node: Node, names: _Names) -> tuple[int, str]:
    callee = callee_of(node)
    if callee is None:
        raise NotPlain(f"the method {node.attr('name')}")
    return names.functions.number(callee), node.attr("name")


def _type(type: Type, names: _Names) -> Data:
    if isinstance(type, ClassType):
        attributes = tuple((each.name, flat_type(each.type, names), each.kind) for each in type.attributes)
        return "class", type.qualname, type.is_module, attributes, type.is_frozen
    if isinstance(type, InterfaceType):
        return "interface", type.qualname, type.is_module
    if isinstance(type, EnumType) and all(is_plain_data(value) for _, value in type.members):
        return "enum", type.qualname, flat_type(type.value_type, names), type.members
    if isinstance(type, TupleType) and is_plain_data(type.defaults):
        elements = tuple(flat_type(each, names) for each in type.elements)
        return "tuple", elements, type.name, type.fields, type.defaults
    raise NotPlain(str(type))


def flat_tensors(tensors: Sequence[Any]) -> list[Data]:
    """Constants as plain data.  Raises NotPlain for others than dense tensors of the CPU, and where they are large."""
    room, found = MANY, list[Data]()
    for each in tensors:
        if not isinstance(each, Tensor) or type(array := each.array) is not np.ndarray:
            raise NotPlain("a constant")
        room -= array.nbytes
        if array.dtype not in xp.FROM_NUMPY or not array.flags.c_contiguous or room < 0:
            raise NotPlain("a constant")
        found.append((xp.FROM_NUMPY[array.dtype].number, array.shape, array.tobytes(), each.requires_grad))
    return found


# ------------------------------------------------------------------ in another process


def tensor_of(number: int, shape: tuple[int, ...], data: bytes, requires_grad: bool) -> Tensor:
    """A constant of plain data: the number of its dtype, its sizes, its elements in order."""
    array = np.frombuffer(data, xp.numpy_dtype(number)).reshape(shape).copy()
    return Tensor(array, requires_grad=requires_grad)


@dataclass(eq=False, slots=True)
class ReceivedProgram(_Names):
    """A program that was made of data."""

    key: str = ""

    def open(self) -> None:
        """Nothing: nobody has its graphs in hand."""

    def sent(self) -> Data:
        raise NotPlain("a program of another process")


def received(
    key: str,
    functions: Sequence[Data],
    types: Sequence[Data],
    called: Sequence[Data],
    tensors: Sequence[Data],
    texts: int,
) -> ReceivedProgram:
    """The program of that data, and of that key."""
    program = ReceivedProgram(key=key)
    program.sources.things = [Source("", f"<text {number}>") for number in range(texts)]
    program.tensors.things = [tensor_of(*each) for each in tensors]
    program.functions.things = [_declared(name, flat, program) for name, flat in functions]
    program.types = _Types(things=[_begun(*each) for each in types], data=types, names=program)
    for number, (kind, *facts) in enumerate(types):
        found = program.types.thing(number)
        if kind == "class":
            found.attributes += [
                ClassAttribute(name, type_of_flat(flat, program), part) for name, flat, part in facts[2]
            ]
    for number, methods in called:
        program.types.thing(number).methods.update((name, program.functions.thing(index)) for name, index in methods)
    for each in (program.functions, program.types, program.tensors, program.sources):
        each.numbers = {id(thing): number for number, thing in enumerate(each.things)}
    program.complete()
    return program


def function_of(program: ReceivedProgram, qualname: str) -> Function:
    """The function that was asked for."""
    found: Function = program.functions.thing(0)
    return found


def _declared(qualname: str, flat: Data | None, program: ReceivedProgram) -> Function:
    """A function whose graph is made when it is needed; of one that did not compile the same is said."""

    def create(function: Function) -> None:
        if flat is None:
            raise CompileError(f"'{qualname}' does not compile")
        with deep_recursion():
            graph = unflatten(flat, program)
        arguments = tuple(Argument(value.debug_name, value.type) for value in graph.inputs)
        returns = tuple(Argument("", value.type) for value in graph.outputs)
        function.define(FunctionSchema(function.name, "", arguments, returns), graph)

    return Function(qualname, create, program=program)


def _begun(kind: str, name: Any, *facts: Any) -> Type | None:
    """A class that others may refer to before it is complete; None of types that are made of their parts."""
    if kind == "class":
        return ClassType(name, facts[0], is_frozen=facts[2])
    return InterfaceType(name, {}, facts[0]) if kind == "interface" else None


@dataclass(eq=False, slots=True)
class _Types(_Numbered):
    """Types that are made when one refers to them."""

    data: Sequence[Data] = ()
    names: _Names | None = None

    def thing(self, number: Any) -> Any:
        found = _Numbered.thing(self, number)
        if found is None:
            kind, *facts = self.data[int(number)]
            found = self.things[int(number)] = _MADE_OF_PARTS[kind](*facts, self.names)
        return found


def _enum(qualname: str, value: Any, members: Data, names: _Names) -> EnumType:
    return EnumType(qualname, type_of_flat(value, names), tuple(tuple(each) for each in members))


def _tuple(elements: Data, name: str, fields: tuple[str, ...], defaults: Data, names: _Names) -> TupleType:
    return TupleType(tuple(type_of_flat(each, names) for each in elements), name, fields, defaults)


_MADE_OF_PARTS: Final[dict[str, Callable[..., Type]]] = {"enum": _enum, "tuple": _tuple}
