"""Schema matching: fitting the arguments of a call to the parameters of a schema.

In: positional and keyword arguments, and one or several schemas.  Out: the values for every parameter of
the one that fits, converted and completed with defaults, and the types it returns.  Schemas are tried in
order, first as the arguments are, then with implicit conversions (a tensor as a number, a bool as an
int).  The graph changes only once a schema is found to fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple

from engine.frontend.diagnostics.hints import conversion_hints, is_unannotated, narrowing_hints, source_text
from engine.frontend.matching.convert import Operand, convert, converted_type, is_convertible_to_list
from engine.frontend.matching.type_variables import TypeVariables, evaluate, has_variables, match_variables
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Value
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.schema import NO_DEFAULT, Argument, FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import (
    FLOAT,
    INT,
    NONE,
    TENSOR,
    ClassType,
    InterfaceType,
    ListType,
    TensorType,
    Type,
    VarType,
    interface_gap,
    is_inferred,
    unwrap_optional,
)


class Actual(NamedTuple):
    """An argument of a call: its value, its range, and its keyword."""

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
    value: Value | _Default
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
    matched: int = 0
    culprit: Value | None = None

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
            elif (keyword := self.keyword(parameter, keywords)) is not None:
                slot = self.fit(parameter, keywords.pop(keyword).value)
            elif parameter.default is not NO_DEFAULT:
                slot = self.default(parameter)
            else:
                self.fail(f"Argument {parameter.name} not provided.")
                self.culprit = None
                return None
            if slot is None:
                return None
            found.append(slot)
            self.matched += 1
        if not used_self:
            self.fail("Provided self argument not used in schema.")
            return None
        return self.check_rest(found, used, keywords)

    def keyword(self, parameter: Argument, keywords: dict[str, Actual]) -> str | None:
        """The keyword that gives the parameter; functions of the torch namespace call their `self` `input`."""
        if parameter.name in keywords:
            return parameter.name
        renamed = parameter.name == "self" and "input" in keywords and self.schema.name.startswith("aten::")
        return "input" if renamed else None

    def check_rest(self, found: list[_Slot], used: int, keywords: dict[str, Actual]) -> list[_Slot] | None:
        """Fail if arguments are left over, unless the schema takes any number of them."""
        args = self.call.args
        if self.schema.is_vararg:
            found += [_Slot(arg.value, arg.value.type) for arg in args[used:]]
        elif used < len(args):
            self.fail(f"Expected at most {used} arguments but found {len(args)} positional arguments.")
            self.culprit = args[used].value
            return None
        for name in keywords:
            twice = self.schema.index_of(name) is not None
            self.fail(f"Keyword argument {name} " + ("specified twice." if twice else "unknown."))
            self.culprit = keywords[name].value
            return None
        return found

    def takes_the_rest(self, index: int, parameter: Argument, value: Value) -> bool:
        """True if the remaining arguments may stand for one list, as in `x.view(2, 3)`."""
        if not self.conversions or not isinstance(parameter.type, ListType) or parameter.broadcast:
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
        if parameter.broadcast is not None and type(parameter.default) in (int, float):
            number = _Default(parameter.default, INT if type(parameter.default) is int else FLOAT)
            return _Slot(_Repeated(number, parameter.broadcast), wanted)
        return _Slot(_Default(parameter.default, wanted), wanted)

    def fit(self, parameter: Argument, value: Value) -> _Slot | None:
        """The argument as the parameter wants it."""
        wanted, actual, self.culprit = parameter.type, value.type, value
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
        """The parameter's type with its type variables replaced by the types that this argument gives them."""
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
    """The message for an argument of the wrong type."""
    text = parameter.mismatch(actual.annotation_str)
    if is_inferred(actual):
        text += (
            f"\nInferred the value for argument '{parameter.name}' to be of type 'Tensor' because it was not annotated "
            "with an explicit type."
        )
    if isinstance(actual, ListType) and actual.element.is_subtype_of(TENSOR):
        text += (
            "\nEmpty lists default to List[Tensor]. Annotate the variable, as in `x: List[int] = []`, to make an empty "
            "list of another type."
        )
    if isinstance(actual, (ClassType, InterfaceType)) and isinstance(parameter.type, InterfaceType):
        text += f"\n{interface_gap(actual, parameter.type)}."
    return text


def match_schema(graph: Graph, schema: FunctionSchema, call: Call) -> Matched:
    """Fit the call to the only schema there is.  Raises CompileError that says what does not fit."""
    slots = _Attempt(schema, call, conversions=True).slots()
    if slots is not None:
        return _insert(graph, schema, call, slots, conversions=True)
    failure = _Attempt(schema, call, True, [])
    failure.slots()
    assert failure.why
    text = f"{schema}:\n{failure.why[0]}\nThe original call is"
    raise CompileError(text, _place(failure), hints=_hints([failure], call))


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
    failures = [_Attempt(schema, call, True, []) for schema in schemas]
    parts = ["Arguments for call are not valid.", "The following variants are available:"]
    for failure in failures:
        failure.slots()
        assert failure.why
        parts += ["", f"  {failure.schema}:", *("  " + line for line in failure.why[0].split("\n"))]
    hints = list(_hints(failures, call))
    if any(argument.is_inferred for schema in schemas for argument in schema.arguments):
        hints.append("explicitly add type annotations to overloaded functions: a parameter without one is a Tensor")
    raise CompileError("\n".join([*parts, "", "The original call is"]), call.range, hints=hints)


