"""The backward pass: gradients from results back to their inputs.

In: tensors, the gradients to begin with.  Out: `.grad` of leaves, or the gradients of given tensors.  Nodes are taken
latest first, each once all that its results were used for is done; a heap and a table of counts, no recursion.
Where only `.grad` of all leaves is needed, `leaf_backward` does it; this pass is the general one.
"""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from engine.aten.autograd.leaf_backward import Caught, Root, descend
from engine.aten.autograd.node import AccumulateGrad, Edge, Gradient, Node, Saved, edge_of
from engine.aten.autograd.specialised_recording import MovedBack
from engine.aten.autograd.steps import apply, call_tensor_hooks
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.grad_mode import MODE, with_recording
from engine.aten.values import libraries, promotion
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor, wrapped
from engine.lang import scalars
from engine.lang.errors import OperatorError, OperatorTypeError, OperatorValueError
from engine.lang.records import dataclass

Tensors = Tensor | Sequence[Tensor]
NodeResult = tuple[Node, int]


@dataclass(eq=False, slots=True)
class _Pass:
    """State of one backward pass: pending uses of each node, and the gradients that have arrived."""

    keep: bool
    wanted: dict[NodeResult, list[int]]
    """For gradients of given tensors: the node results they flow through, and their positions among the results."""
    found: list[Gradient]
    pending: dict[Node, int] = field(default_factory=dict)
    arrived: dict[Node, dict[int, Tensor]] = field(default_factory=dict)
    useful: set[Node] | None = None
    """Nodes on a path to the requested tensors; None: all nodes."""
    asked: set[Node] = field(default_factory=set)
    """Nodes whose own gradients are requested."""
    ready: list[tuple[float, int, Node]] = field(default_factory=list)
    checks_nan: bool = field(default_factory=lambda: MODE.checks_nan)

    def run(self, roots: Iterable[tuple[Edge, Tensor]]) -> None:
        for edge, gradient in roots:
            is_new = edge.node not in self.arrived
            self._arrive(edge.node, edge.input, gradient)
            if is_new and self.pending[edge.node] == 0:
                self._push(edge.node)
        while self.ready:
            node = heapq.heappop(self.ready)[2]
            inputs = self.arrived.pop(node, {})
            is_useful = self.useful is None or node in self.useful
            if is_useful or node in self.asked:
                call_tensor_hooks(node, inputs)
                self._find(node, inputs)
            if is_useful:
                self._send(node, apply(node, inputs, self.keep, self.checks_nan))

    def _push(self, node: Node) -> None:
        heapq.heappush(self.ready, (-node.sequence, id(node), node))

    def _arrive(self, node: Node, place: int, gradient: Tensor) -> None:
        inputs = self.arrived.get(node)
        if inputs is None:
            self.arrived[node] = {place: gradient}
            return
        before = inputs.get(place)
        inputs[place] = gradient if before is None else before + gradient

    def _send(self, node: Node, gradients: Sequence[Gradient]) -> None:
        """Gradients along the edges of a node; a node to which the last one came is ready."""
        for edge, gradient in zip(node.edges, gradients, strict=True):
            if edge is None:
                continue
            if gradient is not None:
                self._arrive(edge.node, edge.input, _beside(edge, gradient) if HOOKS.devices else gradient)
            self.pending[edge.node] -= 1
            if self.pending[edge.node] == 0:
                self._push(edge.node)

    def _find(self, node: Node, inputs: dict[int, Tensor]) -> None:
        for place, gradient in inputs.items():
            for position in self.wanted.get((node, place), ()):
                self.found[position] = gradient


def _beside(edge: Edge, gradient: Tensor) -> Tensor:
    """The gradient that a node gets, on the CPU if it is that of a number of the CPU which was used beside tensors of
    a device.

    Nodes do not tell where their results were; but where all that follows is on the CPU, it takes its gradients there.
    """
    if edge.form[0] or libraries.library_of(gradient.array) is None or not _is_all_on_cpu(edge.node):
        return gradient
    there: Tensor = run("to.device", gradient, scalars.CPU, gradient.dtype.number, False, False, None)
    return there


def _is_all_on_cpu(root: Node) -> bool:
    """True if all leaves and kept tensors of the node and those that follow are on the CPU, and nothing has come from
    there; what follows an operator that has moved tensors does not count, as that moves gradients."""
    stack, seen = [root], {root}
    while stack:
        node = stack.pop()
        moved = [hook for hook in node.hooks or () if isinstance(hook, MovedBack)]
        if any(home == scalars.CPU for hook in moved for home in hook.homes):
            return False
        if moved:
            continue
        if any(libraries.library_of(array) is not None for array in _arrays_of(node)):
            return False
        following = {edge.node for edge in node.edges if edge is not None} - seen
        seen |= following
        stack += following
    return True


