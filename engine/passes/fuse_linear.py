"""Writes products with a transposed weight as `linear`.

    %t : Tensor = aten::t(%w)                             %t : Tensor = aten::t(%w)
    %r : Tensor = aten::addmm(%b, %x, %t, %1, %1)   →     %2 : Tensor = aten::t(%t)
                                                          %r : Tensor = aten::linear(%x, %2, %b)

So is `matmul(x, t)`, alone or with `add_(.., b)` as its only use.  The second factor has to be given by `aten::t`: then
it has at most two dimensions, as `linear` wants.  Where nothing else reads the transposed weight, `linear` gets the
weight itself.  Other products, other factors than 1, and biases that are numbers stay.
"""

from __future__ import annotations

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import asks_only, constant_int
from engine.ir.rewrites import allowed
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR, OptionalType, TensorType


def fuse_linear(graph: Graph) -> bool:
    """Rewrite sums with a bias first, then the remaining products."""
    db, changed = AliasDb(graph), False
    for node in graph.find_all_nodes("aten::addmm"):
        changed |= _fuse_addmm(node, db)
    for rule in (_fuse_biased, _fuse_plain):
        for node in graph.find_all_nodes("aten::matmul"):
            changed |= asks_only(node, "self", "other") and rule(node, db)
    for node in graph.find_all_nodes("aten::linear"):
        changed |= _untranspose(node)
    return changed


def _untranspose(node: Node) -> bool:
    """Give the layer its weight instead of the transpose of its transpose."""
    twice = node.inputs[1].node
    if twice.kind != "aten::t" or twice.inputs[0].node.kind != "aten::t":
        return False
    once = twice.inputs[0].node
    if any(len(made.output.uses) > 1 for made in (once, twice)) or not allowed(node, "the same of the weight itself"):
        return False
    node.replace_input(1, once.inputs[0])
    twice.destroy()
    once.destroy()
    return True


def _fuse_addmm(node: Node, db: AliasDb) -> bool:
    if not asks_only(node, "self", "mat1", "mat2", "beta", "alpha"):
        return False
    bias, x, weight, *factors = node.inputs
    if not _is_transposed(weight) or any(constant_int(factor) != 1 for factor in factors):
        return False
    return _replace(node, (x, weight, bias), db)


def _fuse_biased(node: Node, db: AliasDb) -> bool:
    """The product is a new tensor that only the sum writes to, so that nobody sees it without the bias."""
    x, weight = node.inputs
    users = [user for user, _ in node.output.uses]
    if not _is_transposed(weight) or len(users) != 1 or users[0].kind != "aten::add_":
        return False
    (total,) = users
    if total.block is not node.block or total.inputs[0] is not node.output or constant_int(total.inputs[2]) != 1:
        return False
    bias = total.inputs[1]
    if not isinstance(bias.type, TensorType) or any(map(db.has_writers, (x, weight, bias))):
        return False
    if not _replace(total, (x, weight, bias), db, node.range):
        return False
    node.destroy()
    return True


def _fuse_plain(node: Node, db: AliasDb) -> bool:
    x, weight = node.inputs
    return _is_transposed(weight) and _replace(node, (x, weight), db)


def _is_transposed(value: Value) -> bool:
    return value.node.kind == "aten::t"


def _replace(node: Node, inputs: tuple[Value, ...], db: AliasDb, range: SourceRange | None = None) -> bool:
    if not allowed(node, "aten::linear of the same"):
        return False
    graph, (x, weight) = node.graph, inputs[:2]
    with graph.inserting_at(_place(node, inputs, db), range or node.range):
        transposed = graph.append("aten::t", [weight]).output
        bias = inputs[2] if len(inputs) > 2 else insert_constant(graph, None, OptionalType(TENSOR))
        linear = graph.append("aten::linear", [x, transposed, bias], [node.output.type]).output
    name = node.output.name
    node.output.set_debug_name("")
    linear.set_debug_name(name)
    node.output.replace_all_uses_with(linear)
    node.destroy()
    return True


def _place(node: Node, inputs: tuple[Value, ...], db: AliasDb) -> Node:
    """Right behind the last of the inputs, as PyTorch has it, where that is in the same block and nobody writes."""
    last = inputs[0].node
    for value in inputs[1:]:
        last = value.node if last.is_before(value.node) else last
    following = last.next
    if last.block is not node.block or following is None or any(map(db.has_writers, inputs)):
        return node
    return following
