"""The backward pass from results to all leaves, for passes that need no other gradients.

In: nodes, each with the gradient of one of its results.  Out: gradients, added to `.grad` of the leaves or handed over.
Nodes are taken latest first, each once all that its results were used for is done.

Nothing unused is allocated here: a node's sources are its edges, and a leaf has a node of its own only where
a program has asked for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from engine.aten.autograd.node import AccumulateGrad, Edge, Gradient, Node, accumulate, accumulator, fitted
from engine.aten.autograd.record import OperatorNode
from engine.aten.autograd.steps import apply, call_tensor_hooks
from engine.aten.values.tensor import Tensor

Root = tuple[Node, int, Tensor]
Arrived = dict[Any, Tensor]
Caught = dict[int, Gradient]
"""The gradients of leaves, by their `id`."""
Others = dict[Node, dict[int, Tensor]]


def descend(roots: Sequence[Root], keep: bool, caught: Caught | None = None) -> bool:
    """The whole pass; `keep` retains the graph for another one.  The roots are not AccumulateGrad nodes.

    With `caught` nothing is added to `.grad`, and what would be goes there; False, and nothing done, where there are
    other leaves than those that it names.

    What is under way is known by node, and by the `id` of a leaf, since tensors compare their elements: `pending` are
    the uses that are still to come, `arrived` the gradients that have, `others` those of results after a node's first.
    """
    pending = _uses([node for node, _, _ in roots])
    if caught is not None and not all(key in caught for key in pending if type(key) is int):
        return False
    arrived: Arrived = {}
    others: Others = {}
    fresh: Container[int] = ()
    ready: list[tuple[float, int, Node]] = []
    for root, input, begin in roots:
        _arrive(arrived, others, root, input, begin)
    following = _first(roots, pending, ready)
    while following is not None or ready:
        node = heapq.heappop(ready)[2] if following is None else following
        following = None
        if node in arrived and type(node) is OperatorNode and _is_plain(node):
            step = node.plan.step
            given: list[Gradient] = [arrived.pop(node)]
            found, fresh = node.step(given) if step is None else step(node, given), ()
            if not keep:
                node.release()
        else:
            found = _apply(node, arrived, others, keep)
            fresh = () if node.hooks else node.fresh(found)
        source: Any
        target: Any
        key: Any
        for source, gradient in zip(node.sources or node._edges or (), found, strict=True):
            if type(source) is OperatorNode:
                target = key = source
                place, form = 0, source.outputs[0]
            elif source is None:
                continue
            else:
                target, key, place, form = _place_of(source)
            if gradient is not None:
                array = gradient.array
                if array.dtype is not form[1] or array.shape != form[0]:
                    gradient = fitted(gradient, form)
                if place or key in arrived:
                    _arrive(arrived, others, key, place, gradient)
                else:
                    arrived[key] = gradient
            pending[key] = left = pending[key] - 1
            if left:
                continue
            if key is not target:
                _end(target, arrived.pop(key, None), keep, caught, fresh)
                continue
            if following is not None:
                _push(ready, following)
            following = target
        if following is not None and ready:
            _push(ready, following)
            following = None
    return True


def _is_plain(node: OperatorNode) -> bool:
    """True if its step needs no more than the gradient of its first result."""
    if node.tensor_hooks or node.retained or node.prehooks or node.hooks:
        return False
    return len(node.outputs) == 1 or node.plan.recipe.begins_with_first


def _first(roots: Sequence[Root], pending: Mapping[Any, int], ready: list[tuple[float, int, Node]]) -> Node | None:
    """The root, if there is only one; otherwise None, with the roots that no other root reaches put into `ready`."""
    if len(roots) == 1:
        return roots[0][0]
    for node in {root[0] for root in roots}:
        if not pending[node]:
            _push(ready, node)
    return None


def _push(ready: list[tuple[float, int, Node]], node: Node) -> None:
    heapq.heappush(ready, (-node.sequence, id(node), node))


def _arrive(arrived: Arrived, others: Others, key: Any, place: int, gradient: Tensor) -> None:
    if place == 0:
        arrived[key] = arrived[key] + gradient if key in arrived else gradient
        return
    there = others.setdefault(key, {})
    there[place] = there[place] + gradient if place in there else gradient


def _apply(node: Node, arrived: Arrived, others: Others, keep: bool) -> Sequence[Gradient]:
    """A node's gradients for its sources, with all that may hang on it."""
    inputs = others.pop(node, {})
    if node in arrived:
        inputs[0] = arrived.pop(node)
    call_tensor_hooks(node, inputs)
    return apply(node, inputs, keep)


def _end(leaf: Tensor, gradient: Gradient, keep: bool, caught: Caught | None, fresh: Container[int]) -> None:
    """All of a leaf's gradient is there; nothing but the pass has those that are `fresh`."""
    if gradient is None:
        return
    if leaf._hooks is None and caught is None:
        accumulate(leaf, gradient, id(gradient) in fresh)
        return
    node, inputs = accumulator(leaf), {0: gradient}
    call_tensor_hooks(node, inputs)
    if caught is None:
        apply(node, inputs, keep)
    else:
        caught[id(leaf)] = inputs[0]


def _place_of(source: Any) -> tuple[Any, Any, int, Any]:
    """The destination of a source's gradient: node or leaf, its key, the index of its result, and the form.
    Leaves are keyed by `id`, with or without a node."""
    if isinstance(source, Tensor):
        array = source.array
        return source, id(source), 0, (array.shape, array.dtype)
    node, place, form = source if type(source) is Edge else (source, 0, source.outputs[0])
    if type(node) is AccumulateGrad:
        return node.variable, id(node.variable), 0, form
    return node, node, place, form


def _uses(roots: Iterable[Node]) -> dict[Any, int]:
    """Number of edges that lead to each reachable node and leaf."""
    uses: dict[Any, int] = dict.fromkeys(roots, 0)
    stack = list(uses)
    source: Any
    target: Any
    key: Any
    while stack:
        node = stack.pop()
        for source in node.sources or node._edges or ():
            if type(source) is OperatorNode:
                target = key = source
            elif isinstance(source, Tensor):
                target, key = source, id(source)
            elif source is None:
                continue
            else:
                target, key, _, _ = _place_of(source)
            if key in uses:
                uses[key] += 1
                continue
            uses[key] = 1
            if key is target:
                stack.append(target)
    return uses