def _arrays_of(node: Node) -> Iterator[Any]:
    """The arrays of the tensors that a node holds."""
    for value in node.held():
        for each in value if isinstance(value, list) else (value,):
            held = each.held if isinstance(each, Saved) else each
            yield held.array if isinstance(held, Tensor) else held


def _reachable(roots: Iterable[Node]) -> dict[Node, int]:
    """Every node on the way down, and how many edges lead to it."""
    uses: dict[Node, int] = dict.fromkeys(roots, 0)
    stack = list(uses)
    while stack:
        node = stack.pop()
        edges = node._edges
        for edge in node.edges if edges is None else edges:
            if edge is None:
                continue
            node = edge[0]
            count = uses.get(node)
            if count is None:
                stack.append(node)
            uses[node] = (count or 0) + 1
    return uses


def _useful(nodes: Iterable[Node], wanted: set[Node], accumulating: set[Node]) -> set[Node]:
    """The nodes from which the requested tensors are reachable; edges lead to earlier nodes or leaves."""
    leading: set[Node] = set()
    useful: set[Node] = set(accumulating)
    for node in sorted((n for n in nodes if not isinstance(n, AccumulateGrad)), key=lambda n: n.sequence):
        if any(edge is not None and (edge.node in wanted or edge.node in leading) for edge in node.edges):
            leading.add(node)
    return useful | leading


def _walk(
    outputs: Sequence[Tensor], gradients: Sequence[Tensor], keep: bool, create_graph: bool,
    inputs: Sequence[Tensor] | None, accumulate: bool,
) -> list[Gradient]:  # fmt: skip
    roots = [(edge, gradient) for t, gradient in zip(outputs, gradients, strict=True) if (edge := edge_of(t))]
    if not (MODE.checks_nan or HOOKS.devices or any(type(edge.node) is AccumulateGrad for edge, _ in roots)):
        places = [(edge.node, edge.input, gradient) for edge, gradient in roots]
        if inputs is None:
            _descend(places, keep, create_graph)
            return []
        if not accumulate and all(t._base is None and t._grad_fn is None for t in inputs):
            caught: Caught = dict.fromkeys(map(id, inputs))
            if _descend(places, keep, create_graph, caught):
                return [caught[id(t)] for t in inputs]
    uses = _reachable(edge.node for edge, _ in roots)
    state = _Pass(keep, {}, [None] * len(inputs or ()), uses)
    if inputs is not None:
        edges = [edge_of(t) for t in inputs]
        for position, edge in enumerate(edges):
            if edge is not None and not accumulate:
                state.wanted.setdefault((edge.node, edge.input), []).append(position)
        nodes = state.asked = {edge.node for edge in edges if edge is not None}
        leaves: set[Node] = {n for n in nodes if isinstance(n, AccumulateGrad)} if accumulate else set()
        state.useful = _useful(uses, nodes, leaves)
    with_recording(create_graph, state.run, roots)
    return state.found


def _descend(roots: Sequence[Root], keep: bool, create_graph: bool, caught: Caught | None = None) -> bool:
    return with_recording(create_graph, descend, roots, keep, caught)


# ------------------------------------------------------------------ public functions


def backward(
    tensors: Tensors, grad_tensors: Tensors | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, inputs: Tensors | None = None,
) -> None:  # fmt: skip
    """Add to `.grad` of the leaves (or of `inputs`) the gradients of `tensors`.

    `grad_tensors` are the gradients to begin with; a tensor of one element may go without.  `retain_graph` keeps what
    another backward pass needs (default: `create_graph`), `create_graph` records the backward pass itself.
    Raises OperatorError.
    """
    keep = create_graph if retain_graph is None else retain_graph
    is_special = inputs is not None or MODE.checks_nan or HOOKS.devices
    if isinstance(tensors, Tensor) and not is_special and tensors._base is None and tensors._grad_fn is not None:
        is_listed = isinstance(grad_tensors, (tuple, list)) and len(grad_tensors) == 1
        given: Any = grad_tensors[0] if is_listed else grad_tensors  # type: ignore[index]
        _descend([(tensors._grad_fn, tensors.output_nr, _begin(0, tensors, given))], keep, create_graph)
        return
    outputs = _listed(tensors)
    gradients = _initial(outputs, grad_tensors)
    wanted = None if inputs is None else _listed(inputs)
    if wanted is not None and not wanted:
        raise OperatorError("`inputs` argument to `backward()` cannot be empty.")
    for tensor in wanted or ():
        if not tensor.is_leaf:
            retain_grad(tensor)
    _walk(outputs, gradients, keep, create_graph, wanted, accumulate=True)


