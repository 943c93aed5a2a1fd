"""Makes values that are written to right after they were made anew instead.

    %l : int[] = prim::ListConstruct(%a)                  %l : int[] = prim::ListConstruct(%a, %b)
    %2 : int[] = aten::append(%l, %b)               →

    %t : Tensor = aten::neg(%x)                           %t : Tensor = aten::neg(%x)
    %u : Tensor = aten::add_(%t, %1, %1)            →     %3 : Tensor = aten::add(%t, %1, %1)

Only where nobody else can hold the value: it was made by a node of the same block that gives fresh memory, and
nothing in between depends on it.  Writes to inputs of the graph, through views and in other blocks stay.
"""

from __future__ import annotations

from typing import Final

from engine.aten.op import overloads
from engine.ir.alias import AliasDb
from engine.ir.graph import Graph, Node, Value
from engine.ir.insert import insert_op
from engine.ir.match import constant_int, normalized_index
from engine.ir.ops import has_side_effects, match_op
from engine.lang.types import TensorType

_REMADE: Final = {"aten::fill_": "aten::full_like", "aten::zero_": "aten::zeros_like"}


def remove_mutation(graph: Graph) -> bool:
    """Remove writes to lists, then writes to tensors."""
    changed = _remove_list_writes(graph)
    return _remove_tensor_writes(graph) or changed


def _remove_list_writes(graph: Graph) -> bool:
    db, changed = AliasDb(graph), False
    for node in graph.all_nodes():
        if _writes_new_list(node) and _make_adjacent(db, node.inputs[0].node, node):
            _write_when_made(node)
            db, changed = AliasDb(graph), True
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


def _remove_tensor_writes(graph: Graph) -> bool:
    db, changed = AliasDb(graph), False
    for node in graph.all_nodes():
        if not _has_functional_form(node) or not _make_adjacent(db, node.inputs[0].node, node):
            continue
        if _compute_instead(node):
            db, changed = AliasDb(graph), True
    return changed


def _has_functional_form(node: Node) -> bool:
    """An in-place operator (`add_`) whose value is a tensor."""
    name = node.kind
    if node.namespace != "aten" or not name.endswith("_") or name.endswith("__") or len(node.outputs) != 1:
        return False
    if not node.inputs or not isinstance(node.inputs[0].type, TensorType):
        return False
    return name in _REMADE or bool(overloads(name[:-1]))


def _compute_instead(node: Node) -> bool:
    result = _functional_result(node)
    if result is None:
        return False
    written = node.inputs[0]
    written.replace_all_uses_after(node, result)
    node.output.replace_all_uses_with(result)
    node.destroy()
    return True


def _functional_result(node: Node) -> Value | None:
    graph = node.graph
    with graph.inserting_at(node, node.range):
        if node.kind in _REMADE:
            return insert_op(graph, _REMADE[node.kind], *node.inputs)
        new = graph.create(node.kind[:-1], node.inputs, [node.output.type])
        if match_op(new) is None:
            new.destroy()
            return None
        return graph.insert_node(new).output


def _make_adjacent(db: AliasDb, made: Node, write: Node) -> bool:
    """Move the making right before the write, if nobody can tell; can it be so?

    What depends on the making and stands between goes after the write, unless the write minds.
    """
    if made.block is not write.block or not _gives_fresh_memory(db, made):
        return False
    moved, node = [made], made.next
    while node is not None and node is not write:
        if any(db.must_stay_after(node, earlier) for earlier in moved):
            moved.append(node)
        node = node.next
    dependents = moved[1:]
    if any(db.must_stay_after(write, dependent) for dependent in dependents):
        return False
    made.move_before(write)
    after = write
    for dependent in dependents:
        dependent.move_after(after)
        after = dependent
    return True


def _gives_fresh_memory(db: AliasDb, node: Node) -> bool:
    if node.kind == "prim::Param" or node.blocks or "Subgraph" in node.attributes or has_side_effects(node):
        return False
    return node.kind == "prim::ListConstruct" or not db.may_contain_alias(node.inputs, node.outputs)
