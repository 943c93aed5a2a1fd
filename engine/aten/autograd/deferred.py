"""Deferred recording: histories of regions are built when first needed.

In: the arrays that a region of generated code computed.  Out: its results know that they have a history; the nodes of
the operators are made when a backward pass (or a program) first looks behind them.  So a program that records gradients
and never asks for them pays for a list of arrays, and a backward pass finds the same nodes as ever.

Note [What a record holds]
Values that formulas read are held from the start, as nodes would; of other values only the forms.  The state of a
tensor from outside when the region ran (its memory and version, the node it came from) is noted, for it may be
another one when the nodes are made: versions that differ raise the usual error when a value is unpacked.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final
from weakref import ref

import numpy as np

from engine.aten.autograd.node import Edge, Gradient, Node, RemovableHandle, Saved, next_number
from engine.aten.dispatch.grad_mode import MODE, enable
from engine.aten.values import promotion, xp
from engine.aten.values.storage import Storage, storage_of
from engine.aten.values.tensor import Tensor, wrapped

_new: Final[Callable[..., Any]] = object.__new__
_LOCK: Final = threading.RLock()
"""Nodes are made by one thread at a time."""
_OFTEN: Final = 8
"""Number of requested histories before statistics are evaluated."""


class Deferred(Node):
    """The grad_fn of one result of a deferred region: passes its gradient on to the operator's own node."""

    __slots__ = ("_found", "record")
    _found: tuple[Node | Edge | None] | None
    record: Record | None

    @property
    def sources(self) -> tuple[Node | Edge | None]:  # type: ignore[override]
        if self._found is None:
            with _LOCK:
                if self.record is not None:
                    self.record.unfold()
        assert self._found is not None
        return self._found

    @property
    def behind(self) -> Node | None:
        """The operator's own node."""
        (source,) = self.sources
        return source.node if isinstance(source, Edge) else source

    def name(self) -> str:
        return "None" if self.behind is None else self.behind.name()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return () if self.behind is None else self.behind.next_functions

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return super().register_hook(hook) if self.behind is None else self.behind.register_hook(hook)

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        return gradients


_look: Final = attrgetter("array", "_grad_fn", "output_nr", "_storage")
Seen = tuple[Any, Any, int, Storage | None]


class Record:
    """One run of a region: its outside tensors with their states, values, and the nodes of results."""

    __slots__ = ("flags", "nodes", "number", "region", "seen", "storages", "tensors", "values", "versions")
    region: DeferredRegion
    flags: tuple[bool, ...]
    tensors: tuple[Tensor | None, ...]
    seen: list[Seen | None]
    versions: list[int]
    values: tuple[Any, ...]
    storages: dict[int, tuple[Storage, int]]
    nodes: list[Any]
    number: float

    def unfold(self) -> None:
        """Make the nodes of the operators, and let those of the results know them."""
        self.region.note_unfolding()
        outside = [*map(self._outside, range(len(self.tensors)))]
        changed = self._changed(outside)
        made: list[Any] = []
        before = enable(True)
        try:
            self.region.make(outside, self.values, self, made)
        finally:
            enable(before)
        nodes = [node for node in made if node is not None]
        for place, node in enumerate(nodes, start=1):
            node.sequence = self.number - 1 + place / (len(nodes) + 1)
        if changed:
            stood_for = {id(made): tensor for made, tensor in zip(outside, self.tensors, strict=True)}
            _hold_to_versions(nodes, changed, stood_for)
        for found in self.nodes:
            result = None if found is None else found()
            if result is not None and result.record is not None:
                result._found, result.record = (None,), None

    def _outside(self, place: int) -> Tensor | None:
        """A tensor from outside, as it was."""
        tensor, seen = self.tensors[place], self.seen[place]
        if tensor is None or seen is None:
            return None
        array, grad_fn, output, storage = seen
        if self.flags[place] and grad_fn is None:
            return tensor
        if storage is None and tensor.array is array:
            storage = tensor._storage
        made = wrapped(array, storage)
        if self.flags[place]:
            made._grad_fn, made._requires_grad, made.output_nr = grad_fn, True, output
        return made

    def _changed(self, outside: Sequence[Tensor | None]) -> dict[int, tuple[Storage, int]]:
        """Memory that was written to since, by its id, with the version that it had."""
        pairs = [(t._storage, version) for t, version in zip(outside, self.versions, strict=True) if t is not None]
        pairs += self.storages.values()
        return {id(s): (s, version) for s, version in pairs if s is not None and s.version != version}

    def through(self, place: int, tensor: Tensor) -> None:
        """Make the tensor the region's result of that index, with that result's node as its history."""
        found = self.nodes[place]
        node = None if found is None else found()
        inner = tensor._grad_fn
        if node is None or inner is None:
            return
        is_first = tensor.output_nr == 0
        node._found = (inner if is_first else Edge(inner, tensor.output_nr, (tensor.array.shape, tensor.array.dtype)),)
        node.record = None
        tensor._grad_fn, tensor.output_nr = node, 0