def grad(
    outputs: Tensors, inputs: Tensors, grad_outputs: Tensors | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`, one for each; `.grad` stays as it is.

    `allow_unused` gives None for inputs on which no output depends, `materialize_grads` zeros; without, they are
    refused.  Raises OperatorError.
    """
    results, wanted = _listed(outputs), _listed(inputs)
    if materialize_grads and allow_unused is False:
        raise OperatorValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not wanted:
        raise OperatorError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        return _batched(results, wanted, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    for tensor in wanted:
        if not tensor.requires_grad:
            raise OperatorError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    found = _walk(results, _initial(results, grad_outputs), keep, create_graph, wanted, accumulate=False)
    for i, gradient in enumerate(found):
        if gradient is None and materialize_grads:
            found[i] = Tensor(libraries.moved(np.zeros(wanted[i].array.shape, wanted[i].array.dtype), wanted[i].device))
        elif gradient is None and not allow_unused:
            raise OperatorError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
    return tuple(found)


def _batched(
    outputs: list[Tensor], inputs: list[Tensor], gradients: Any, retain_graph: bool | None, create_graph: bool,
    *more: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """One pass for each of the gradients that lie along the first dimension; theirs lie there, too."""
    given = _listed(gradients) if gradients is not None else []
    if len(given) != len(outputs):
        raise OperatorError("grad_outputs must be given for every output where is_grads_batched is set")
    count = given[0].array.shape[0] if given else 0
    keep = create_graph if retain_graph is None else retain_graph
    rows = [
        grad(outputs, inputs, [g if g is None else run("select.int", g, 0, i) for g in given],
             keep or i + 1 < count, create_graph, more[0], False, more[1])
        for i in range(count)
    ]  # fmt: skip
    columns = zip(*rows, strict=True)
    return tuple(None if column[0] is None else run("stack", list(column), 0) for column in columns)


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _initial(outputs: Sequence[Tensor], given: Tensors | Sequence[Tensor | None] | None) -> list[Tensor]:
    listed: list[Tensor | None] = [None] * len(outputs)
    if given is not None:
        listed = [given] if isinstance(given, Tensor) else list(given)
    if len(listed) != len(outputs):
        raise OperatorError(f"got {len(outputs)} tensors and {len(listed)} gradients")
    return [_begin(i, output, gradient) for i, (output, gradient) in enumerate(zip(outputs, listed, strict=True))]


def _begin(place: int, output: Tensor, gradient: Any) -> Tensor:
    """The gradient of an output: the given one, checked, or 1."""
    if not (output._requires_grad or output.requires_grad):
        raise OperatorError(
            f"element {place} of tensors does not require grad and does not have a grad_fn",
            hints=("nothing that it was computed from requires grad, or it was computed under torch.no_grad()",),
        )
    if gradient is None:
        if output.array.size != 1:
            raise OperatorError(
                "grad can be implicitly created only for scalar outputs",
                hints=(f"this output has the shape {list(output.shape)}: pass its gradient, or call .sum() first",),
            )
        d = output.array.dtype
        if promotion.rank(d) == 3:
            raise OperatorError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype!r}")
        ones = np.empty(output.array.shape, d)
        ones.fill(1)
        return wrapped(ones if not HOOKS.devices else libraries.moved(ones, output.device))
    if not isinstance(gradient, Tensor):
        raise OperatorTypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if gradient.array.shape != output.array.shape:
        raise OperatorError(
            f"Mismatch in shape: grad_output[{place}] has a shape of {gradient.shape!r} and output[{place}] has a "
            f"shape of {output.shape!r}."
        )
    return gradient


# ------------------------------------------------------------------ methods of tensors


def retain_grad(tensor: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf as its `.grad`.  Raises OperatorError."""
    if not tensor.requires_grad:
        raise OperatorError("can't retain_grad on Tensor that has requires_grad=False")
    node: Node | None = tensor.grad_fn
    if node is not None:
        node.retained = node.retained or {}
        node.retained[tensor.output_nr] = weakref.ref(tensor)
