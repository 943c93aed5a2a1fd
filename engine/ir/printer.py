"""The canonical text of graphs, character for character PyTorch's.

In: a graph or node.  Out: text that `engine.ir.parser.parse_ir` reads back.

    graph(%a.1 : Tensor,
          %b.1 : Tensor):
      %2 : int = prim::Constant[value=1]()
      %3 : Tensor = aten::add(%a.1, %b.1, %2)
      return (%3)

A node with a `Subgraph` prints as its kind and a number, and the graph follows: `with prim::fork_0 = graph(..)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from engine.aten.formatting.printing import cpp_str
from engine.aten.values.arithmetic import is_negative_nan
from engine.aten.values.ivalue import EnumValue
from engine.aten.values.tensor import Tensor
from engine.ir.type_verbosity import shown_type
from engine.lang.scalars import device
from engine.lang.types import ANY, DictType, InterfaceType, ListType, OptionalType, TensorType, Type, UnionType

if TYPE_CHECKING:
    from engine.ir.graph import Attr, Block, Graph, Node, Value

MAX_SHOWN_ELEMENTS = 10
"""A tensor attribute with more elements than this prints as `<Tensor>`."""

_ESCAPES = {
    "\\": "\\\\", '"': '\\"', "'": "\\'", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
    "\v": "\\v",
}  # fmt: skip


def graph_text(graph: Graph, *, source_comments: bool = False) -> str:
    """The whole graph; with `source_comments` each node ends in ` # file:line:column`."""
    lines = graph_lines(graph)
    return "".join(text + (_comment(node) if source_comments and node else "") + "\n" for text, node in lines)


def graph_lines(graph: Graph) -> Iterator[tuple[str, Node | None]]:
    """The lines of the whole graph, those that a node begins with this node."""
    groups: list[Node] = []
    head = f"graph({_typed(graph.inputs, separator=',' + chr(10) + ' ' * 6)}):"
    yield from ((text, None) for text in head.split("\n"))
    yield from _block_lines(graph.block, 1, groups)
    yield f"  return ({_names(graph.outputs)})", None
    for number, node in enumerate(groups):
        (head, _), *rest = graph_lines(node.attr("Subgraph"))
        yield f"with {node.kind}_{number} = {head}", None
        yield from rest


def node_text(node: Node) -> str:
    """The node and its blocks, as they stand in a graph but without indent; of a subgraph that there is one."""
    return "\n".join(text for text, _ in _node_lines(node, 0, None))


def attribute_text(attribute: Attr, type: Type | None = None) -> str:
    """The value of an attribute as it stands after `name=`; `type` is the type of a constant."""
    kind, value = attribute
    if kind in ("is", "fs", "cs", "ss", "ts", "tys", "gs"):
        return f"[{', '.join(map(constant_text, value))}]"
    if kind == "g":
        return "<Graph>"
    if kind == "i":
        return str(int(value))
    return quoted(str(value)) if kind == "s" else constant_text(value, type)


def constant_text(value: Any, type: Type | None = None) -> str:
    """Any value the way attributes show it: `1.`, `"a"`, `(1, True)`, `{3}` for a tensor.

    `type` tells the type of lists and dicts whose elements do not show it: `annotate(List[int], [])`.
    """
    if value is None or isinstance(value, (bool, int, Type)):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, complex):
        return f"{float_text(value.real)}{'' if _negative(value.imag) else '+'}{float_text(value.imag)}j"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (list, tuple, dict)):
        return _container_text(value, type)
    return _tensor_text(value) if isinstance(value, Tensor) else _other_text(value)


def float_text(value: float) -> str:
    """`1.`, `0.10000000000000001`, `1e-10`, `nan`: whole numbers below 1e10 end in a point, others have 17 digits."""
    if not math.isfinite(value):
        return "-nan" if is_negative_nan(value) else str(value)
    if abs(value) < 1e10 and value == int(value) and (value == 0 or abs(value) >= 2.2250738585072014e-308):
        return f"{'-' if _negative(value) else ''}{abs(int(value))}."
    return format(value, ".17g")


def quoted(text: str) -> str:
    """A string literal; what is no printable ASCII is escaped byte by byte, see Note [Octal escapes]."""
    return '"' + "".join(_escaped(text)) + '"'


def _escaped(text: str) -> Iterator[str]:
    for char in text:
        if char in _ESCAPES:
            yield _ESCAPES[char]
        elif char.isascii() and char.isprintable():
            yield char
        else:
            yield from map(_octal, char.encode("utf-8", "surrogateescape"))


def _octal(byte: int) -> str:
    # Note [Octal escapes]
    # PyTorch computes the three octal digits of a *signed* char with C's truncating division, so the bytes from
    # 128 on get digits below zero, which print as the characters before "0": 0xC3 is `\0)+`.  The text stays
    # readable without doubt (each digit is in -7..7), and the parser reads it.
    rest = byte - 256 if byte > 127 else byte
    sign = -1 if rest < 0 else 1
    digits = (sign * (abs(rest) // 64), sign * (abs(rest) // 8 % 8), sign * (abs(rest) % 8))
    return "\\" + "".join(chr(ord("0") + digit) for digit in digits)


def _block_lines(block: Block, level: int, groups: list[Node] | None) -> Iterator[tuple[str, Node | None]]:
    for node in block.nodes():
        yield from _node_lines(node, level, groups)


def _node_lines(node: Node, level: int, groups: list[Node] | None) -> Iterator[tuple[str, Node | None]]:
    yield f"{'  ' * level}{_typed(node.outputs)} = {_operation(node, groups)}({_names(node.inputs)})", node
    for index, block in enumerate(node.blocks):
        yield f"{'  ' * (level + 1)}block{index}({_typed(block.inputs)}):", None
        yield from _block_lines(block, level + 2, groups)
        yield f"{'  ' * (level + 2)}-> ({_names(block.outputs)})", None


def _operation(node: Node, groups: list[Node] | None) -> str:
    """The kind and the attributes in brackets; `groups` get the nodes whose subgraphs follow, if these do."""
    shown = list(node.attributes)
    kind = node.kind
    if kind == "prim::PythonOp":
        return _python_call(node)
    if "Subgraph" in node.attributes and groups is not None:
        kind = f"{kind}_{len(groups)}"
        groups.append(node)
        shown = [] if node.kind == "prim::DifferentiableGraph" else [name for name in shown if name != "Subgraph"]
    if not shown:
        return kind
    type = node.outputs[0].type if node.kind == "prim::Constant" else None
    return f"{kind}[{', '.join(f'{name}={attribute_text(node.attributes[name], type)}' for name in shown)}]"


def _python_call(node: Node) -> str:
    """The name of the function, what is known of it, and its arguments that are fixed."""
    known = [f"{name}={attribute_text(node.attributes[name])}" for name in _OF_FUNCTIONS if node.has_attribute(name)]
    return f"^{node.attr('name')}[{', '.join(known)}]({fixed_arguments(node)})"


_OF_FUNCTIONS: Final = ("inplace", "module")


def fixed_arguments(call: Node) -> str:
    """The arguments of a call of Python that are no values of the program."""
    return ", ".join(call.attr("scalar_args")) if call.has_attribute("scalar_args") else ""


def _comment(node: Node) -> str:
    if node.range is None:
        return ""
    range = node.range.original()
    return f" # {range.filename}:{range.line}:{range.column}"


def _typed(values: Iterable[Value], separator: str = ", ") -> str:
    return separator.join(f"%{value.debug_name}{shown_type(value.type)}" for value in values)


def _names(values: Iterable[Value]) -> str:
    return ", ".join(f"%{value.debug_name}" for value in values)


def _container_text(value: Any, type: Type | None) -> str:
    parts = type.contained() if type is not None else ()
    if isinstance(value, dict):
        key, element = parts if len(parts) == 2 else (None, None)
        inside = ", ".join(f"{constant_text(k, key)}: {constant_text(v, element)}" for k, v in value.items())
        return _annotated(f"{{{inside}}}", type, element, ",", value)
    if isinstance(value, list):
        element = parts[0] if len(parts) == 1 else None
        if isinstance(element, TensorType) or (value and isinstance(value[0], Tensor)):
            return "[<Tensors>]"
        inside = ", ".join(constant_text(each, element) for each in value)
        return _annotated(f"[{inside}]", type, element, ", ", value)
    types = parts if len(parts) == len(value) else [None] * len(value)
    inside = ", ".join(map(constant_text, value, types))
    return f"({inside},)" if len(value) == 1 else f"({inside})"


def _annotated(text: str, type: Type | None, element: Type | None, comma: str, value: Any) -> str:
    if type is None or (value and element is not None and _tells_its_type(element)):
        return text
    return f"annotate({type.annotation_str}{comma}{text})"


def _tells_its_type(type: Type) -> bool:
    """True if the type can be recovered from a value of it."""
    if isinstance(type, (ListType, DictType)):
        return all(map(_tells_its_type, type.contained()))
    return type != ANY and not isinstance(type, (OptionalType, UnionType, InterfaceType))


def _tensor_text(tensor: Tensor) -> str:
    count = tensor.array.size
    if count == 1:
        return "{" + _scalar_text(tensor.item()) + "}"
    return "<Tensor>" if count > MAX_SHOWN_ELEMENTS else cpp_str(tensor).replace("\n", " ")


def _scalar_text(value: Any) -> str:
    if isinstance(value, complex):
        return f"({value.real:g},{value.imag:g})"
    return format(value, "g") if isinstance(value, float) else str(int(value))


def _other_text(value: Any) -> str:
    if isinstance(value, device):
        return f'torch.device("{value}")'
    return f"{value.type.qualname}.{value.name}" if isinstance(value, EnumValue) else str(value)


def _negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0
