"""Values and nodes in the text of their program, as people find them there.

In: a value or a node.  Out: the value's name; the node's place in the file of the function that was looked at, where
calls of libraries were inlined into it.
"""

from __future__ import annotations

from typing import Final

from engine.ir.graph import Graph, Node, Value
from engine.lang.source import SourceRange
from engine.lang.types import ClassType

MAX_TEXT: Final = 24
"""Characters that are shown of an expression that stands for a name."""
_OWNER: Final = "self"
_SAME: Final = frozenset({"prim::profile", "prim::Guard", "prim::BailOut"})
"""Nodes that give their first input."""


def value_name(value: Value) -> str:
    """The value's name in the program, `z`; for an attribute its path, `fc1.weight`; for what has no name the text that
    makes it, `x * y`; else its name in the graph, `%7`."""
    node = value.node
    if node.kind in _SAME:
        return value_name(node.inputs[0])
    if node.kind == "prim::GetAttr":
        owner = value_name(node.input)
        return node.attr("name") if owner == _OWNER else f"{owner}.{node.attr('name')}"
    root = value.debug_name.partition(".")[0]
    return root if root.isidentifier() else text_of(own_range(node)) or f"%{value.debug_name}"


def called_module(node: Node) -> str:
    """The path of the module whose method the node calls, inside the one that calls; "" for the same, and functions.

    Where several modules come in, it begins with the name of one: `m2.fc1`.
    """
    if node.kind != "prim::CallMethod" or not is_module(node.inputs[0]):
        return ""
    names, value = list[str](), node.inputs[0]
    while value.node.kind == "prim::GetAttr" and is_module(value.node.input):
        names.append(value.node.attr("name"))
        value = value.node.input
    names += [root for each, root in module_inputs(node.graph) if each is value and root]
    return ".".join(reversed(names))


def module_inputs(graph: Graph) -> list[tuple[Value, str]]:
    """The inputs that are modules, with what the paths of the modules inside begin with: "" where there is one."""
    found = [each for each in graph.inputs if is_module(each)]
    return [(each, each.variable_name.lstrip("$") if len(found) > 1 else "") for each in found]


def is_module(value: Value) -> bool:
    """True for a value that is a module by its type."""
    return isinstance(value.type, ClassType) and value.type.is_module


def text_of(range: SourceRange | None) -> str:
    """The text of an expression, cut where it is long; of a call whose range is that of the callee alone, `f(…)`."""
    if range is None:
        return ""
    place = range.original()
    text = " ".join(place.text.split())
    if place.source.text[place.end : place.end + 1] == "(":
        text += "(…)"
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def own_range(node: Node) -> SourceRange | None:
    """The innermost of the calls that led to the node, and the node itself, that is in the same file as the outermost;
    texts that were typed count as one file."""
    ranges = [each for each in (*(call.range for call in node.inlined_from), node.range) if each is not None]
    places = [each.original() for each in ranges]
    same = [each for each in places if _file(each) == _file(places[0])]
    return same[-1] if same else None


def _file(place: SourceRange) -> str:
    return "" if place.filename.startswith("<") else place.filename
