"""Building the graph of one function.

In: operators by name, arguments, constants.  Out: nodes in the function's graph.  `call_operator` chooses
the overload and knows the operators that are themselves TorchScript; `SugaredValue`s and the emitter
build everything through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.aten.dispatch import op
from engine.frontend import library
from engine.frontend.convert import make_tuple
from engine.frontend.overload_order import tried
from engine.frontend.schema_match import Actual, Call, Matched, match_schemas
from engine.ir.clone import inline_graph
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.unit import CompilationUnit, Function
from engine.lang.errors import CompileError, Frame, did_you_mean
from engine.lang.schema import FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.spelling import nearest
from engine.lang.types import Callee, ClassType, FunctionType, ListType, TupleType, Type

if TYPE_CHECKING:
    from engine.frontend.sugar import SugaredValue

HIDDEN: Final = frozenset({"aten::view.dtype"})
"""Overloads that programs cannot call: `x.view(3)` is always of sizes."""
Written = Callable[[str], Sequence[Function]]
"""Gives the functions, written in TorchScript, that are further overloads of an operator."""


Library = Callable[[str], "SugaredValue | None"]
"""Finds what of the torch namespace is written in TorchScript, by dotted name."""


@dataclass(eq=False, slots=True)
class Builder:
    """A graph under construction, and the unit that its function belongs to."""

    unit: CompilationUnit
    written: Written
    library: Library
    graph: Graph = field(default_factory=Graph)
    initializes: ClassType | None = None
    """The class whose `__init__` this is: assigning an attribute that it does not have adds it."""

    def constant(self, value: Any, range: SourceRange | None = None, type: Type | None = None) -> Value:
        """An ordinary constant at the insert point."""
        return insert_constant(self.graph, value, type, range)

    def literal(self, value: float | complex, range: SourceRange) -> Value:
        """The constant for a number; what compiles a function keeps one for each value."""
        return self.constant(value, range)

    def node(self, kind: str, inputs: Iterable[Value], types: Sequence[Type], range: SourceRange | None = None) -> Node:
        """A node at the insert point, as given: nothing is matched or converted."""
        node = self.graph.append(kind, inputs, types)
        node.range = range or node.range
        return node

    def value(self, kind: str, inputs: Iterable[Value], type: Type, range: SourceRange | None = None) -> Value:
        """The only output of a node at the insert point, as given."""
        return self.node(kind, inputs, [type], range).output

    def cast(self, value: Value, type: Type) -> Value:
        """The value under another type, which the program has made sure of."""
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
        if not op.overloads(name):
            name = op.first_name(name)
        entries = [entry for entry in tried(name) if entry.schema.qualified_name not in HIDDEN]
        schemas = [entry.schema for entry in entries]
        written = self.written(name)
        if not schemas and not written:
            raise unknown_operator(name, call.range)
        index, matched = match_schemas(self.graph, [*schemas, *(each.schema for each in written)], call)
        if index >= len(entries):
            return inline_graph(self.graph, written[index - len(entries)].graph, matched.inputs)[0]
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
    """The schema of what is called, which may have to be compiled for it.

    Raises CompileError, which then tells that this call is why it was compiled.
    """
    try:
        schema: FunctionSchema = callee.schema
    except CompileError as error:
        if range is not None:
            error.called_from(Frame(callee.name, range))
            error.range = error.range or range
        raise
    return schema


def unknown_operator(name: str, range: SourceRange | None) -> CompileError:
    """The error for a name that no operator has."""
    text = f"Unknown builtin op: {name}.\n"
    near = nearest(name, op.names(), 5)
    last = name.rpartition("::")[2]
    hints = did_you_mean(last, [*library.names(), *(each.rpartition("::")[2] for each in op.names())])
    if not near:
        text += f"Could not find any similar ops to {name}. This op may not exist or may not be supported yet"
        return CompileError(text, range, hints=hints)
    text += "Here are some suggestions: \n" + "".join(f"\t{each}\n" for each in near) + "\nThe original call is"
    return CompileError(text, range, hints=hints)
