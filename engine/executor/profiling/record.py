"""`ProfilingRecord`: a graph that notes what its tensors are, for a number of runs.

In: a graph.  Out: a copy with a `prim::profile` before every use of a tensor, in blocks too, and the profiles.

    %y : Tensor = aten::mul(%x, %x)       →     %1 : Tensor = prim::profile(%x)
                                                %2 : Tensor = prim::profile(%x)
                                                %y : Tensor = aten::mul(%1, %2)

The interpreter runs the copy; each `prim::profile` hands its value to its `ValueProfile` and gives it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from engine.executor.profiling.profiles import ValueProfile, symbolic_text, symbols
from engine.ir.clone import copy_graph
from engine.ir.facts.program_text import own_range, value_name
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.records import dataclass
from engine.lang.types import TensorType, Type, unwrap_optional

PROFILE: Final = "prim::profile"
PROFILED: Final = "profiled_type"
"""The attribute of a `prim::profile` that holds its profile."""
_SILENT: Final = ("prim::Constant", "prim::Uninitialized")


@dataclass(eq=False, slots=True)
class ProfilingRecord:
    """`graph` is the copy to be run `wanted` times; `runs` have begun so far."""

    graph: Graph
    wanted: int
    profiles: list[ValueProfile] = field(default_factory=list)
    runs: int = 0

    @classmethod
    def of(cls, graph: Graph, wanted: int) -> ProfilingRecord:
        found = cls(copy_graph(graph), wanted)
        for block in _blocks(found.graph.block):
            for node in [*block.nodes(), block.return_node]:
                for offset in range(len(node.inputs)):
                    found._insert(node, offset)
        return found

    def _insert(self, user: Node, offset: int) -> None:
        value = user.inputs[offset]
        if not _is_profiled(value):
            return
        place = own_range(user) or own_range(value.node)
        profile = ValueProfile(value.debug_name, place, user.kind, value_name(value))
        with self.graph.inserting_at(user, place):
            node = self.graph.append(PROFILE, [value], [value.type])
        node.set_attr(PROFILED, profile, "ival")
        user.replace_input(offset, node.output)
        self.profiles.append(profile)

    @property
    def is_ready(self) -> bool:
        """True if the graph has run as often as wanted."""
        return self.runs >= self.wanted

    def begin_run(self) -> None:
        """Count one more run, which begins now."""
        self.runs += 1
        for profile in self.profiles:
            profile.run = self.runs

    def begin_round(self) -> None:
        """Want one more run, after which the profiles tell the types of that one as well."""
        self.wanted = self.runs + 1
        for profile in self.profiles:
            profile.begin_round()

    def texts(self) -> list[str]:
        """The profiled type of each use, with one name for dimensions that varied together."""
        names = symbols(self.profiles)
        return [symbolic_text(profile, names) for profile in self.profiles]


def _is_profiled(value: Value) -> bool:
    return _is_tensor(value.type) and value.node.kind not in _SILENT


def _is_tensor(type: Type) -> bool:
    return isinstance(unwrap_optional(type), TensorType)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for node in block.nodes():
        for inner in node.blocks:
            yield from _blocks(inner)
