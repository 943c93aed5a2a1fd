"""Multiplies matrices together that can be multiplied at once.

    %1 : Tensor = aten::mm(%a, %b)                        %9 : Tensor =
    %2 : Tensor = aten::mm(%c, %d)                           prim::MMTreeReduce(%g, %e, %c, %a, %h, %f, %d, %b)
    %3 : Tensor = aten::add(%1, %2, %one)           →
    …                                                     (the sum of g h, e f, c d and a b)

    %1 : Tensor = aten::mm(%x, %a)                        %1 : Tensor, %2 : Tensor, … =
    %2 : Tensor = aten::mm(%x, %b)                  →        prim::MMBatchSide[side=0](%x, %a, %b, …)
    …

A sum needs four products that nobody else uses, a common factor (left: side 0, right: side 1) eight products in the
block that defines it.  Products that touch memory which is written to stay.  So comes together what unrolled loops
multiply.
"""

from __future__ import annotations

from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.match import asks_only
from engine.ir.rewrites import allowed
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.lang.types import TensorType
from engine.passes.pipeline import find_pass

SMALLEST_SUM: Final = 4
SMALLEST_BATCH: Final = 8


def batch_mm(graph: Graph) -> bool:
    """Batch sums of products, then products with a common factor; after it a graph with any products is tidied."""
    if graph.find_node("aten::mm") is None:
        return False
    db = AliasDb(graph)
    changed = _batch_sums(graph.block, db)
    changed |= _batch_sides(graph.block, db)
    changed |= remove_dead_code(graph)
    return find_pass("peephole")(graph, shapes=False) or changed


# -- sums of products


def _batch_sums(block: Block, db: AliasDb) -> bool:
    """Find the sums from their products upwards; each tree is the list of its products, last first."""
    trees: dict[Value, list[Node]] = {}
    changed = False
    for node in block.nodes():
        for inner in node.blocks:
            changed |= _batch_sums(inner, db)
        products = _products_of(node, trees, db)
        if products is not None:
            trees[node.output] = products
    for value, products in trees.items():
        if (
            len(products) >= SMALLEST_SUM
            and not _is_part_of_sum(value, trees)
            and allowed(value.node, "prim::MMTreeReduce")
        ):
            _reduce(value, products)
            changed = True
    return changed


def _products_of(node: Node, trees: dict[Value, list[Node]], db: AliasDb) -> list[Node] | None:
    """The products (`mm`, or `t` of one) whose sum the node gives, or None."""
    if _is_product(node):
        return None if db.has_writers(node) else [node]
    if node.kind == "aten::t":
        is_product = _is_product(node.inputs[0].node) and node.inputs[0] in trees
        return [node] if is_product and not db.has_writers(node) else None
    if not _is_plain_sum(node) or db.has_writers(node):
        return None
    left, right = (trees.get(value) if len(value.uses) == 1 else None for value in node.inputs[:2])
    return None if left is None or right is None else right + left


def _is_product(node: Node) -> bool:
    return node.kind == "aten::mm" and asks_only(node, "self", "mat2")


def _is_plain_sum(node: Node) -> bool:
    if node.kind != "aten::add" or not asks_only(node, "self", "other", "alpha"):
        return False
    return isinstance(node.inputs[1].type, TensorType) and constant_value(node.inputs[2]) == 1


def _is_part_of_sum(value: Value, trees: dict[Value, list[Node]]) -> bool:
    return any(user.kind == "aten::add" and user.outputs[0] in trees for user, _ in value.uses)


def _reduce(total: Value, products: list[Node]) -> None:
    graph = total.graph
    factors = [_factors(node) for node in products]
    inputs = [left for left, _ in factors] + [right for _, right in factors]
    with graph.inserting_at(total.node, total.node.range):
        total.replace_all_uses_with(graph.append("prim::MMTreeReduce", inputs, [total.type]).output)


def _factors(product: Node) -> tuple[Value, Value]:
    """The two factors; those of a transposed product are the transposed ones, the other way round."""
    if product.kind == "aten::mm":
        return product.inputs[0], product.inputs[1]
    graph, mm = product.graph, product.inputs[0].node
    with graph.inserting_at(mm, mm.range):
        left, right = (graph.append("aten::t", [factor]).output for factor in mm.inputs)
    return right, left


# -- products with a common factor


def _batch_sides(block: Block, db: AliasDb) -> bool:
    changed, considered = False, set[Value]()
    for node in block.nodes():
        for inner in node.blocks:
            changed |= _batch_sides(inner, db)
        if not _is_product(node) or db.has_writers(node):
            continue
        for factor in node.inputs:
            if factor not in considered:
                considered.add(factor)
                changed |= _batch_side(factor, 0, db)
                changed |= _batch_side(factor, 1, db)
    return changed


def _batch_side(factor: Value, side: int, db: AliasDb) -> bool:
    """Batch the products that have the factor on that side, if there are enough."""
    products = _products_with(factor, side, db)
    if len(products) < SMALLEST_BATCH:
        return False
    first, graph = products[0], factor.graph
    together, free = _independent(products, db)
    if len(together) < SMALLEST_BATCH or not allowed(first, "prim::MMBatchSide"):
        return False
    for node in _needed(together, free):
        node.move_before(first)
    inputs = [factor, *(product.inputs[1 - side] for product in together)]
    with graph.inserting_at(first, first.range):
        batch = graph.append("prim::MMBatchSide", inputs, [product.output.type for product in together])
    batch.set_attr("side", side)
    for product, result in zip(together, batch.outputs, strict=True):
        product.output.replace_all_uses_with(result)
    return True


def _products_with(factor: Value, side: int, db: AliasDb) -> list[Node]:
    """The products with the factor on that side, in order; without squares and products that a batch has replaced."""
    home = factor.node.block
    users = [user for user, offset in factor.uses if offset == side and _is_product(user) and user.block is home]
    products = [user for user in users if user.inputs[1 - side] is not factor and not db.has_writers(user)]
    return sorted(products, key=lambda node: node._position)


def _independent(products: list[Node], db: AliasDb) -> tuple[list[Node], set[Node]]:
    """The products that can be computed where the first stands, and the nodes in between that could go before it.

    One walk: what stays stands in the way of what uses it or reads what it writes to.
    """
    first, wanted, free = products[0], set(products), set[Node]()
    together, stays, written = [first], {first}, 0
    node = first.next
    while node is not None and node is not products[-1].next:
        if db.has_side_effects(node):
            break
        is_free = _is_pure(node, db) and not written & db.reads_of(node)
        if not is_free or any(value.node in stays for value in node.inputs):
            stays.add(node)
            written |= db.writes_of(node)
        elif node in wanted:
            together.append(node)
            stays.add(node)
        else:
            free.add(node)
        node = node.next
    return together, free


def _is_pure(node: Node, db: AliasDb) -> bool:
    return not (node.blocks or db.is_mutable(node) or db.is_nondeterministic(node))


def _needed(together: list[Node], free: set[Node]) -> list[Node]:
    """The nodes the products need that can move before the first product, in order."""
    needed, waiting = set[Node](), list(together)
    while waiting:
        for value in waiting.pop().inputs:
            if value.node in free and value.node not in needed:
                needed.add(value.node)
                waiting.append(value.node)
    return sorted(needed, key=lambda node: node._position)
