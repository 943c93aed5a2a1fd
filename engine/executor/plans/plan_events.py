"""Events about plans, and `listening` to them.

In: nothing.  Out: the events; a pass that runs while a plan is made is told as `engine.passes.pipeline.PassEvent`.
"""

from __future__ import annotations

from engine.executor.plans.spec import ArgumentSpec
from engine.lang.records import dataclass
from engine.lang.source import SourceRange


@dataclass(frozen=True, slots=True)
class PlanLookup:
    """A call looked for its plan.  `reason` says why there was none: the difference from the call before."""

    function: str
    spec: ArgumentSpec
    hit: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlanCompiled:
    """A plan was made.  `tier` is "generated" or "interpreted", `reason` why it is not the former."""

    function: str
    spec: ArgumentSpec
    tier: str
    seconds: float
    nodes: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlanEvicted:
    """A full cache evicted its least recently used plan."""

    function: str
    plans: int


@dataclass(frozen=True, slots=True)
class ValuesProfiled:
    """A run begins that notes what values are: number `run` of those `wanted`."""

    function: str
    spec: ArgumentSpec
    run: int
    wanted: int


@dataclass(frozen=True, slots=True)
class GuardFailed:
    """A plan was left: a value is not what it was when profiled.  `expected` and `actual` are types as text, `name` is
    the value's name as people write it."""

    function: str
    value: str
    range: SourceRange | None
    expected: str
    actual: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class GroupFormed:
    """Nodes of a function are to run as one kernel; `graph` is their text."""

    function: str
    group: str
    graph: str


@dataclass(frozen=True, slots=True)
class KernelCompiled:
    """A group got a kernel."""

    function: str
    group: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NodeNotFused:
    """A node that was in a group turned out to fit in no kernel."""

    function: str
    kind: str
    range: SourceRange | None
    why: str


@dataclass(frozen=True, slots=True)
class GraphDifferentiated:
    """A group of a function was split for arguments of some sizes; `forward` is the text of its first half."""

    function: str
    group: str
    forward: str


@dataclass(frozen=True, slots=True)
class KeptRefused:
    """An entry from disk gave other results than the interpreter, and was removed (`TSREPL_VERIFY`)."""

    function: str
    what: str
    difference: str