def _given(call: Call) -> list[Actual]:
    return [*([call.self_value] if call.self_value else []), *call.args, *call.kwargs]


def _place(failure: _Attempt) -> SourceRange | None:
    """The argument that does not fit, if it begins in the line where the call does."""
    whole = failure.call.range
    place = next((actual.range for actual in _given(failure.call) if actual.value is failure.culprit), None)
    return whole if whole is None or place is None else place.if_beside(whole)


_MEANT: Final[Mapping[str, Sequence[str]]] = {
    "requires_grad": ["no function takes requires_grad here: write .requires_grad_() behind the call"]
}
"""Hints for keywords that Python's functions take, and TorchScript's do not."""


def _hints(failures: Sequence[_Attempt], call: Call) -> list[str]:
    """Hints: keywords that were probably meant, conversions that would make arguments fit, the nearest variant."""
    given = _given(call)
    known = list(dict.fromkeys(parameter.name for failure in failures for parameter in failure.schema.arguments))
    unknown = [keyword.name for keyword in call.kwargs if keyword.name not in known]
    if unknown:
        named = ", ".join(name for name in known if name not in ("self", "input"))
        takes = f"it takes {named}" if named else "it takes no keyword arguments"
        meant = [hint for name in unknown for hint in _MEANT.get(name) or did_you_mean(name, known)]
        return meant or [takes]
    untyped = next((hint for failure in failures for hint in _annotations(failure)), None)
    if untyped is not None:
        return [untyped]
    doubtful = [
        hint for each in given for hint in narrowing_hints(each.value.type, source_text(each.range, "the argument"))
    ]
    if doubtful:
        return list(dict.fromkeys(doubtful))
    nearest = max(failures, key=lambda failure: failure.matched)
    hints = []
    if len(failures) > 1:
        types = ", ".join(actual.value.type.annotation_str for actual in given)
        hints.append(f"it is called with {types or 'nothing'}")
        if nearest.matched and nearest.why:
            hints.append(f"the nearest variant is {nearest.schema}: {nearest.why[0].partition(chr(10))[0]}")
    return [*_conversions(nearest), *hints]


def _annotations(failure: _Attempt) -> Iterator[str]:
    """The hint to annotate the parameter that does not fit, if its type was inferred."""
    actual = next((each for each in _given(failure.call) if each.value is failure.culprit), None)
    if actual is None or not is_inferred(actual.value.type) or failure.matched >= len(failure.schema.arguments):
        return
    parameter = failure.schema.arguments[failure.matched]
    wanted = unwrap_optional(parameter.type)
    wanted = wanted.element if isinstance(wanted, ListType) and parameter.broadcast is not None else wanted
    text = source_text(actual.range, "it")
    if not isinstance(wanted, VarType) and text.isidentifier() and actual is not failure.call.self_value:
        yield f"{text} has no annotation, so it is a Tensor: write its type, as in `{text}: {wanted.annotation_str}`"


def _conversions(failure: _Attempt) -> Iterator[str]:
    """Hints to convert the argument that does not fit."""
    if failure.culprit is None or failure.matched >= len(failure.schema.arguments):
        return
    wanted = evaluate(failure.schema.arguments[failure.matched].type, failure.variables)
    actual = next((each for each in _given(failure.call) if each.value is failure.culprit), None)
    if wanted is None or actual is None or actual.value.type is NONE:
        return
    first = _given(failure.call)[0]
    if isinstance(failure.schema.arguments[failure.matched].type, VarType) and is_unannotated(first.value.type):
        annotated = _annotated(actual, first)
        yield f"without an annotation [] is a List[Tensor] and {{}} a Dict[str, Tensor]: write `{annotated}`"
        return
    is_whole = actual.range is not None and failure.call.range is not None and actual.range.holds(failure.call.range)
    yield from conversion_hints(actual.value.type, wanted, None if is_whole else actual.range)


def _annotated(item: Actual, container: Actual) -> str:
    """The annotation with which the container could hold the item."""
    inner = item.value.type.annotation_str
    return f"x: List[{inner}] = []" if isinstance(container.value.type, ListType) else f"x: Dict[str, {inner}] = {{}}"


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
        value = _default_value(graph, source.value) if isinstance(source.value, _Default) else source.value
        return graph.append("prim::ListConstruct", [value] * source.times, [ListType(value.type)]).output
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
