"""Sugared values, and the builder that they put nodes into a graph with.

In: expressions like `torch`, `self.weight` or `x.size`, most of which have no value in the graph.  Out: objects that
define attribute access, calls, iteration and unpacking of what the expression stands for; a kind that does not define
one of them refuses it by name.  The kinds are in the other modules here and in `engine.frontend.names`.

`Builder` is the other half: the graph under construction.  Its `call_operator` chooses the overload and knows the
operators that are themselves written in TorchScript.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, ClassVar, Final

from engine.aten.dispatch import table
from engine.frontend.diagnostics.hints import value_hints
from engine.frontend.matching.convert import make_tuple
from engine.frontend.matching.overload_order import ordered_overloads
from engine.frontend.matching.schema_match import Actual, Call, Matched, match_schemas
from engine.frontend.standard_library import library
from engine.ir.clone import inline_graph
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.unit import CompilationUnit, Function
from engine.lang.errors import CallFrame, CompileError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.schema import FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.spelling import nearest
from engine.lang.types import Callee, ClassType, FunctionType, ListType, TupleType, Type

HIDDEN: Final = frozenset({"aten::view.dtype"})
"""Overloads that programs cannot call: the argument of `x.view(3)` is always a size."""
WrittenOverloads = Callable[[str], Sequence[Function]]
"""Operator -> the functions, written in TorchScript, that are further overloads of it."""
Library = Callable[[str], "SugaredValue | None"]
"""Dotted name -> the sugared value for a function or class of the torch namespace that is written in TorchScript."""


@dataclass(eq=False, slots=True)
class Builder:
    """A graph under construction, and the unit that its function belongs to."""

    unit: CompilationUnit
    written: WrittenOverloads
    library: Library
    graph: Graph = field(default_factory=Graph)
    initializes: ClassType | None = None
    """The class whose `__init__` this is: assigning an attribute that it does not have adds it."""

    def constant(self, value: Any, range: SourceRange | None = None, type: Type | None = None) -> Value:
        """An ordinary constant at the insert point."""
        return insert_constant(self.graph, value, type, range)

    def literal(self, value: float | complex, range: SourceRange) -> Value:
        """The constant for a number; the emitter of a function keeps one for each value."""
        return self.constant(value, range)

    def node(self, kind: str, inputs: Iterable[Value], types: Sequence[Type], range: SourceRange | None = None) -> Node:
        """A node at the insert point, without matching or conversions."""
        node = self.graph.append(kind, inputs, types)
        node.range = range or node.range
        return node

    def value(self, kind: str, inputs: Iterable[Value], type: Type, range: SourceRange | None = None) -> Value:
        """The only output of a node at the insert point, without matching or conversions."""
        return self.node(kind, inputs, [type], range).output

    def cast(self, value: Value, type: Type) -> Value:
        """The value under another type, which the program has checked."""
        return self.value("prim::unchecked_cast", [value], type)

    def list(self, values: Sequence[Value], element: Type) -> Value:
        return self.value("prim::ListConstruct", values, ListType(element))

    def tuple(self, values: Sequence[Value], type: TupleType | None = None) -> Value:
        return make_tuple(self.graph, [*values], type)

    def insert(self, name: str, args: Sequence[Value], range: SourceRange | None = None, /, **kwargs: Value) -> Value:
        """Call an operator with plain values."""
        named = [Actual(value, range, key) for key, value in kwargs.items()]
        return self.call_operator(name, Call([Actual(value, range) for value in args], named, None, range))

    def call_operator(self, name: str, call: Call) -> Value:
        """Call the overload of `aten::name` that fits.  Raises CompileError when there is none."""
        if not table.overloads(name):
            name = table.first_name(name)
        entries = [entry for entry in ordered_overloads(name) if entry.schema.qualified_name not in HIDDEN]
        schemas = [entry.schema for entry in entries]
        written = self.written(name)
        if not schemas and not written:
            raise unknown_operator(name, call.range)
        index, matched = match_schemas(self.graph, [*schemas, *(each.schema for each in written)], call)
        if index >= len(entries):
            body = written[index - len(entries)].graph
            return inline_graph(self.graph, body, matched.inputs, place=call.range)[0]
        node = self.node(name, matched.inputs, matched.return_types, call.range)
        node.op = entries[index]
        return self.packed(node.outputs, matched)

    def call_function(self, functions: Sequence[Function], call: Call) -> Value:
        """Call the function that fits (there are several only where one is overloaded)."""
        schemas = [schema_of(function, call.range) for function in functions]
        index, matched = match_schemas(self.graph, schemas, call)
        function = functions[index]
        target = self.constant(function, call.range, FunctionType(function))
        return self.value("prim::CallFunction", [target, *matched.inputs], matched.return_types[0], call.range)

    def call_method(self, name: str, schema: FunctionSchema, call: Call) -> Value:
        """Call a method; its object is the first argument of `call`."""
        _, matched = match_schemas(self.graph, [schema], call)
        node = self.node("prim::CallMethod", matched.inputs, matched.return_types[:1], call.range)
        return node.set_attr("name", name).output

    def packed(self, outputs: Sequence[Value], matched: Matched) -> Value:
        """The outputs as one value: several become a tuple, named where the schema names them."""
        if len(outputs) == 1:
            return outputs[0]
        names = matched.return_names
        types = tuple(value.type for value in outputs)
        return self.tuple(outputs, TupleType(types, None, names) if names and all(names) else None)


def schema_of(callee: Callee, range: SourceRange | None) -> FunctionSchema:
    """The schema of a callee, which is compiled if its text does not tell.

    Raises CompileError, with this call among its frames.
    """
    try:
        schema: FunctionSchema = callee.called_schema
    except CompileError as error:
        if range is not None:
            error.called_from(CallFrame(callee.name, range))
            error.range = error.range or range
        raise
    return schema


SIMILAR: Final = 2
"""Letters by which operators differ that the error for an unknown one lists, as PyTorch does."""


def unknown_operator(name: str, range: SourceRange | None) -> CompileError:
    """The error for an unknown operator."""
    text = f"Unknown builtin op: {name}.\n"
    near = nearest(name, table.names(), 5, most=SIMILAR)
    last = name.rpartition("::")[2]
    hints = did_you_mean(last, [*library.names(), *(each.rpartition("::")[2] for each in table.names())])
    if not near:
        text += f"Could not find any similar ops to {name}. This op may not exist or may not be currently "
        text += "supported in TorchScript"
        return CompileError(text, range, hints=hints)
    text += "Here are some suggestions: \n" + "".join(f"\t{each}\n" for each in near) + "\nThe original call is"
    return CompileError(text, range, hints=hints)


class SugaredValue:
    """Anything an expression can stand for.  Every method raises CompileError unless a kind defines it."""

    __slots__ = ()
    kind: ClassVar[str] = "value"

    def describe(self) -> str:
        """The value's description in error messages."""
        return self.kind

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        """As a first-class value."""
        raise CompileError(f"{self.describe()} cannot be used as a value", range, hints=value_hints(self.kind))

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        raise CompileError(f"attribute lookup is not defined on {self.describe()}", range)

    def set_attr(self, b: Builder, name: str, value: Value, range: SourceRange) -> None:
        raise CompileError(f"attribute assignment is not defined on {self.describe()}", range)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        raise CompileError(f"cannot call a {self.describe()}", range)

    def as_tuple(self, b: Builder, size: int | None, range: SourceRange) -> list[SugaredValue]:
        """The parts, for unpacking into `size` names (None: any number)."""
        raise CompileError(f"{self.describe()} cannot be used as a tuple", range)

    def iterate(self, b: Builder, range: SourceRange) -> SugaredIterable:
        """The iterable of a loop over this."""
        raise CompileError(f"{self.describe()} cannot be used as an iterable", range)

    def item(self, b: Builder, index: Value, hint: Type | None, range: SourceRange) -> SugaredValue:
        """`self[index]` for an index that is one value."""
        raise CompileError(f"'{self.describe()}' object is not subscriptable", range)


class SugaredIterable(SugaredValue):
    """Something that a loop goes through: it has a length, and an item for every index.

    `static_length` is the length where it is known while compiling; a loop over parts of different
    types is unrolled then.
    """

    __slots__ = ()
    static_length: int | None = None

    def length(self, b: Builder, range: SourceRange) -> Value:
        raise NotImplementedError

    def element(self, b: Builder, index: Value, range: SourceRange) -> SugaredValue:
        """The item number `index`."""
        raise NotImplementedError

    def static_element(self, b: Builder, index: int, range: SourceRange) -> SugaredValue:
        """The item number `index` of an unrolled loop."""
        raise NotImplementedError

    def base_iterables(self) -> list[SugaredIterable]:
        """The iterables whose lengths bound the loop."""
        return [self]

    def iterate(self, b: Builder, range: SourceRange) -> SugaredIterable:
        return self
