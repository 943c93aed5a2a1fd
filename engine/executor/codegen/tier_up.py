"""Tier-up: plans that come to call native entries after some calls.

In: a plan's function, and a way to write it anew with other functions for some nodes.  Out: the plan's entry at each
time.  A new plan's function is written out over numpy and counts its calls.  After as many as make an operator
worth compiling, one call runs with a look at what its pointwise operators are given; for those that native entries
take, the entries are asked for.  When they are there, the function is written with calls of them.  Operators whose
arguments native code has no form for (views with gaps, shapes that differ, long rows) stay as they were.

Native entries take tensors, so what goes from one to the next stays a tensor; see `unboxing` for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final

from engine.aten.dispatch.op import Op
from engine.executor.bytecode.operations import OPERATIONS
from engine.executor.codegen.source import GeneratedSource
from engine.executor.codegen.unboxing import makes_new_tensor
from engine.fuser import tiering
from engine.fuser.entries import forms, native
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of

Run = Callable[..., Any]
Write = Callable[[Mapping[Node, Run]], tuple[GeneratedSource, Run]]
"""Writes the plan's function with these functions of tensors for these nodes."""
Install = Callable[[GeneratedSource, Run], None]

_PATIENCE: Final = 50
"""The number of calls before the next check that everything has been compiled."""


def pointwise(graph: Graph) -> list[Node]:
    """The nodes that native entries may do; none where there are no such entries."""
    return list(_pointwise(graph)) if native.may_compile() else []


def _pointwise(graph: Graph) -> Iterator[Node]:
    for node in graph.all_nodes():
        op = op_of(node) if node.kind not in OPERATIONS else None
        if op is not None and forms.has_form(op):
            yield node


@dataclass(eq=False, slots=True)
class TierUp:
    """The state of one plan on its way to native entries: counting calls, noting arguments, waiting for compilation."""

    nodes: Sequence[Node]
    write: Write
    install: Install
    source: GeneratedSource
    run: Run
    kinds: dict[Node, str | None] = field(default_factory=dict)
    """The kind of native entry that takes each node's arguments; None if it varies."""

    def start(self) -> None:
        if self.nodes:
            self._count(native.SETTINGS.threshold, self._look)
        else:
            self.install(self.source, self.run)

    def begin_again(self) -> None:
        """Write the function anew, and count its calls from zero."""
        self.kinds.clear()
        self.source, self.run = self.write({})
        self.start()

    def _count(self, calls: int, then: Run) -> None:
        self.install(self.source, _counting(self.run, calls, then))

    def _look(self, *args: Any) -> Any:
        """A call that notes the kinds of arguments that operators get, and requests native entries for them."""
        makers = [(node, op) for node in self.nodes if makes_new_tensor(op := _op(node))]
        _, run = self.write({node: self._noting(node, op) for node, op in makers})
        try:
            return run(*args)
        finally:
            for node, kind in [*self.kinds.items()]:
                if kind is not None:
                    native.request(_op(node), kind)
            self._count(0 if tiering.is_idle() else _PATIENCE, self._settle)

    def _noting(self, node: Node, op: Op) -> Run:
        def run(*args: Any) -> Any:
            kind = forms.kind_taken(op, args)
            self.kinds[node] = kind if self.kinds.get(node, kind) == kind else None
            return op.run(*args)

        return run

    def _settle(self, *args: Any) -> Any:
        """A call of the function with native entries; of the present one while some are still being compiled."""
        if not tiering.is_idle():
            self._count(_PATIENCE, self._settle)
            return self.run(*args)
        found = {node: native.entry_of(_op(node), kind) for node, kind in self.kinds.items() if kind is not None}
        self.source, self.run = self.write({node: entry for node, entry in found.items() if entry is not None})
        self.install(self.source, self.run)
        return self.run(*args)


def _op(node: Node) -> Op:
    op = op_of(node)
    assert op is not None
    return op


def _counting(run: Run, calls: int, then: Run) -> Run:
    left = repeat(None, calls)

    def counting(*args: Any) -> Any:
        for _ in left:
            return run(*args)
        return then(*args)

    return counting
