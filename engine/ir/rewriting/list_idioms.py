"""Rules for lists and dicts that are made in the graph and never written to.

In: nodes that use a `prim::ListConstruct` or a `prim::DictConstruct` with constant keys.  Out: what they give, told
from what the list or dict was made of.  The length of sizes is told from the type of the tensor.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from engine.aten.kernels.shapes import normalized_index
from engine.aten.values.arithmetic import slice_of
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import constant_int, must_be_none
from engine.ir.rewriting.peepholes import Rule, apply_rules
from engine.lang.types import ListType, TensorType


def apply_list_idioms(graph: Graph, *, shapes: bool = True) -> bool:
    """Replace what is known of lists and dicts, with `shapes` of ranks, too; the replaced nodes stay, unused."""
    origins = {**_LIST_RULES, **_DICT_RULES, **(_RANK_RULES if shapes else {})}
    if not any(_origin(node) in origins for node in graph.all_nodes()):
        return False
    db, written = AliasDb(graph), set[Value]()

    def rule(node: Node) -> Sequence[Value | None] | Value | None:
        found = origins.get(_origin(node))
        if found is None:
            return None
        if _origin(node) in _LIST_RULES:
            return _with_list(db, written, found, node)
        return None if db.has_writers(node.inputs[0]) else found(node)

    return apply_rules(graph, dict.fromkeys({kind for kind, _ in origins}, rule))


def _origin(node: Node) -> tuple[str, str]:
    """The node's kind, and that of the node that made its first input."""
    return node.kind, node.inputs[0].node.kind if node.inputs else ""


def _with_list(db: AliasDb, written: set[Value], rule: Rule, node: Node) -> list[Value | None] | Value | None:
    """Apply the rule if every list among the inputs is known and stays as it was made.

    A new list takes the place of one that may be written to: the analysis does not know it, so it joins `written`.
    """
    lists = [value for value in node.inputs if isinstance(value.type, ListType)]
    if not lists or lists[0] is not node.inputs[0]:
        return None
    if any(v.node.kind != "prim::ListConstruct" or v in written or db.has_writers(v) for v in lists):
        return None
    found = rule(node)
    if not isinstance(found, Value):
        return None if found is None else list(found)
    if found.node.kind == "prim::ListConstruct" and db.has_writers(node.output):
        written.add(found)
    return found


def _length(node: Node) -> Value:
    return insert_constant(node.graph, len(node.inputs[0].node.inputs))


def _element(node: Node) -> Value | None:
    elements, index = node.inputs[0].node.inputs, constant_int(node.inputs[1])
    at = None if index is None else normalized_index(index, len(elements))
    return None if at is None else elements[at]


def _unpacked(node: Node) -> list[Value | None] | None:
    elements = node.inputs[0].node.inputs
    # Lengths that differ are the program's error to meet when it runs.
    return list(elements) if len(elements) == len(node.outputs) else None


def _joined(node: Node) -> Value | None:
    if len(node.inputs) != 2 or not isinstance(node.inputs[1].type, ListType):
        return None
    return _new_list(node, [*node.inputs[0].node.inputs, *node.inputs[1].node.inputs])


def _sliced(node: Node) -> Value | None:
    if len(node.inputs) != 4:
        return None
    bounds = [None if must_be_none(value) else constant_int(value) for value in node.inputs[1:]]
    known = all(b is not None or must_be_none(v) for b, v in zip(bounds, node.inputs[1:], strict=True))
    if not known or (bounds[2] or 1) <= 0:
        return None
    return _new_list(node, node.inputs[0].node.inputs[slice_of(bounds[0], bounds[1], bounds[2] or 1)])


def _new_list(node: Node, elements: list[Value]) -> Value:
    return node.graph.append("prim::ListConstruct", elements, [node.output.type]).output


def _entries(node: Node) -> dict[Hashable, Value] | None:
    """The entries of the dict; None unless its keys are constants that are not equal to each other."""
    parts = node.inputs[0].node.inputs
    keys = [constant_value(key) for key in parts[::2]]
    if any(not isinstance(key, (int, float, str)) or key != key for key in keys) or len({*keys}) < len(keys):
        return None
    return dict(zip(keys, parts[1::2], strict=True))


def _dict_length(node: Node) -> Value | None:
    entries = _entries(node)
    return None if entries is None else insert_constant(node.graph, len(entries))


def _entry(node: Node) -> Value | None:
    entries, key = _entries(node), constant_value(node.inputs[1])
    return entries.get(key) if entries is not None and isinstance(key, (int, float, str)) else None


def _length_of_size(node: Node) -> Value | None:
    sized = node.inputs[0].node
    type = sized.inputs[0].type if len(sized.inputs) == 1 else None
    known = type.sizes if isinstance(type, TensorType) else None
    return None if known is None else insert_constant(node.graph, len(known))


_LIST_RULES: dict[tuple[str, str], Rule] = {
    (kind, "prim::ListConstruct"): rule
    for kind, rule in {
        "aten::len": _length, "aten::__getitem__": _element, "prim::ListUnpack": _unpacked, "aten::add": _joined,
        "aten::slice": _sliced,
    }.items()
}  # fmt: skip
_DICT_RULES: dict[tuple[str, str], Rule] = {
    ("aten::len", "prim::DictConstruct"): _dict_length, ("aten::__getitem__", "prim::DictConstruct"): _entry,
}  # fmt: skip
_RANK_RULES: dict[tuple[str, str], Rule] = {("aten::len", "aten::size"): _length_of_size}