def _hold_to_versions(
    nodes: Sequence[Any], changed: dict[int, tuple[Storage, int]], stood_for: dict[int, Tensor | None]
) -> None:
    """Reset saved tensors whose memory was written to in between to the earlier version and the tensor itself, so
    that their error is raised and names it."""
    for node in nodes:
        for value in getattr(node, "kept", None) or ():
            for saved in value if isinstance(value, list) else (value,):
                if isinstance(saved, Saved):
                    storage = saved.held._storage if saved.output < 0 else saved.storage
                    if id(storage) in changed:
                        saved.version = changed[id(storage)][1]
                        saved.held = stood_for.get(id(saved.held), saved.held)


class DeferredRegion:
    """A region of generated code.  `make(outside, values, record, made)` makes the nodes; of each result `depends`
    says which tensors from outside it depends on, and `held` which results formulas read.  `when_asked` is called once
    most histories are asked for, since to record at once costs less then."""

    __slots__ = ("_asked", "_known", "_make", "_noted", "depends", "held", "when_asked", "write")

    def __init__(
        self, write: Callable[[], Callable[..., None]], depends: Sequence[frozenset[int]], held: Sequence[int]
    ) -> None:
        self.write, self.depends, self.held = write, depends, held
        self._make: Callable[..., None] | None = None
        self._known: dict[tuple[bool, ...], list[int]] = {}
        self._noted = self._asked = 0
        self.when_asked: Callable[[], None] | None = None

    @property
    def make(self) -> Callable[..., None]:
        if self._make is None:
            self._make = self.write()
        return self._make

    def note_unfolding(self) -> None:
        self._asked += 1
        if self.when_asked is not None and self._asked >= _OFTEN and 2 * self._asked >= self._noted:
            change, self.when_asked = self.when_asked, None
            change()

    def __call__(self, tensors: tuple[Tensor | None, ...], values: tuple[Any, ...], results: Sequence[Tensor]) -> None:
        """Let the results know their history, if they have one."""
        flags = tuple([t is not None and (t._requires_grad if t._base is None else _view_requires(t)) for t in tensors])
        wanted = self._known.get(flags)
        if wanted is None:
            wanted = self._known[flags] = [
                place for place, depends in enumerate(self.depends) if any(flags[i] for i in depends)
            ]
        if not wanted or not MODE.enabled:
            return
        self._noted += 1
        record: Record = _new(Record)
        record.region, record.flags, record.tensors, record.values = self, flags, tensors, values
        record.seen = seen = [None if t is None else _look(t) for t in tensors]
        record.versions = [0 if s is None or s[3] is None else s[3].version for s in seen]
        record.nodes = [None] * len(results)
        record.storages = {}
        for place in self.held:
            tensor = results[place]
            if tensor._storage is None:
                tensor._storage = storage_of(tensor.array)
            record.storages[place] = tensor._storage, tensor._storage.version
        record.number = next_number()
        for place in wanted:
            tensor = results[place]
            array = tensor.array
            d = array.dtype
            if d is not xp.FLOAT32 and promotion.rank(d) < 2:
                continue
            node: Deferred = _new(Deferred)
            node._edges = node._found = None
            node.record, node.sequence = record, next_number()
            node.tensor_hooks = node.retained = node.hooks = node.prehooks = None
            node.outputs = ((array.shape, d),)
            record.nodes[place] = ref(node)
            tensor._grad_fn = node
            tensor._requires_grad = True


def _view_requires(tensor: Tensor) -> bool:
    """True if the view requires grad, in which case its node is up to date."""
    return tensor.grad_fn is not None or tensor._requires_grad


# ------------------------------------------------------------------ helpers of generated functions


def hollow(form: tuple[tuple[int, ...], xp.NumpyDtype]) -> Tensor:
    """A tensor that has nothing but a form."""
    return wrapped(np.ndarray(form[0], form[1], np.zeros((), form[1]), 0, (0,) * len(form[0])))


def shown(array: Any, source: Tensor) -> Tensor:
    """A tensor of an array that may show memory of the source, and then has its version."""
    shares = array is source.array or np.may_share_memory(array, source.array)
    return wrapped(array, source.memory if shares else None)


def again(made: list[Any], run: Callable[..., Any], *arguments: Any) -> Any:
    """Run an operator once more, to be recorded; the nodes that came of it are put behind those that were made."""
    start = next_number()
    found = run(*arguments)
    waiting = [t._grad_fn for t in (found if isinstance(found, tuple) else (found,))]
    nodes: dict[int, Node] = {}
    while waiting:
        source = waiting.pop()
        node = source.node if isinstance(source, Edge) else source
        if isinstance(node, Node) and start < node.sequence < math.inf and id(node) not in nodes:
            nodes[id(node)] = node
            waiting += node.sources or node._edges or ()
    made += sorted(nodes.values(), key=lambda node: node.sequence)
    return found
