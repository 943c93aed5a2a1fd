"""Takes tensors apart before pointwise operators instead of after them, so that what follows can be fused with these.

    %s : Float(*, *) = aten::add(%x, %b, %1)              %l : Tensor[] = prim::ListConstruct(%x, %b)
    %p : Tensor, %q : Tensor =                            %w : Tensor[] = aten::broadcast_tensors(%l)
       prim::ConstantChunk[chunks=2, dim=1](%s)     →     %x2 : Tensor, %b2 : Tensor = prim::ListUnpack(%w)
    %r : Tensor = aten::tanh(%p)                          %x3 : Tensor, %x4 : Tensor =
    …                                                        prim::ConstantChunk[chunks=2, dim=1](%x2)
                                                          %b3 : Tensor, %b4 : Tensor =
                                                             prim::ConstantChunk[chunks=2, dim=1](%b2)
                                                          %p : Float(*, *) = aten::add(%x3, %b3, %1)
                                                          %q : Float(*, *) = aten::add(%x4, %b4, %1)
                                                          %r : Tensor = aten::tanh(%p)

Only where the tensors are known to have one dtype (one without dimensions would count for less otherwise), where nobody
else uses what is taken apart, nobody writes to any of it, and pointwise operators alone use the parts.
"""

from __future__ import annotations

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Graph, Node, Value
from engine.ir.ops import is_pure_pointwise
from engine.ir.rewrites import allowed
from engine.lang.types import TENSOR, ListType, TensorType


def move_chunks(graph: Graph) -> bool:
    """Move each chunk as far as it goes."""
    chunks = graph.find_all_nodes("prim::ConstantChunk")
    if not chunks:
        return False
    db, changed = AliasDb(graph), False
    for chunk in chunks:
        if _wants_to_move(chunk, db):
            changed |= _move(chunk, db)
    return changed


def _wants_to_move(chunk: Node, db: AliasDb) -> bool:
    users = [use.user for value in chunk.outputs for use in value.uses]
    if not users or not all(map(is_pure_pointwise, users)):
        return False
    return not db.has_output_writers(chunk) and not db.escapes(chunk.outputs)


def _move(chunk: Node, db: AliasDb) -> bool:
    leaves, operators = _operators_before(chunk, db)
    if not operators or not allowed(chunk, lambda: "\n".join(map(str, operators))):
        return False
    graph, count = chunk.graph, len(chunk.outputs)
    with graph.inserting_at(chunk, chunk.range):
        parts = {leaf: _parts(chunk, whole) for leaf, whole in zip(leaves, _broadcast(graph, leaves), strict=True)}
        for operator in reversed(operators):
            parts[operator.output] = [_apply(graph, operator, parts, index) for index in range(count)]
    for output, part in zip(chunk.outputs, parts[chunk.input], strict=True):
        output.replace_all_uses_with(part)
    chunk.destroy()
    for operator in operators:
        operator.destroy()
    return True


def _operators_before(chunk: Node, db: AliasDb) -> tuple[list[Value], list[Node]]:
    """The operators that the chunk can pass, the last first; and what then is to be taken apart."""
    leaves, operators = [chunk.input], list[Node]()
    passed = {chunk}
    while (value := next((v for v in leaves if _can_pass(v, passed, db)), None)) is not None:
        operators.append(value.node)
        passed.add(value.node)
        leaves.remove(value)
        leaves += [v for v in dict.fromkeys(value.node.inputs) if isinstance(v.type, TensorType) and v not in leaves]
    return leaves, operators


def _can_pass(value: Value, passed: set[Node], db: AliasDb) -> bool:
    node = value.node
    chunk = next(iter(passed))
    if node.block is not chunk.block or not is_pure_pointwise(node) or db.has_writers(node):
        return False
    if any(use.user not in passed for use in value.uses):
        return False
    types = [v.type for v in (*node.inputs, value) if isinstance(v.type, TensorType)]
    return types[0].dtype is not None and all(type.dtype is types[0].dtype for type in types)


def _broadcast(graph: Graph, leaves: list[Value]) -> list[Value]:
    if len(leaves) == 1:
        return leaves
    together = graph.append("prim::ListConstruct", leaves, [ListType(TENSOR)]).output
    shaped = graph.append("aten::broadcast_tensors", [together], [ListType(TENSOR)]).output
    return list(graph.append("prim::ListUnpack", [shaped], [TENSOR] * len(leaves)).outputs)


def _parts(chunk: Node, whole: Value) -> list[Value]:
    made = chunk.graph.append(chunk.kind, [whole], [value.type for value in chunk.outputs])
    return list(made.copy_attributes(chunk).outputs)


def _apply(graph: Graph, operator: Node, parts: dict[Value, list[Value]], index: int) -> Value:
    inputs = [parts[value][index] if value in parts else value for value in operator.inputs]
    return graph.append(operator.kind, inputs, [_without_sizes(operator.output)]).output


def _without_sizes(value: Value) -> TensorType:
    """The type of a part: what is known of the whole but for its sizes."""
    type = value.type
    assert isinstance(type, TensorType)
    rank = None if type.sizes is None else (None,) * len(type.sizes)
    return TensorType(type.dtype, rank, None, type.requires_grad, type.device)
