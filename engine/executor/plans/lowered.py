"""Kernels of groups, and the compilers that make them.

In: the graph of a group, an example of a call.  Out: a `Lowered`, which plans bind.  Kernels are known by what they are
made of, in this process and, where the compiler has a `Keeper`, on disk: who finds one lowers nothing, and the binding
is made when somebody looks at it.

Note [What kernels are made of]
Lowering reads the structure of the group's graph, of tensors the dtype, sizes, strides and device, numbers, the dtype
that new tensors have, and the engine's sources.  Names of values are no part of it.  A group that holds something else
(an attribute that is no number, string or type) is lowered each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakValueDictionary

import numpy as np

from engine.aten.values import libraries, xp
from engine.aten.values.libraries import device_of
from engine.aten.values.promotion import DEFAULTS
from engine.aten.values.tensor import Tensor
from engine.executor.codegen.fusion_groups import Choice, is_plain, structure
from engine.executor.plans.tiers import Run
from engine.ir.graph import Graph, Node
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.interpreter_settings import deep_recursion
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.fuser.groups import from_graph
    from engine.fuser.stubs import binding as bindings
    from engine.fuser.stubs import cost as costs
else:
    from_graph = deferred("engine.fuser.groups.from_graph")
    bindings = deferred("engine.fuser.stubs.binding")
    costs = deferred("engine.fuser.stubs.cost")

Layout = tuple[Any, ...]
"""Dtype, sizes, strides and device of each argument that is a tensor, the type of others."""
Example = tuple[Sequence[Any], Sequence[Any]]
"""Arguments of a call, and its results."""
Sizes = tuple[tuple[int | None, ...], ...]
"""Of each argument the sizes that a kernel is for; None, and no sizes at all: any."""
Refusal = tuple[int, str]
"""The number of the node in its graph that no kernel can hold, -1 for none of them, and why."""


def layout_of(args: Sequence[Any]) -> Layout:
    """All that tells calls of a group apart: of floats it is the type alone."""
    return tuple(
        (a.array.dtype, a.array.shape, a.array.strides, device_of(a.array)) if isinstance(a, Tensor)
        else (type(a), a) if isinstance(a, int) else type(a) for a in args
    )  # fmt: skip


class Keeper(Protocol):
    """A place on disk for kernels, by text that says what they are made of."""

    def find(self, made_of: str) -> Any:
        """The kernel as `bind` takes it, or a `Refusal`; None where nobody tried."""

    def keep(self, made_of: str, found: Any) -> None: ...

    def forget(self, made_of: str, found: Any) -> None:
        """Remove the kernel, and its code."""

    def is_kept(self, found: Any) -> bool:
        """True of a kernel whose code was on disk."""


@dataclass(slots=True)
class Compiler:
    """The steps that turn groups into kernels."""

    is_fusible: Choice
    lower: Callable[[Graph, Sequence[Any], Sequence[Any]], bindings.Binding]
    """A kernel of the group's graph for arguments and with results like these.  Raises NotFused."""
    bind: Callable[[str, Sequence[Any], Run], Run]
    """A function that runs the first kernel whose guard holds, else the last argument; kernels are as prepared."""
    show: Callable[[Any], str]
    """The text of a kernel or an expression."""
    prepare: Callable[[bindings.Binding], Any] = lambda binding: binding
    """A kernel as `bind` takes it."""
    keeper: Keeper | None = None
    makes_beside: Callable[[Graph, Example, Sizes], bool] = lambda *group: False
    """True once another process has tried to make the kernel, which the keeper has then, or why there is none."""
    cost: Callable[[bindings.Binding, Sequence[Any]], costs.Cost | None] = lambda *call: costs.cost_of(*call)
    """The work of a call with arguments like these."""
    known: WeakValueDictionary[Hashable, Lowered] = field(default_factory=WeakValueDictionary)
    """Kernels of plans by what they are made of: layers of a model often do the same."""

    def lowered(self, graph: Graph, example: Example, sizes: Sizes = ()) -> Lowered:
        """The kernel that was made for the like before, here or in another process; else a new one.

        Raises NotFused.
        """
        key = structure(graph), *map(layout_of, example), sizes
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._found(Lowered(self, graph, example, sizes), key)
        return found

    def stored(self, graph: Graph, example: Example, sizes: Sizes = ()) -> Lowered | None:
        """The same where it was made before; nothing is lowered.  Raises AbiError or MachineError."""
        key = structure(graph), *map(layout_of, example), sizes
        found = self.known.get(key)
        if found is None and self.keeper is not None and is_plain(graph):
            prepared = self.keeper.find(_made_of(key, example))
            if prepared is not None and not isinstance(prepared, tuple):
                found = self.known[key] = Lowered(self, graph, example, sizes, prepared, is_doubtful=True)
        return found

    def forget(self, lowered: Lowered) -> None:
        """Let nobody find the kernel any more, here or on disk; who has it keeps it."""
        key = structure(lowered.graph), *map(layout_of, lowered.example), lowered.sizes
        self.known.pop(key, None)
        if self.keeper is not None:
            self.keeper.forget(_made_of(key, lowered.example), lowered.prepared)

    def _found(self, new: Lowered, key: Hashable) -> Lowered:
        keeper = self.keeper if is_plain(new.graph) else None
        if keeper is None:
            new.prepared = self.prepare(new.binding)
            return new
        made_of = _made_of(key, new.example)
        found = keeper.find(made_of)
        if found is None and self.makes_beside(new.graph, new.example, new.sizes):
            found = keeper.find(made_of)
        if isinstance(found, tuple):
            raise _refused(new.graph, *found)
        new.is_doubtful = found is not None
        if found is None:
            try:
                found = self.prepare(new.binding)
            except from_graph.NotFused as why:
                keeper.keep(made_of, (_number(new.graph, why.node), str(why)))
                raise
            keeper.keep(made_of, found)
            new.is_doubtful = keeper.is_kept(found)
        new.prepared = found
        return new


