"""Computing values anew instead of writing to them, for the passes that remove mutation.

In: a graph.  Out: the same graph without the writes that nobody else can see: the value that is written to was made by
a node of the same block that gives fresh memory, and nothing in between depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.aten.dispatch.table import overloads
from engine.aten.kernels.shapes import normalized_index
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Graph, Node, Value
from engine.ir.insert import insert_op
from engine.ir.match import constant_int
from engine.ir.ops import accepts, is_activation
from engine.ir.rewrites import allowed
from engine.lang.types import DEVICE, INT, TensorType


def remove_list_writes(graph: Graph) -> bool:
    """Build lists with the elements appended, inserted and set right after; True if there were any."""
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
    return node.kind == "aten::append" or (node.kind in _PLACES and _place(node) is not None)


def _place(node: Node) -> int | None:
    """The index of the list's elements that the node sets or inserts at; None if it is not known, or not there."""
    index = constant_int(node.inputs[1])
    return None if index is None else _PLACES[node.kind](index, len(node.inputs[0].node.inputs))


def _place_between(index: int, count: int) -> int:
    """The index at which `list.insert` puts an element: too large a number is one of the ends."""
    return slice(index, None).indices(count)[0]


_PLACES: Final = {"aten::_set_item": normalized_index, "aten::insert": _place_between}


def _write_when_made(node: Node) -> None:
    made = node.inputs[0].node
    if node.kind == "aten::append":
        made.add_input(node.inputs[1])
    elif node.kind == "aten::insert":
        made.insert_input(_place(node) or 0, node.inputs[2])
    else:
        made.replace_input(_place(node) or 0, node.inputs[2])
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
    return name in _MADE_ANEW or bool(overloads(name[:-1]))


def _fits_functional_form(node: Node) -> bool:
    """True if the functional form takes the same inputs."""
    return node.kind in _MADE_ANEW or any(accepts(op.schema, node) for op in overloads(node.kind[:-1]))


def _compute_instead(node: Node, db: AliasDb) -> None:
    graph = node.graph
    with graph.inserting_at(node, node.range):
        make = _MADE_ANEW.get(node.kind)
        result = graph.append(node.kind[:-1], node.inputs, [node.output.type]).output if make is None else make(node)
    db.forget_node(node)
    written = node.inputs[0]
    db.replace_with_new_value(written, result)
    db.create_value(written)
    written.replace_all_uses_after(node, result)
    node.output.replace_all_uses_with(result)
    node.destroy()


def _filled(node: Node) -> Value:
    takes_tensor = isinstance(node.inputs[1].type, TensorType)
    return insert_op(node.graph, "aten::fill" if takes_tensor else "aten::full_like", *node.inputs)


def _zeros(node: Node) -> Value:
    return insert_op(node.graph, "aten::zeros_like", *node.inputs)


def _normal(node: Node) -> Value:
    """Random numbers for the sizes, dtype and device of the tensor."""
    graph, (tensor, mean, std, generator) = node.graph, node.inputs
    sizes = insert_op(graph, "aten::size", tensor)
    dtype = graph.append("prim::dtype", [tensor], [INT]).output
    device = graph.append("prim::device", [tensor], [DEVICE]).output
    return insert_op(graph, "aten::normal", mean, std, sizes, generator, dtype, None, device)


_MADE_ANEW: Final[dict[str, Callable[[Node], Value]]] = {
    "aten::fill_": _filled,
    "aten::zero_": _zeros,
    "aten::normal_": _normal,
}
"""In-place operators whose functional form takes other arguments, and how to call it."""
