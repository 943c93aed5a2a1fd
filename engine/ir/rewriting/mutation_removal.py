"""Computing values anew instead of writing to them, for the passes that remove mutation.

In: a graph.  Out: the same graph without the writes that nobody else can see: the value that is written to was made by
a node of the same block that gives fresh memory, and nothing in between depends on it.
"""

from __future__ import annotations

from typing import Final

from engine.aten.dispatch.table import overloads
from engine.aten.kernels.shapes import normalized_index
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Graph, Node, Value
from engine.ir.insert import insert_op
from engine.ir.match import constant_int
from engine.ir.ops import accepts, is_activation
from engine.ir.rewrites import allowed
from engine.lang.types import TensorType

_REMADE: Final = {"aten::fill_": "aten::full_like", "aten::zero_": "aten::zeros_like"}


def remove_list_writes(graph: Graph) -> bool:
    """Build lists with the elements appended right after; True if there were any."""
    db, changed = AliasDb(graph), False
    for node in graph.all_nodes():
        if _writes_new_list(node) and db.could_remove_write(node) and allowed(node, node.inputs[0]):
            db.make_adjacent(node)
            db.forget_node(node)
            _write_when_made(node)
            changed = True
    return changed


def _writes_new_list(node: Node) -> bool:
    if not node.inputs or node.inputs[0].node.kind != "prim::ListConstruct":
        return False
    return node.kind == "aten::append" or (node.kind == "aten::_set_item" and _index(node) is not None)


def _index(node: Node) -> int | None:
    index = constant_int(node.inputs[1])
    return None if index is None else normalized_index(index, len(node.inputs[0].node.inputs))


def _write_when_made(node: Node) -> None:
    made = node.inputs[0].node
    if node.kind == "aten::append":
        made.add_input(node.inputs[1])
    else:
        made.replace_input(_index(node) or 0, node.inputs[2])
    for output in node.outputs:
        output.replace_all_uses_with(made.output)
    node.destroy()


def remove_tensor_writes(graph: Graph, *, activations_only: bool = False) -> bool:
    """Compute new tensors where fresh ones are written to.  True if there were any."""
    db, changed = AliasDb(graph), False
    for node in graph.all_nodes():
        if not _has_functional_form(node) or (activations_only and not is_activation(node)):
            continue
        if db.could_remove_write(node) and _fits_functional_form(node) and allowed(node, "its functional form"):
            db.make_adjacent(node)
            _compute_instead(node, db)
            changed = True
    return changed


def _has_functional_form(node: Node) -> bool:
    """An in-place operator (`add_`) whose value is a tensor."""
    name = node.kind
    if node.namespace != "aten" or not name.endswith("_") or name.endswith("__") or len(node.outputs) != 1:
        return False
    if not node.inputs or not isinstance(node.inputs[0].type, TensorType):
        return False
    return name in _REMADE or bool(overloads(name[:-1]))


def _fits_functional_form(node: Node) -> bool:
    """True if the functional form takes the same inputs."""
    return node.kind in _REMADE or any(accepts(op.schema, node) for op in overloads(node.kind[:-1]))


def _compute_instead(node: Node, db: AliasDb) -> None:
    result = _functional_result(node)
    db.forget_node(node)
    written = node.inputs[0]
    db.replace_with_new_value(written, result)
    db.create_value(written)
    written.replace_all_uses_after(node, result)
    node.output.replace_all_uses_with(result)
    node.destroy()


def _functional_result(node: Node) -> Value:
    graph = node.graph
    with graph.inserting_at(node, node.range):
        if node.kind in _REMADE:
            return insert_op(graph, _REMADE[node.kind], *node.inputs)
        return graph.append(node.kind[:-1], node.inputs, [node.output.type]).output
