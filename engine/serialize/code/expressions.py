"""One node as a Python expression: a row for every kind that has a form of its own, operators for the rest.

In: a node whose inputs can be written already.  Out: text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.ir.ops import op_of
from engine.ir.printer import fixed_arguments
from engine.lang.errors import ArchiveError
from engine.lang.literals import string_literal
from engine.lang.types import NONE, FunctionType, OptionalType, TupleType, Type
from engine.serialize.code.call_arguments import necessary_arguments
from engine.serialize.code.opaque import KEYWORDS
from engine.serialize.code.python_text import name_text, tells_its_type
from engine.serialize.code.tagged_text import TaggedText
from engine.serialize.container.qualified_names import is_identifier


class ExpressionPrinter(Protocol):
    """The part of the source printer that expressions use."""

    def use(self, value: Value) -> str | TaggedText: ...
    def annotation(self, type: Type) -> str: ...
    def constant(self, value: Any, type: Type) -> str: ...
    def function_name(self, type: FunctionType) -> str: ...
    def depend(self, type: Type) -> None: ...


Row = Callable[[ExpressionPrinter, TaggedText, Node], None]


def write_expression(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    """Append the right-hand side of the node.  Raises ArchiveError for what has no text form."""
    _ROWS.get(node.kind, _operator)(writer, text, node)


def write_list(
    writer: ExpressionPrinter,
    text: TaggedText,
    values: Sequence[Value],
    before: str = "",
    after: str = "",
    between: str = ", ",
) -> None:
    text.write(before)
    for index, value in enumerate(values):
        text.write(between if index else "", writer.use(value))
    text.write(after)


def _constant(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    type = node.output.type
    if isinstance(type, FunctionType):
        text.write(writer.function_name(type))
        return
    value = constant_value(node.output)
    if value is NOT_CONSTANT:
        raise ArchiveError(f"a constant of type '{type.annotation_str}' without a value cannot be written as code")
    text.write(writer.constant(value, type))


def _listed(before: str, after: str = ")") -> Row:
    return lambda writer, text, node: write_list(writer, text, node.inputs, before, after)


def _annotated(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write("annotate(", writer.annotation(node.output.type), ", ", writer.use(node.input), ")")


def _item(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write(_grouped(writer, node.inputs[0]), "[", writer.use(node.inputs[1]), "]")


def _grouped(writer: ExpressionPrinter, value: Value) -> str | TaggedText:
    """The value as what an index or a dot can follow: names stand alone, expressions in brackets."""
    used = writer.use(value)
    return used if isinstance(used, str) and is_identifier(used) else _bracketed(used)


def _bracketed(used: str | TaggedText) -> TaggedText | str:
    if isinstance(used, str):
        return f"({used})"
    return TaggedText(used.stack).write("(", used, ")")


def _tuple(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    type = node.output.type
    if isinstance(type, TupleType) and type.name is not None:
        write_list(writer, text, node.inputs, writer.annotation(type) + "(", ")")
        return
    write_list(writer, text, node.inputs, "(", ",)" if len(node.inputs) == 1 else ")")


def _tuple_index(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write("(", writer.use(node.inputs[0]), ")[", writer.use(node.inputs[1]), "]")


def _tuple_slice(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write("(", writer.use(node.inputs[0]), f")[{node.attr('beg')}:{node.attr('end')}]")


def _list(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    type = node.output.type
    plain = node.inputs and all(map(tells_its_type, type.contained()))
    text.write("" if plain else f"annotate({writer.annotation(type)}, ")
    write_list(writer, text, node.inputs, "[", "]")
    text.write("" if plain else ")")


def _copy(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    """A copy of a constant list or dict is what its text makes anyway."""
    if len(node.inputs) == 1 and isinstance(constant_value(node.input), (list, dict)):
        _constant(writer, text, node.input.node)
    else:
        _operator(writer, text, node)


def _dict(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    type = node.output.type
    plain = node.inputs and all(map(tells_its_type, type.contained()))
    text.write("" if plain else f"annotate({writer.annotation(type)}, ", "{")
    for index in range(0, len(node.inputs), 2):
        text.write(", " if index else "", writer.use(node.inputs[index]), ": ", writer.use(node.inputs[index + 1]))
    text.write("}", "" if plain else ")")


def _create_object(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    name = writer.annotation(node.output.type)
    text.write(f"{name}.__new__({name})")


def _get_attr(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    name = node.attr("name")
    if is_identifier(name):
        text.write(writer.use(node.inputs[0]), ".", name)
    else:
        text.write("getattr(", writer.use(node.inputs[0]), ", ", string_literal(name), ")")


def _arguments(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    write_list(writer, text, node.inputs[1:], "", ", " if len(node.inputs) > 1 else "")


def _call_function(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    # As plain text, for the name to stem from this call: one constant may stand for the function in several.
    text.write(str(writer.use(node.inputs[0])), "(")
    _arguments(writer, text, node)
    text.write(")")


def _python_call(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write(f"^{node.attr('name')}({fixed_arguments(node)})(")
    write_list(writer, text, node.inputs, "", ")")


def _call_method(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write("(", writer.use(node.inputs[0]), ")", ".", name_text(node.attr("name"), "a method"), "(")
    _arguments(writer, text, node)
    text.write(")")
    writer.depend(node.inputs[0].type)


def _unwrap_optional(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write("torch._unwrap_optional(")
    if node.input.type == NONE or constant_value(node.input) is None:
        # The type of None alone would be lost.
        text.write("annotate(", writer.annotation(OptionalType(node.output.type)), ", ", writer.use(node.input), ")")
    else:
        text.write(writer.use(node.input))
    text.write(")")


def _unchecked_cast(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write("unchecked_cast(", writer.annotation(node.output.type), ", ", writer.use(node.input), ")")


def _isinstance(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    types = [writer.annotation(type) for type in node.attr("types")]
    shown = types[0] if len(types) == 1 else f"({', '.join(types)})"
    text.write("isinstance(", writer.use(node.input), ", ", shown, ")")


def _uninitialized(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write("uninitialized(", writer.annotation(node.output.type), ")")


def _tolist(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    text.write("annotate(", writer.annotation(node.output.type), ", ", writer.use(node.inputs[0]), ".tolist())")


def _enum_part(name: str) -> Row:
    def write(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
        text.write("(", writer.use(node.input), f").{name}")

    return write


def _operator(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    """Any operator: `torch.add(x, y)`; arguments that equal their defaults are left out at the end."""
    text.write(_OPERATOR_NAMES.get(node.kind) or operator_name(node.kind), "(")
    op = op_of(node)
    if op is None:
        _unknown_operator(writer, text, node)
        return
    arguments = op.schema.arguments
    count, outs = necessary_arguments(op.schema, node)
    for index, value in enumerate(node.inputs[:count]):
        keyword = f"{arguments[index].name}=" if index < len(arguments) and arguments[index].kwarg_only else ""
        text.write(", " if index else "", keyword, writer.use(value))
    if outs and len(node.inputs) >= len(arguments):
        for argument, value in zip(arguments[-outs:], node.inputs[-outs:], strict=True):
            text.write(", ", f"{argument.name}=", writer.use(value))
    text.write(")")


def _unknown_operator(writer: ExpressionPrinter, text: TaggedText, node: Node) -> None:
    """A call of an unknown operator from archived code: its node keeps the names of its keyword arguments."""
    words = node.attr(KEYWORDS) if node.has_attribute(KEYWORDS) else []
    positional = len(node.inputs) - len(words)
    write_list(writer, text, node.inputs[:positional])
    for index, (word, value) in enumerate(zip(words, node.inputs[positional:], strict=True)):
        text.write(", " if positional + index else "", f"{word}=", writer.use(value))
    text.write(")")


def operator_name(kind: str) -> str:
    namespace, _, name = kind.partition("::")
    return f"torch.{name}" if namespace == "aten" else f"ops.{namespace}.{name}"


_OPERATOR_NAMES: Final = {"aten::backward": "torch.autograd.backward", "aten::grad": "torch.autograd.grad"}
_ROWS: Final[dict[str, Row]] = {
    "prim::Constant": _constant,
    "prim::Uninitialized": _uninitialized,
    "aten::ScalarImplicit": _annotated, "aten::FloatImplicit": _annotated, "aten::IntImplicit": _annotated,
    "aten::Int": _listed("int("), "aten::Float": _listed("float("), "aten::Bool": _listed("bool("),
    "aten::str": _listed("str("), "prim::Print": _listed("print("), "aten::sorted": _listed("sorted("),
    "aten::__getitem__": _item,
    "prim::TupleConstruct": _tuple, "prim::TupleIndex": _tuple_index, "prim::TupleSlice": _tuple_slice,
    "prim::ListConstruct": _list, "prim::DictConstruct": _dict,
    "aten::list": _copy, "aten::dict": _copy,
    "prim::CreateObject": _create_object, "prim::GetAttr": _get_attr,
    "prim::CallFunction": _call_function, "prim::CallMethod": _call_method,
    "prim::PythonOp": _python_call,
    "aten::_unwrap_optional": _unwrap_optional,
    "prim::unchecked_unwrap_optional": _unchecked_cast, "prim::unchecked_cast": _unchecked_cast,
    "prim::isinstance": _isinstance, "prim::tolist": _tolist,
    "prim::EnumValue": _enum_part("value"), "prim::EnumName": _enum_part("name"),
}  # fmt: skip
