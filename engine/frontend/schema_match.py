"""Does a call fit a schema?

In: positional and keyword arguments, and one or several schemas.  Out: the values for every parameter of
the one that fits, converted and completed with defaults, and the types it returns.  Schemas are tried in
order, first as the arguments are, then with implicit conversions (a tensor as a number, a bool as an
int).  The graph changes only once a schema is found to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from engine.frontend.convert import Operand, convert, converted_type, is_convertible_to_list, unwrap_optional
from engine.frontend.type_variables import TypeVariables, evaluate, has_variables, match_variables
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Value
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.schema import NO_DEFAULT, Argument, FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import ANY, FLOAT, INT, TENSOR, ListType, OptionalType, TensorType, Type, UnionType, VarType


class Actual(NamedTuple):
    """An argument of a call: its value, where it stands, and its keyword."""

    value: Value
    range: SourceRange | None = None
    name: str = ""


class Matched(NamedTuple):
    """A call that fits: values for every parameter, the types and the field names of the results."""

    inputs: list[Value]
    return_types: tuple[Type, ...]
    return_names: tuple[str, ...]


@dataclass(slots=True)
class Call:
    """The arguments of one call; `self_value` goes to a parameter called `self`."""

    args: Sequence[Actual] = ()
    kwargs: Sequence[Actual] = ()
    self_value: Actual | None = None
    range: SourceRange | None = None


class _Default(NamedTuple):
    value: Any
    type: Type


class _Varargs(NamedTuple):
    element: Type
    values: list[_Slot]


class _Repeated(NamedTuple):
    value: Value
    times: int


class _Slot(NamedTuple):
    """One parameter's argument, and the type it is to be converted to."""

    source: Value | _Default | _Varargs | _Repeated
    type: Type


@dataclass(slots=True)
class _Attempt:
    """One try to fit a call to a schema.  `why` collects the reason of a failure, if it is wanted."""

    schema: FunctionSchema
    call: Call
    conversions: bool
    why: list[str] | None = None
    variables: TypeVariables = field(default_factory=dict)

    def fail(self, reason: str) -> None:
        if self.why is not None:
            self.why.append(reason)

    def slots(self) -> list[_Slot] | None:
        """An argument for each parameter, or None when the call does not fit."""
        args, used_self, keywords = self.call.args, self.call.self_value is None, {k.name: k for k in self.call.kwargs}
        used, found = 0, []
        for index, parameter in enumerate(self.schema.arguments):
            slot: _Slot | None
            if parameter.name == "self" and not used_self:
                assert self.call.self_value is not None
                used_self, slot = True, self.fit(parameter, self.call.self_value.value)
            elif not parameter.kwarg_only and used < len(args):
                if self.takes_the_rest(index, parameter, args[used].value):
                    slot, used = self.varargs(parameter, args[used:]), len(args)
                else:
                    slot, used = self.fit(parameter, args[used].value), used + 1
            elif parameter.name in keywords:
                slot = self.fit(parameter, keywords.pop(parameter.name).value)
            elif parameter.default is not NO_DEFAULT:
                slot = self.default(parameter)
            else:
                self.fail(f"Argument {parameter.name} not provided.")
                return None
            if slot is None:
                return None
            found.append(slot)
        if not used_self:
            self.fail("Provided self argument not used in schema.")
            return None
        return self.check_rest(found, used, keywords)

    def check_rest(self, found: list[_Slot], used: int, keywords: dict[str, Actual]) -> list[_Slot] | None:
        """Nothing may be left over, unless the schema takes any number of arguments."""
        args = self.call.args
        if self.schema.is_vararg:
            found += [_Slot(arg.value, arg.value.type) for arg in args[used:]]
        elif used < len(args):
            self.fail(f"Expected at most {used} arguments but found {len(args)} positional arguments.")
            return None
        for name in keywords:
            twice = self.schema.index_of(name) is not None
            self.fail(f"Keyword argument {name} " + ("specified twice." if twice else "unknown."))
            return None
        return found

    def takes_the_rest(self, index: int, parameter: Argument, value: Value) -> bool:
        """May the remaining arguments stand for one list, as in `x.view(2, 3)`?"""
        if not isinstance(parameter.type, ListType) or parameter.broadcast:
            return False
        rest = self.schema.arguments[index + 1 :]
        if (rest and not rest[0].kwarg_only) or isinstance(parameter.type.element, VarType):
            return False
        return not isinstance(value.type, ListType) and not is_convertible_to_list(value.type, parameter.type)

    def varargs(self, parameter: Argument, args: Sequence[Actual]) -> _Slot | None:
        assert isinstance(parameter.type, ListType)
        element = Argument("<varargs>", parameter.type.element)
        slots = [self.fit(element, arg.value) for arg in args]
        values = [slot for slot in slots if slot is not None]
        if len(values) < len(slots):
            return None
        return _Slot(_Varargs(element.type, values), parameter.type)

    def default(self, parameter: Argument) -> _Slot | None:
        wanted = parameter.type
        if has_variables(wanted):
            wanted = evaluate(wanted, self.variables) or wanted
        return _Slot(_Default(parameter.default, wanted), wanted)

    def fit(self, parameter: Argument, value: Value) -> _Slot | None:
        """The argument as the parameter wants it."""
        wanted, actual = parameter.type, value.type
        source: Value | _Repeated = value
        listed = unwrap_optional(wanted)
        if parameter.broadcast and isinstance(listed, ListType) and actual in (INT, FLOAT) and listed.element == actual:
            source, actual = _Repeated(value, parameter.broadcast), ListType(actual)
        if has_variables(wanted):
            wanted_or_none = self.concrete(parameter, actual)
            if wanted_or_none is None:
                return None
            wanted = wanted_or_none
        if isinstance(source, _Repeated):
            return _Slot(source, wanted)
        result = converted_type(Operand.of(value), wanted, self.conversions)
        if result.is_subtype_of(wanted):
            return _Slot(source, wanted)
        if self.why is not None:
            self.fail(mismatch(parameter, result))
        return None

    def concrete(self, parameter: Argument, actual: Type) -> Type | None:
        """The parameter's type with its type variables replaced by what this argument makes of them."""
        reason = match_variables(parameter.type, actual, self.variables)
        if reason is not None:
            shown, wanted = actual.annotation_str, parameter.type.annotation_str
            self.fail(f"Could not match type {shown} to {wanted} in argument '{parameter.name}': {reason}.")
            return None
        found = evaluate(parameter.type, self.variables)
        if found is None:
            wanted, shown = parameter.type.annotation_str, actual.annotation_str
            self.fail(f"Type variables in type {wanted} could not be inferred from actual type {shown}.")
            return None
        return found


