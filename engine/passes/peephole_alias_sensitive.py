"""Simplifies what PyTorch's peephole pass does by a look at aliases, for callers that ask for that pass.

    conv2d(x, …).dim()              →   4                  where nothing writes to the result
    x + 0, x - 0, x * 1             →   x                  with ints, or floats where the type of x is of floats
    x / 1                           →   x                  where the type of x is of floats

Trusts its caller: a convolution's input has a batch, sums of -0.0 and 0 may stay -0.0, and tensors of no known dtype
are no bools.  So the executor leaves it out.  A result becomes `x` only where nobody could write to the one and see it
in the other, and of several that share memory one at a time.
"""

from __future__ import annotations

from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import asks_only
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.ir.rewriting.peepholes import apply_rules
from engine.lang.types import INT, TensorType

_DIMENSIONS: Final = {"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}
_NEUTRAL: Final = {"aten::add": 0, "aten::sub": 0, "aten::mul": 1, "aten::div": 1}


def peephole_alias_sensitive(graph: Graph, *, shapes: bool = True) -> bool:
    """Apply the rules once; without `shapes`, no dtype in a tensor's type counts."""
    aliases = AliasDb(graph)
    stale: list[Value] = []
    """Values that share memory with a value that has got more uses: nothing that the aliases say of them holds."""

    def dimensions(node: Node) -> Value | None:
        known = _DIMENSIONS.get(node.input.node.kind)
        return None if known is None or aliases.has_writers(node.input) else insert_constant(graph, known)

    def operand(node: Node) -> Value | None:
        if not _computes_nothing(node, shapes):
            return None
        pair = [node.inputs[0], node.output]
        if not aliases.safe_to_change_aliasing_relationship(*pair) or (stale and aliases.may_alias(pair, stale)):
            return None
        stale.extend(pair)
        return pair[0]

    changed = apply_rules(graph, {"aten::dim": dimensions, **dict.fromkeys(_NEUTRAL, operand)})
    if changed:
        remove_dead_code(graph, keep_writes=True)
    return changed


def _computes_nothing(node: Node, shapes: bool) -> bool:
    """True for a tensor and the number that leaves it as it is, of a type that leaves its dtype."""
    tensor, number, *factor = node.inputs
    if not isinstance(tensor.type, TensorType) or not asks_only(node, "self", "other", "alpha"):
        return False
    wanted = [(number, _NEUTRAL[node.kind]), *((value, 1) for value in factor)]
    if not all(isinstance(value := constant_value(v), int | float) and value == w for v, w in wanted):
        return False
    dtype = tensor.type.dtype if shapes else None
    if dtype is not None and dtype.is_floating_point:
        return True
    is_int = all(value.type == INT for value, _ in wanted)
    return is_int and node.kind != "aten::div" and (dtype is None or dtype.category != "bool")