def _made_of(key: Hashable, example: Example) -> str:
    """All that the kernel of that key depends on.  See Note [What kernels are made of]."""
    numbers = [a for a in example[0] if isinstance(a, float)]
    return f"{key!r} {numbers!r} {DEFAULTS.floating}"


def flat_example(example: Example) -> tuple[Any, ...] | None:
    """The example as plain data; None where it is not of numbers and tensors of the CPU."""
    found = [[_flat(value) for value in values] for values in example]
    return None if any(value is None for values in found for value in values) else tuple(map(tuple, found))


def _flat(value: Any) -> tuple[Any, ...] | None:
    if not isinstance(value, Tensor):
        return ("", value) if value is None or type(value) in (int, float, bool) else None
    array = value.array
    if type(array) is not np.ndarray or array.dtype not in xp.FROM_NUMPY:
        return None
    return "tensor", xp.FROM_NUMPY[array.dtype].number, array.shape, array.strides


def example_of(data: tuple[Any, ...]) -> Example:
    """The example again; tensors hold one element, and are not read."""
    args, results = ([_value(*each) for each in values] for values in data)
    return args, results


def _value(kind: str, *facts: Any) -> Any:
    if not kind:
        return facts[0]
    number, shape, strides = facts
    return Tensor(libraries.like(np.empty(shape, xp.numpy_dtype(number)), strides))


def _refused(graph: Graph, number: int, why: str) -> Exception:
    nodes = [*graph.nodes()]
    return from_graph.NotFused(nodes[number] if 0 <= number < len(nodes) else graph.return_node, why)


def _number(graph: Graph, node: Node) -> int:
    return next((i for i, each in enumerate(graph.nodes()) if each is node), -1)


@dataclass(eq=False, slots=True, weakref_slot=True)
class Lowered:
    """A kernel of a group's graph for calls like the example, and for arguments of these sizes alone."""

    compiler: Compiler
    graph: Graph
    example: Example
    sizes: Sizes
    prepared: Any = None
    """The kernel as the compiler's `bind` takes it."""
    is_doubtful: bool = False
    """True of a kernel from disk, until it was compared with the interpreter (`verifying.py`), if it ever is."""
    _binding: bindings.Binding | None = None
    _flat: tuple[tuple[Any, ...] | None, ...] = ()

    @property
    def flat(self) -> tuple[Any, ...] | None:
        """The example as plain data, if it is that (`flat_example`)."""
        self._flat = self._flat or (flat_example(self.example),)
        return self._flat[0]

    @property
    def binding(self) -> bindings.Binding:
        """The binding, made when it is first asked for: one on disk has its code alone.  Raises NotFused."""
        if self._binding is None:
            with deep_recursion():  # expressions are as deep as chains of nodes are long
                made = self.compiler.lower(self.graph, *self.example)
            self._binding = bindings.with_sizes(made, self.sizes) if self.sizes else made
        return self._binding


@dataclass(slots=True)
class Settings:
    """`compilers` are those in use, by type of device; a device that has none fuses nothing.

    Kernels take tensors on the device that they were lowered for, and those of an accelerator numbers of the CPU, too.
    They leave calls to the fallback while anything is traced or recorded, and where a guard fails.
    """

    compilers: dict[str, Compiler | None] = field(default_factory=dict)

    def compiler_for(self, accelerator: scalars.device | None) -> Compiler | None:
        """The compiler for tensors on that device; None is the CPU."""
        kind = (accelerator or scalars.CPU).type
        if kind not in self.compilers and kind in COMPILERS:
            self.compilers[kind] = import_module(COMPILERS[kind]).COMPILER
        return self.compilers.get(kind)


COMPILERS: Final[Mapping[str, str]] = {
    "cpu": "engine.executor.plans.cpu_kernels", "cuda": "engine.executor.plans.cuda_kernels",
}  # fmt: skip
"""Types of devices and the modules that have their compilers, each loaded with the first plan for such a device."""


SETTINGS: Final = Settings()