def mismatch(parameter: Argument, actual: Type) -> str:
    """What to say when an argument has the wrong type."""
    wanted = parameter.type.annotation_str
    text = f"Expected a value of type '{wanted}' for argument '{parameter.name}' but instead found type "
    text += f"'{actual.annotation_str}'."
    if isinstance(actual, ListType) and actual.element.is_subtype_of(TENSOR):
        text += (
            "\nEmpty lists default to List[Tensor]. Annotate the variable, as in `x: List[int] = []`, to make an empty "
            "list of another type."
        )
    return text


def match_schema(graph: Graph, schema: FunctionSchema, call: Call) -> Matched:
    """Fit the call to the only schema there is.  Raises CompileError that says what does not fit."""
    slots = _Attempt(schema, call, conversions=True).slots()
    if slots is not None:
        return _insert(graph, schema, call, slots, conversions=True)
    why: list[str] = []
    _Attempt(schema, call, True, why).slots()
    raise CompileError(f"{schema}:\n{why[0]}\nThe original call is", call.range, hints=_hints([schema], call))


def match_schemas(graph: Graph, schemas: Sequence[FunctionSchema], call: Call) -> tuple[int, Matched]:
    """Fit the call to the first schema that takes it; its index too.  Raises CompileError that lists why none does."""
    if len(schemas) == 1:
        return 0, match_schema(graph, schemas[0], call)
    for conversions in (False, True):
        for index, schema in enumerate(schemas):
            attempt = _Attempt(schema, call, conversions)
            slots = attempt.slots()
            if slots is not None:
                return index, _insert(graph, schema, call, slots, conversions, attempt.variables)
    raise CompileError(_all_failures(schemas, call), call.range, hints=_hints(schemas, call))


def _all_failures(schemas: Sequence[FunctionSchema], call: Call) -> str:
    parts = ["Arguments for call are not valid.", "The following variants are available:"]
    for schema in schemas:
        why: list[str] = []
        _Attempt(schema, call, True, why).slots()
        parts += ["", f"  {schema}:", *("  " + line for line in why[0].split("\n"))]
    return "\n".join([*parts, "", "The original call is"])


def _hints(schemas: Sequence[FunctionSchema], call: Call) -> list[str]:
    """Keywords that were meant, and what would make arguments fit whose type is not known well enough."""
    given = [*([call.self_value] if call.self_value else []), *call.args, *call.kwargs]
    known = {parameter.name for schema in schemas for parameter in schema.arguments}
    hints = [hint for k in call.kwargs if k.name not in known for hint in did_you_mean(k.name, known)]
    for actual in given:
        shown = actual.range.text if actual.range is not None else "the argument"
        if isinstance(actual.value.type, OptionalType):
            hints.append(f"{shown} may be None; make sure that it is not: `if {shown} is not None:`")
        elif isinstance(actual.value.type, UnionType) or actual.value.type is ANY:
            hints.append(f"{shown} may be of several types; tell them apart with isinstance")
    return hints


def _insert(
    graph: Graph,
    schema: FunctionSchema,
    call: Call,
    slots: Sequence[_Slot],
    conversions: bool,
    variables: TypeVariables | None = None,
) -> Matched:
    """Put conversions and defaults into the graph."""
    inputs = [_materialize(graph, slot, conversions, call.range) for slot in slots]
    if variables is None:
        attempt = _Attempt(schema, call, conversions)
        attempt.slots()
        variables = attempt.variables
    types = []
    for result in schema.returns:
        type = evaluate(result.type, variables) if has_variables(result.type) else result.type
        assert type is not None, f"{schema} returns a type variable that no argument binds"
        types.append(type)
    return Matched(inputs, tuple(types), tuple(result.name for result in schema.returns))


def _materialize(graph: Graph, slot: _Slot, conversions: bool, range: SourceRange | None) -> Value:
    source = slot.source
    if isinstance(source, _Default):
        return _default_value(graph, source)
    if isinstance(source, _Repeated):
        return graph.append("prim::ListConstruct", [source.value] * source.times, [ListType(source.value.type)]).output
    if isinstance(source, _Varargs):
        values = [_materialize(graph, each, conversions, range) for each in source.values]
        return graph.append("prim::ListConstruct", values, [ListType(source.element)]).output
    return convert(graph, source, slot.type, conversions, range)


def _default_value(graph: Graph, default: _Default) -> Value:
    wanted = unwrap_optional(default.type)
    value = default.value
    if isinstance(value, tuple) and isinstance(wanted, ListType):
        value = list(value)
    if isinstance(wanted, ListType) and isinstance(value, (int, float)):
        value = [value]
    if value is None:
        return insert_constant(graph, None)
    if isinstance(wanted, TensorType):
        return insert_constant(graph, value)
    return insert_constant(graph, value, wanted if isinstance(value, list) else None)
