"""Graphs from bytecode: what the instructions do, one row each.

In: a `MobileFunction`, and the classes of its file.  Out: its graph.  Of types the file says little: those of
arguments, and of lists and dicts that are made.  All else follows from the operators' schemas, and from the values of
attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.frontend.compilation.compile import written_overloads
from engine.frontend.lowering.modified_loops import canonicalize_modified_loops
from engine.frontend.matching.schema_match import Actual, Call, Matched, match_schema
from engine.frontend.matching.type_variables import has_variables
from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Value
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    OptionalType,
    TupleType,
    Type,
)
from engine.serialize.mobile.bare import BareClasses
from engine.serialize.mobile.bytecode import MobileFunction, MobileInstruction, Operator
from engine.serialize.mobile.control_flow import MAX_DEPTH, NEVER, Lifter, ReadType, Step, entry_of
from engine.serialize.mobile.schema import OPERATORS
from engine.serialize.mobile.value_types import as_wanted
from engine.serialize.pickling.scan import PickleRefusal
from engine.serialize.upgrade.upgraders import UPGRADES, operator_as_of

_MOST_OUTPUTS: Final = 10_000


def graph_of(
    function: MobileFunction, schema: FunctionSchema, classes: BareClasses, read_type: ReadType, version: int
) -> Graph:
    """The function's graph; its operators are of that version.  Raises ArchiveError."""
    graph = Lifter(function, classes, read_type, version, _STEPS).run(schema).graph
    canonicalize_modified_loops(graph)
    return graph


def schema_of(function: MobileFunction, read_type: ReadType) -> FunctionSchema:
    """The function's schema.  An argument that may be None need not be given: files do not say that in another way."""
    arguments: list[Argument] = []
    for name, text in function.arguments:
        of = read_type(text)
        if not arguments and isinstance(of, ClassType):
            name = "self"  # whatever its author called it
        if name in function.defaults or isinstance(of, OptionalType):
            arguments.append(Argument(name, of, function.defaults.get(name)))
        else:
            arguments.append(Argument(name, of))
    returns = tuple(Argument("", read_type(text)) for text in function.returns)
    return FunctionSchema(function.name.rpartition(".")[2], arguments=tuple(arguments), returns=returns)


# -- instructions


def _load(lifter: Lifter, instruction: MobileInstruction) -> None:
    found = lifter.registers.get(instruction.x)
    if found is None:
        raise PickleRefusal(f"register {instruction.x} holds nothing here")
    lifter.stack.append(found)


def _store(lifter: Lifter, instruction: MobileInstruction) -> None:
    lifter.registers[instruction.x] = lifter.pop()


def _store_several(lifter: Lifter, instruction: MobileInstruction) -> None:
    for offset, value in enumerate(lifter.take(instruction.n)):
        lifter.registers[instruction.x + offset] = value


def _constant(lifter: Lifter, instruction: MobileInstruction) -> None:
    value = entry_of(lifter.function.constants, instruction.x, "constant")
    lifter.stack.append(lifter.b.constant(value, None, lifter.classes.type_of(value)))


def _operator(lifter: Lifter, instruction: MobileInstruction) -> None:
    found: Operator = entry_of(lifter.function.operators, instruction.x, "operator")
    form = _FORMS.get(found.name)
    if form is not None:
        form(lifter, instruction)
        return
    entry = table.find(str(found))
    count = found.arguments
    if count is None:
        count = instruction.n if instruction.opcode == "OPN" or entry is None else len(entry.schema.arguments)
    values = lifter.take(count)
    upgrade = UPGRADES.get(found.name.removeprefix("aten::"))
    if upgrade is not None and lifter.version < upgrade.below:
        place = lifter.b.graph.current_range
        assert place is not None
        old = operator_as_of(lifter.version, found.name.removeprefix("aten::"))
        args, kwargs = _arguments(entry.schema, values) if entry is not None else ([Actual(v) for v in values], [])
        lifter.stack.append(old.call(lifter.b, args, kwargs, place).as_value(lifter.b, place))
    elif entry is not None:
        _call_entry(lifter, entry, values)
    elif table.overloads(found.name) or written_overloads(found.name):
        _call(lifter, found.name, values)
    else:
        lifter.push(found.name, values, TENSOR)  # one that is not known here, which says so when it runs


def _call(lifter: Lifter, name: str, values: Sequence[Value]) -> None:
    """Call the overload of an operator that fits."""
    entries = table.overloads(name)
    if len(entries) == 1:
        _call_entry(lifter, entries[0], values)
    else:
        lifter.stack.append(lifter.b.insert(name, values))


