"""Single rewrites of passes: counted, limited, and told to who watches.

In: passes ask `allowed(node, becomes)` before each rewrite, and leave the graph as it is where the answer is no.
Out: a `Rewrite` to every watch of the running pass; each may refuse it.  While nobody watches, asking costs a look at
one attribute.  The log, the optimization limit and the search for a rewrite that breaks a program are watches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from engine.ir.graph import Graph, Node, Value
from engine.lang.records import dataclass
from engine.lang.types import Type

Becomes = Value | Node | str | Sequence[Value | None] | Callable[[], str] | None
"""The replacement of a node: values, a node, a description (or a function that makes one); None if it is removed."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite that a pass is about to make; `number` counts those of this run of the pass, from 1."""

    pass_name: str
    number: int
    node: Node
    becomes: Becomes = None

    @property
    def text(self) -> str:
        """The rewrite in words, in one or more lines."""
        before, after = str(self.node), _shown(self.becomes)
        return f"Removing\n{before}" if after is None else f"Replacing\n{before}\nwith\n{after}"

    def __str__(self) -> str:
        return self.text


def _shown(becomes: Becomes) -> str | None:
    if becomes is None or isinstance(becomes, str):
        return becomes
    if isinstance(becomes, Value):
        is_input = becomes.node.kind == "prim::Param"
        return f"%{becomes.debug_name} : {becomes.type}" if is_input else str(becomes.node)
    if isinstance(becomes, Node):
        return str(becomes)
    if callable(becomes):
        return becomes()
    return "\n".join(_shown(each) or "(nothing)" for each in becomes)


Watch = Callable[[Rewrite], bool]
"""A callback that returns True if the rewrite may happen."""


class _Run:
    """A pass that runs while somebody watches."""

    __slots__ = ("count", "name", "watches")

    def __init__(self, name: str, watches: tuple[Watch, ...]) -> None:
        self.name, self.watches, self.count = name, watches, 0

    def ask(self, node: Node, becomes: Becomes) -> bool:
        rewrite = Rewrite(self.name, self.count + 1, node, becomes)
        if not all(watch(rewrite) for watch in self.watches):
            return False
        self.count += 1
        return True


class _OfThread(threading.local):
    run: _Run | None = None
    watches: tuple[Watch, ...] = ()


_THREAD: Final = _OfThread()


def allowed(node: Node, becomes: Becomes = None) -> bool:
    """May the running pass rewrite the node?  Counts it if so."""
    run = _THREAD.run
    return run is None or run.ask(node, becomes)


def retype(value: Value, type: Type) -> bool:
    """Give the value another type if the rewrite of its node is allowed; True if it changed."""
    if type == value.type or not allowed(value.node, lambda: f"%{value.debug_name} : {type}"):
        return False
    value.set_type(type)
    return True


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """While the block runs, the watch is asked about the rewrites of this thread's passes."""
    before = _THREAD.watches
    _THREAD.watches = (*before, watch)
    try:
        yield
    finally:
        _THREAD.watches = before


def run_watched(name: str, run: Callable[[Graph], bool], graph: Graph, watches: tuple[Watch, ...]) -> bool:
    """Run a pass of that name with these watches, and those of the thread, asked about its rewrites."""
    before, everyone = _THREAD.run, (*_THREAD.watches, *watches)
    _THREAD.run = _Run(name, everyone) if everyone else None
    try:
        return run(graph)
    finally:
        _THREAD.run = before


def is_watched() -> bool:
    """True if a listener watches the passes of this thread."""
    return bool(_THREAD.watches) or _THREAD.run is not None
