"""The graph that a backward pass walks: nodes, edges, and the values that nodes keep.

In: tensors.  Out: the place in the graph where a tensor's gradient goes.  A node's inputs are the gradients of what an
operator returned, its outputs those of what the operator took; its edges say where the latter go.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Container, Sequence
from typing import Any, Final, NamedTuple

from engine.aten.dispatch.compose import cast, run
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.kernels.blocks import contiguous_copy
from engine.aten.values import xp
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor, wrapped
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

Gradient = Tensor | None
Hook = Callable[..., Any]

_make: Final[Callable[[type, Sequence[Any]], Any]] = tuple.__new__
numbers: Final = itertools.count()
"""Counter of recorded nodes."""
next_number: Final = numbers.__next__


class Form(NamedTuple):
    """Shape and dtype required of a gradient."""

    shape: tuple[int, ...]
    dtype: xp.NumpyDtype


class Edge(NamedTuple):
    """One input of a node, and the form of the gradient it takes."""

    node: Node
    input: int
    form: tuple[tuple[int, ...], xp.NumpyDtype]


class Node:
    """One step of the backward pass.

    `sequence` grows with time: of two nodes that are ready, the later goes first.  `tensor_hooks` are called with the
    gradient of one input and may replace it, `retained` are the tensors that keep it as `.grad`, `prehooks` and
    `hooks` see what goes in and what came out.

    `outputs` are the forms of its results, if known.  What is recorded names its `sources` only: for each edge a leaf,
    the node whose first result a tensor is, or the edge.  The edges are made of them when the node is first asked,
    mostly by a backward pass.
    """

    __slots__ = (
        "__weakref__", "_edges", "hooks", "outputs", "prehooks", "retained", "sequence", "sources", "tensor_hooks",
    )  # fmt: skip

    def __init__(self, edges: Sequence[Edge | None]) -> None:
        self.outputs: Sequence[tuple[tuple[int, ...], xp.NumpyDtype]] = ()
        self.tensor_hooks: list[tuple[int, Hook]] | None = None
        self.retained: dict[int, weakref.ref[Tensor]] | None = None
        self.hooks: list[Hook] | None = None
        self.prehooks: list[Hook] | None = None
        self._edges: Sequence[Edge | None] | None = edges
        self.sources: Sequence[Tensor | Node | Edge | None] = ()
        self.sequence: float = next_number()

    @property
    def edges(self) -> Sequence[Edge | None]:
        edges = self._edges
        if edges is None:
            self._edges = edges = [_edge_to(source) for source in self.sources]
        return edges

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple((None, 0) if edge is None else (edge.node, edge.input) for edge in self.edges)

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        """Gradients for the edges, from those of the outputs (None where there is none)."""
        raise NotImplementedError

    def __call__(self, *gradients: Gradient) -> Any:
        """Gradients for the edges, a tuple where there are several, from those of the outputs: None, as those that are
        not given, where there is none; further ones belong to no output."""
        missing = max(len(self.outputs) - len(gradients), 0)
        given = [*gradients[: len(self.outputs)], *(None for _ in range(missing))]
        is_any = any(each is not None for each in given)
        found = tuple(self.apply(given)) if is_any else (None,) * len(self.edges)
        return found[0] if len(found) == 1 else found

    def fresh(self, found: Sequence[Gradient]) -> Container[int]:
        """The `id`s of those of its gradients whose memory nothing else shares: a leaf may keep them as they are."""
        return ()

    def held(self) -> Sequence[Any]:
        """The values that the node keeps for the backward pass: tensors, lists of tensors, and others."""
        return ()

    def release(self) -> None:
        """Release the tensors saved for the backward pass."""

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(outgoing gradients, incoming gradients)` after the node; it may return others."""
        self.hooks = self.hooks or []
        return RemovableHandle(self.hooks, hook)

    def register_prehook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(incoming gradients)` before the node; it may return others."""
        self.prehooks = self.prehooks or []
        return RemovableHandle(self.prehooks, hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class AccumulateGrad(Node):
    """Node that adds gradients to the `.grad` of a leaf, which holds it weakly: it lives while it is referenced."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        self._edges = self.sources = self.outputs = ()
        self.tensor_hooks = self.retained = self.hooks = self.prehooks = None
        self.sequence = math.inf
        self.variable = variable

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def held(self) -> Sequence[Any]:
        return (self.variable,)

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        if gradients[0] is not None:
            accumulate(self.variable, gradients[0])
            hooks = self.variable._hooks
            for hook in tuple(hooks.accumulated) if hooks is not None else ():
                hook(self.variable)
        return ()


def accumulate(variable: Tensor, gradient: Tensor, is_fresh: bool = False) -> None:
    """Add to `.grad`, in place unless grad mode is enabled; a first gradient that `is_fresh` is not copied."""
    before = variable._grad
    if MODE.enabled:
        variable.grad = run("clone", gradient, 0) if before is None else before + gradient
    elif before is None:
        array = gradient.array
        if is_fresh and _is_whole(array):
            variable._grad = wrapped(array)
        else:
            variable.grad = wrapped(contiguous_copy(array))
    else:
        run("add_.Tensor", before, gradient, 1)


def _is_whole(array: Array) -> bool:
    """True if the elements follow one another and are all of the memory."""
    base = array.base
    return array.flags.c_contiguous and (base is None or base.nbytes == array.nbytes)


def _edge_to(source: Tensor | Node | Edge | None) -> Edge | None:
    edge: Edge
    if isinstance(source, Node):
        edge = _make(Edge, (source, 0, source.outputs[0]))
    elif isinstance(source, Tensor):
        array = source.array
        edge = _make(Edge, (accumulator(source), 0, (array.shape, array.dtype)))
    else:
        return source
    return edge


def edge_of(tensor: Tensor) -> Edge | None:
    """The edge that receives the tensor's gradient; None if the tensor does not require grad."""
    if not tensor.requires_grad:
        return None
    form = tensor.array.shape, tensor.array.dtype
    node: Node | None = tensor.grad_fn
    return Edge(accumulator(tensor), 0, form) if node is None else Edge(node, tensor.output_nr, form)


def source_of(tensor: Tensor) -> Tensor | Node | Edge | None:
    """The destination of the gradient of a tensor that requires grad, as nodes keep it."""
    if tensor.output_nr or (tensor._base is not None and tensor._seen != tensor._version):
        return edge_of(tensor)
    return tensor if tensor._grad_fn is None else tensor._grad_fn


def accumulator(leaf: Tensor) -> Node:
    """The leaf's node, the same one while it lives."""
    hooks = leaf._hooks or leaf.hooks()
    node: Node | None = None if hooks.accumulator is None else hooks.accumulator()
    if node is None:
        node = AccumulateGrad(leaf)
        node.tensor_hooks = hooks.before
        hooks.accumulator = weakref.ref(node)
    return node


class RemovableHandle:
    """A hook in a list, which `remove` takes out again."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook
        hooks.append(hook)

    def remove(self) -> None:
        self._hooks[:] = [hook for hook in self._hooks if hook is not self._hook]

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


# ------------------------------------------------------------------ kept values

_MODIFIED: Final = "one of the variables needed for gradient computation has been modified by an inplace operation"


def detached_alias(tensor: Tensor) -> Tensor:
    """A tensor without history over the same memory, with the same version counter."""
    return Tensor(tensor.array, storage=tensor.memory)


class Saved:
    """A tensor that a formula needs: its version tells whether it was written to in between.

    Of a result of the node itself (`output` >= 0) the array and its `storage` are kept, so that the node does not hold
    on to itself; when it is unpacked for a recorded backward pass it gets its history back.
    """

    __slots__ = ("held", "output", "storage", "version")
    held: Any
    storage: Storage | None

    def __init__(self, tensor: Tensor, output: int = -1) -> None:
        self.held, self.storage = (tensor, None) if output < 0 else (tensor.array, tensor.memory)
        self.version = tensor._version
        self.output = output

    def unpack(self, node: Node) -> Tensor:
        """The tensor; raises OperatorError when its values are not those that were saved."""
        is_result = self.output >= 0
        tensor = wrapped(self.held, self.storage) if is_result else self.held
        storage = tensor._storage
        if (0 if storage is None else storage.version) != self.version:
            raise self._modified(tensor, node)
        if is_result and MODE.enabled:
            tensor.attach(node, self.output)
        return tensor

    def _modified(self, tensor: Tensor, node: Node) -> OperatorError:
        array, source = tensor.array, node if self.output >= 0 else tensor.grad_fn
        place = max(self.output, 0) if self.output >= 0 else tensor.output_nr
        origin = f", which is output {place} of {source.name()}," if source is not None else ""
        return OperatorError(
            f"{_MODIFIED}: [torch.{xp.ir_name(array.dtype)}Tensor {list(array.shape)}]{origin} is at version "
            f"{tensor._version}; expected version {self.version} instead.",
            hints=("write the in-place operator that came after as one that returns a new tensor",),
        )


def used_twice() -> OperatorError:
    return OperatorError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward."
    )


# ------------------------------------------------------------------ the form of gradients


def fitted(gradient: Tensor, form: tuple[tuple[int, ...], xp.NumpyDtype]) -> Tensor:
    """The gradient summed down to a shape that was broadcast, and in the right dtype."""
    array, (shape, d) = gradient.array, form
    if array.shape != shape:
        gradient = sum_to_size(gradient, shape)
    if array.dtype is not d and array.dtype != d:
        gradient = cast(gradient, d)
    return gradient


def sum_to_size(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The sum over the dimensions along which `shape` was broadcast to the tensor's."""
    lead = x.array.ndim - len(shape)
    dims = [*range(lead), *(i + lead for i, size in enumerate(shape) if size == 1 != x.array.shape[i + lead])]
    if dims:
        x = run("sum.dim_IntList", x, dims, len(dims) > lead, None)
    return x if x.array.shape == shape else run("reshape", x, list(shape))


def fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """True if a tensor of shape `into` can be broadcast to `shape`."""
    tail = shape[len(shape) - len(into) :]
    return len(into) <= len(shape) and all(a in (1, b) for a, b in zip(into, tail, strict=True))