def _call_entry(lifter: Lifter, entry: Op, values: Sequence[Value]) -> None:
    """Call that very overload; arguments that were left out have their defaults."""
    args, kwargs = _arguments(entry.schema, [_wanted(lifter, *each) for each in _given(entry.schema, values)])
    matched: Matched = match_schema(lifter.b.graph, entry.schema, Call(args, kwargs))
    node = lifter.b.node(entry.schema.name, matched.inputs, matched.return_types)
    node.op = entry
    lifter.stack += node.outputs


def _given(schema: FunctionSchema, values: Sequence[Value]) -> list[tuple[Argument | None, Value]]:
    """The values with the arguments that they are, the last with the outputs that are written to; None: any number."""
    every = [*schema.arguments]
    written = [each for each in every if each.kwarg_only and each.is_write]
    if len(values) < len(every):
        every = [*every[: max(len(values) - len(written), 0)], *written]
    return [*zip_longest(every, values)][: len(values)]


def _arguments(schema: FunctionSchema, values: Sequence[Value]) -> tuple[list[Actual], list[Actual]]:
    """Positional and keyword arguments."""
    given = _given(schema, values)
    args = [Actual(value) for argument, value in given if argument is None or not argument.kwarg_only]
    return args, [Actual(value, None, each.name) for each, value in given if each is not None and each.kwarg_only]


def _wanted(lifter: Lifter, argument: Argument | None, value: Value) -> Value:
    """The value refined to the argument's type where that is narrower than the value's own."""
    if argument is None or has_variables(argument.type):
        return value
    found = as_wanted(value.type, argument.type)
    return value if found is value.type else lifter.b.cast(value, found)


def _get_attribute(lifter: Lifter, instruction: MobileInstruction) -> None:
    owner = lifter.pop()
    type = _class_of(owner)
    of = lifter.classes.slot_type(type, instruction.x)
    lifter.push("prim::GetAttr", [owner], of)
    lifter.stack[-1].node.set_attr("name", type.attributes[instruction.x].name)


def _set_attribute(lifter: Lifter, instruction: MobileInstruction) -> None:
    value, owner = lifter.pop(), lifter.pop()
    name = lifter.classes.let_have(_class_of(owner), instruction.x, value.type)
    lifter.b.node("prim::SetAttr", [owner, value], []).set_attr("name", name)


def _class_of(value: Value) -> ClassType:
    if not isinstance(value.type, ClassType):
        raise PickleRefusal(f"a value of type '{value.type.annotation_str}' has no attributes")
    return value.type


def _construct_list(lifter: Lifter, instruction: MobileInstruction) -> None:
    lifter.push("prim::ListConstruct", lifter.take(instruction.n), _of(lifter, instruction, ListType))


def _construct_dict(lifter: Lifter, instruction: MobileInstruction) -> None:
    lifter.push("prim::DictConstruct", lifter.take(instruction.n), _of(lifter, instruction, DictType))


def _of(lifter: Lifter, instruction: MobileInstruction, wanted: type[Type]) -> Type:
    found = lifter.type_at(instruction.x)
    if not isinstance(found, wanted):
        raise PickleRefusal(f"what is made is of the type '{found.annotation_str}'")
    return found


def _construct_tuple(lifter: Lifter, instruction: MobileInstruction) -> None:
    lifter.stack.append(lifter.b.tuple(lifter.take(instruction.x)))


def _construct_named_tuple(lifter: Lifter, instruction: MobileInstruction) -> None:
    """A plain tuple: nothing in bytecode uses the names."""
    lifter.stack.append(lifter.b.tuple(lifter.take(instruction.n)))


def _tuple_index(lifter: Lifter, _: MobileInstruction) -> None:
    index, value = lifter.pop(), lifter.pop()
    number, elements = constant_value(index), _elements(value)
    if type(number) is not int or not -len(elements) <= number < len(elements):
        raise PickleRefusal("an index of a tuple is not in it")
    lifter.push("prim::TupleIndex", [value, index], elements[number])


def _tuple_slice(lifter: Lifter, instruction: MobileInstruction) -> None:
    value = lifter.pop()
    start, end = instruction.x, instruction.x + instruction.n
    lifter.push("prim::TupleSlice", [value], TupleType(_elements(value)[start:end]))
    lifter.stack[-1].node.set_attr("beg", start).set_attr("end", end)


def _elements(value: Value) -> tuple[Type, ...]:
    if not isinstance(value.type, TupleType):
        raise PickleRefusal(f"a '{value.type.annotation_str}' is used as a tuple")
    return value.type.elements


