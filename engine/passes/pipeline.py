"""Runs passes by name, and tells who listens.

In: names of passes (modules of this package, each with one function of its own name) and a graph.  Out:
the graph, changed.  A listener gets a `PassEvent` after each pass: the pass explorer, the verifier and
the log are listeners.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from engine import passes
from engine.ir.graph import Graph
from engine.ir.verify import verify
from engine.lang.errors import CompileError, did_you_mean

Pass = Callable[..., bool]

ALIASES: Final = {
    "lower_tuples": "lower_all_tuples",
    "eliminate_dead_code": "dce",
    "eliminate_common_subexpression": "cse",
}
SIMPLIFY: Final = ("peephole", "constant_propagation", "cse", "dce", "constant_pooling")
OPTIMIZE: Final = ("inline", *SIMPLIFY)
PIPELINES: Final[dict[str, tuple[str, ...]]] = {"simplify": SIMPLIFY, "optimize": OPTIMIZE}
_NOT_PASSES: Final = ("pipeline",)


@dataclass(frozen=True, slots=True)
class PassEvent:
    """One pass ran on `graph`, which later passes may change; the texts stay."""

    name: str
    graph: Graph
    before_text: str
    after_text: str
    changed: bool
    seconds: float

    def nodes_touched(self) -> int:
        """How many lines of the text the pass removed or wrote, whichever is more."""
        before, after = Counter(self.before_text.splitlines()), Counter(self.after_text.splitlines())
        return max((before - after).total(), (after - before).total())


Listener = Callable[[PassEvent], None]


def names() -> list[str]:
    """Every pass there is."""
    return sorted(module.name for module in iter_modules(passes.__path__) if module.name not in _NOT_PASSES)


def run_pass(name: str, graph: Graph, listener: Listener | None = None) -> bool:
    """Run one pass on the graph; did it change?  Raises CompileError when there is no such pass."""
    function = find_pass(name)
    if listener is None:
        return function(graph)
    before = str(graph)
    start = time.perf_counter()
    changed = function(graph)
    seconds = time.perf_counter() - start
    listener(PassEvent(name, graph, before, str(graph), changed, seconds))
    return changed


def run_pipeline(pass_names: Iterable[str], graph: Graph, listener: Listener | None = None) -> bool:
    """Run the passes in order; did any change the graph?"""
    changed = False
    for name in pass_names:
        changed |= run_pass(name, graph, listener)
    return changed


@cache
def find_pass(name: str) -> Pass:
    """The pass of that name.  Raises CompileError."""
    known = names()
    module = ALIASES.get(name, name)
    if module not in known:
        raise CompileError(f"there is no pass '{name}'", hints=did_you_mean(name, known))
    found: Pass = getattr(import_module(f"{passes.__name__}.{module}"), module)
    return found


def verifier(event: PassEvent) -> None:
    """A listener that checks the graph after each pass."""
    try:
        verify(event.graph)
    except AssertionError as error:
        raise AssertionError(f"{event.name} broke the graph: {error}\nwhich was\n{event.before_text}") from error
