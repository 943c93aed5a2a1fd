"""Lines of generated Python for nodes that are neither operators nor expressions: tuples, attributes, calls, forks.

In: the writer of a function, and a node.  Out: its lines.  To let generated code do a node of a kind that has neither
an operator nor a row in `templates`, add a function to `NODES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.ir.graph import Node
from engine.ir.unit import Function
from engine.lang.types import NONE, ClassType

if TYPE_CHECKING:
    from engine.executor.codegen.source import Writer


def _tuple(writer: Writer, node: Node) -> None:
    writer.give(node, f"({''.join(writer.value(v) + ', ' for v in node.inputs)})")


def _list(writer: Writer, node: Node) -> None:
    writer.give(node, f"[{', '.join(map(writer.value, node.inputs))}]")


def unpack(writer: Writer, node: Node, prefix: str = "v") -> None:
    if not node.outputs:
        return
    comma = "," * (len(node.outputs) == 1)
    targets = ", ".join(writer.define(value, prefix) for value in node.outputs)
    writer.line(f"{targets}{comma} = {writer.value(node.input)}", node)


def _slot(node: Node) -> int:
    type = node.inputs[0].type
    slot = type.slot(node.attr("name")) if isinstance(type, ClassType) else None
    assert slot is not None, f"no such attribute: {node}"
    return slot


def _get_attribute(writer: Writer, node: Node) -> None:
    writer.give(node, f"{writer.value(node.input)}.slots[{_slot(node)}]")


def _set_attribute(writer: Writer, node: Node) -> None:
    owner, value = map(writer.value, node.inputs)
    writer.line(f"{owner}.slots[{_slot(node)}] = {value}", node)


def _is(negation: str) -> Callable[[Writer, Node], None]:
    def write(writer: Writer, node: Node) -> None:
        if NONE not in (value.type for value in node.inputs):
            operands = ", ".join(map(writer.value, node.inputs))
            writer.give(node, f"{writer.operation(node)}({operands})")
            return
        one, other = map(writer.value, node.inputs)
        writer.give(node, f"{one} is {negation}{other}")

    return write


def _call_function(writer: Writer, node: Node) -> None:
    writer.genuine.add(node)
    function, *arguments = map(writer.value, node.inputs)
    writer.give(node, f"call({function}, ({''.join(a + ', ' for a in arguments)}), depth)")


def _call_method(writer: Writer, node: Node) -> None:
    writer.genuine.add(node)
    arguments = "".join(writer.value(value) + ", " for value in node.inputs)
    owner = writer.value(node.inputs[0])
    writer.give(node, f"call({owner}.type.methods[{node.attr('name')!r}], ({arguments}), depth)")


def _enter(writer: Writer, node: Node) -> None:
    writer.genuine.add(node)
    owner = writer.value(node.inputs[0])
    writer.line(f"entered.append({owner})")
    writer.give(node, f"call({owner}.type.methods['__enter__'], ({owner}, ), depth)")


def _exit(writer: Writer, node: Node) -> None:
    writer.genuine.add(node)
    owner = writer.value(node.inputs[0])
    writer.line("entered.pop()")
    writer.give(node, f"call({owner}.type.methods['__exit__'], ({owner}, None, None, None), depth)")


def _fork(writer: Writer, node: Node) -> None:
    writer.genuine.add(node)
    function = writer.bind("function", Function(writer.name, _graph=node.attr("Subgraph")))
    writer.give(node, f"fork({function}, ({''.join(writer.value(value) + ', ' for value in node.inputs)}))")


def _wait(writer: Writer, node: Node) -> None:
    writer.genuine.add(node)
    writer.give(node, f"{writer.value(node.inputs[0])}.wait()")


NODES: Final[dict[str, Callable[[Writer, Node], None]]] = {
    "prim::TupleConstruct": _tuple, "prim::NamedTupleConstruct": _tuple, "prim::ListConstruct": _list,
    "prim::TupleUnpack": unpack, "prim::ListUnpack": unpack,
    "prim::GetAttr": _get_attribute, "prim::SetAttr": _set_attribute,
    "aten::__is__": _is(""), "aten::__isnot__": _is("not "),
    "prim::CallFunction": _call_function, "prim::CallMethod": _call_method,
    "prim::Enter": _enter, "prim::Exit": _exit, "prim::fork": _fork, "aten::wait": _wait,
}  # fmt: skip
