"""Rules for lists that are made in the graph and never written to.

In: nodes that use a `prim::ListConstruct`.  Out: what they give, told from what the list was made of.
"""

from __future__ import annotations

from functools import partial

from engine.aten.kernels.shapes import normalized_index
from engine.aten.values.arithmetic import slice_of
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import constant_int, must_be_none
from engine.ir.rewriting.peepholes import Rule, apply_rules
from engine.lang.types import ListType


def apply_list_idioms(graph: Graph) -> bool:
    """Replace what is known of lists; the replaced nodes stay, unused."""
    if not any(map(_may_apply, graph.all_nodes())):
        return False
    db, written = AliasDb(graph), set[Value]()
    rules: dict[str, Rule] = {kind: partial(_with_list, db, written, rule) for kind, rule in _RULES.items()}
    return apply_rules(graph, rules)


def _may_apply(node: Node) -> bool:
    return node.kind in _RULES and bool(node.inputs) and node.inputs[0].node.kind == "prim::ListConstruct"


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


_RULES: dict[str, Rule] = {
    "aten::len": _length, "aten::__getitem__": _element, "prim::ListUnpack": _unpacked, "aten::add": _joined,
    "aten::slice": _sliced,
}  # fmt: skip
