"""Lets prepacked layers clamp what they give.

    %p : …LinearOpContext =                               %p : …LinearOpContext =
      prepacked::linear_clamp_prepack(%w, %b, %n, %n) →     prepacked::linear_clamp_prepack(%w, %b, %0, %n)
    %1 : Tensor = prepacked::linear_clamp_run(%x, %p)     %y : Tensor = prepacked::linear_clamp_run(%x, %p)
    %y : Tensor = aten::relu(%1)

So do `relu6`, `hardtanh`, `clamp` by numbers, and their forms in place, where nothing else uses the layer's result and
the layer does not clamp yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from engine.ir.constants import NOT_CONSTANT, constant_value, insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.ir.rewrites import allowed

_Limits = tuple[Any, Any]


def fuse_prepacked_clamp(graph: Graph) -> bool:
    """Fuse each such pair; of several in a row the first."""
    changed = False
    for node in [*graph.all_nodes()]:
        limits = _limits(node)
        if limits is not None and _may_clamp(node.inputs[0].node, node) and allowed(node, "the limits of its layer"):
            _fuse(graph, node, limits)
            changed = True
    return changed


def _limits(node: Node) -> _Limits | None:
    """The range that the node clamps to; None for a node that does not, or where only the run tells."""
    read = _READERS.get(node.kind.removesuffix("_"))
    entry = op_of(node) if read is not None else None
    if read is None or entry is None or entry.overload:
        return None
    found = read([constant_value(value) for value in node.inputs[1:]])
    is_known = all(each is None or type(each) in (int, float) for each in found)
    given = [each for each in found if each is not None] if is_known else []
    return found if given and given == sorted(given) and all(each == each for each in given) else None


def _may_clamp(run: Node, clamp: Node) -> bool:
    """True for a layer whose result only the clamp uses, and that does not clamp itself."""
    if not (run.kind.startswith("prepacked::") and run.kind.endswith("_clamp_run")) or run.block is not clamp.block:
        return False
    packed = run.inputs[1].node
    if packed.kind != run.kind.replace("_run", "_prepack") or len(run.output.uses) != 1:
        return False
    return all(constant_value(value) is None for value in packed.inputs[-2:])


def _fuse(graph: Graph, clamp: Node, limits: _Limits) -> None:
    run = clamp.inputs[0].node
    packed = run.inputs[1].node
    with graph.inserting_at(run, packed.range):
        ends = [insert_constant(graph, each) for each in limits]
        made = graph.append(packed.kind, [*packed.inputs[:-2], *ends], [packed.output.type]).output
    run.replace_input(1, made)
    clamp.output.replace_all_uses_with(run.output)
    clamp.destroy()
    if not packed.output.has_uses:
        packed.destroy()


_READERS: Final[dict[str, Callable[[list[Any]], _Limits]]] = {
    "aten::relu": lambda _: (0, None),
    "aten::relu6": lambda _: (0, 6),
    "aten::hardtanh": lambda given: (given[0], given[1]) if None not in given else (NOT_CONSTANT, None),
    "aten::clamp": lambda given: (given[0], given[1]),
    "aten::clamp_min": lambda given: (given[0], None),
    "aten::clamp_max": lambda given: (None, given[0]),
}
"""Operator, without the mark of its form in place -> its limits by its other arguments."""