def _unpack_tuple(lifter: Lifter, _: MobileInstruction) -> None:
    value = lifter.pop()
    lifter.stack += lifter.b.node("prim::TupleUnpack", [value], _elements(value)).outputs


def _unpack_list(lifter: Lifter, instruction: MobileInstruction) -> None:
    value = lifter.pop()
    if not isinstance(value.type, ListType) or not 0 <= instruction.x <= _MOST_OUTPUTS:
        raise PickleRefusal(f"a '{value.type.annotation_str}' is unpacked as a list")
    lifter.stack += lifter.b.node("prim::ListUnpack", [value], [value.type.element] * instruction.x).outputs


def _to_list(lifter: Lifter, _: MobileInstruction) -> None:
    """A list, so many deep, of numbers of a kind."""
    values = lifter.take(3)
    depth, kind = (constant_value(value) for value in values[1:])
    if type(depth) is not int or not 0 <= depth <= MAX_DEPTH or kind not in range(len(_NUMBERS)):
        raise PickleRefusal("a list is made of a tensor in a way that is not known")
    found = _NUMBERS[kind]
    for _level in range(depth):
        found = ListType(found)
    lifter.push("prim::tolist", values, found)


def _isinstance(lifter: Lifter, instruction: MobileInstruction) -> None:
    types = [lifter.type_at(instruction.x + offset) for offset in range(min(instruction.n, _MOST_OUTPUTS))]
    lifter.push("prim::isinstance", [lifter.pop()], BOOL)
    lifter.stack[-1].node.set_attr("types", types, "tys")


def _cast(lifter: Lifter, _: MobileInstruction) -> None:
    """A value of which a test has told that it is not None."""
    value = lifter.pop()
    if isinstance(value.type, OptionalType):
        value = lifter.b.cast(value, value.type.element)
    lifter.stack.append(value)


def _uninitialized(lifter: Lifter, _: MobileInstruction) -> None:
    lifter.push(NEVER, [], NONE)


def _format(lifter: Lifter, instruction: MobileInstruction) -> None:
    _call(lifter, "aten::format", lifter.take(instruction.x))


def _call_interface(lifter: Lifter, instruction: MobileInstruction) -> None:
    name = entry_of(lifter.function.constants, instruction.x, "constant")
    values = lifter.take(instruction.n)
    if not values or not isinstance(name, str):
        raise PickleRefusal("a method of nothing is called")
    callee = _class_of(values[0]).methods.get(name)
    if callee is None:
        raise PickleRefusal(f"'{values[0].type.annotation_str}' has no method '{name:.80}'")
    call = Call([Actual(value) for value in values])
    lifter.stack.append(lifter.b.call_method(name, callee.schema, call))


def _calls(name: str, count: int) -> Step:
    """The step of an instruction that is an operator under another name."""
    return lambda lifter, _: _call(lifter, name, lifter.take(count))


def _drop(lifter: Lifter, _: MobileInstruction) -> None:
    lifter.pop()


_NUMBERS: Final[tuple[Type, ...]] = (INT, FLOAT, COMPLEX, BOOL)
_FORMS: Final[dict[str, Step]] = {
    "prim::unchecked_cast": _cast, "prim::TupleUnpack": _unpack_tuple, "prim::TupleIndex": _tuple_index,
    "prim::Uninitialized": _uninitialized,
}  # fmt: skip
"""Operators that are parts of the language."""
_STEPS: Final[dict[str, Step]] = {
    "OP": _operator, "OPN": _operator, "LOAD": _load, "MOVE": _load, "STORE": _store, "STOREN": _store_several,
    "DROP": _drop, "DROPR": lambda lifter, _: None, "LOADC": _constant, "GET_ATTR": _get_attribute,
    "SET_ATTR": _set_attribute, "LIST_CONSTRUCT": _construct_list, "DICT_CONSTRUCT": _construct_dict,
    "TUPLE_CONSTRUCT": _construct_tuple, "NAMED_TUPLE_CONSTRUCT": _construct_named_tuple,
    "TUPLE_INDEX": _tuple_index, "TUPLE_SLICE": _tuple_slice,
    "LIST_UNPACK": _unpack_list, "ISINSTANCE": _isinstance, "UNCHECKED_CAST": _cast, "FORMAT": _format,
    "UN_INITIALIZED": _uninitialized, "INTERFACE_CALL": _call_interface, "TO_LIST": _to_list,
    **{opcode: _calls(*called) for opcode, called in OPERATORS.items()},
}  # fmt: skip
