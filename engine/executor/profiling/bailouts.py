"""Bailouts: where guards fail, the rest of the program goes on in the interpreter.

In: a graph with `prim::Guard`s.  Out: the same with `prim::BailOut`s, whose `Subgraph` is the rest of the program from
there on, as a function of the values that are alive, and whose `site` checks the value and remembers failures.

    %1 : Float(2, 3) = prim::Guard(%x)      %1 : Float(2, 3) = prim::BailOut[site=…](%x, %n)
    %2 : Tensor = aten::mul(%1, %n)    →    %2 : Tensor = aten::mul(%1, %n)
    return (%2)                             return (%2)
                                            with graph(%x, %n): %2 = aten::mul(%x, %n); return (%2)

Note [The rest of a program]
The rest of a block is the nodes behind the guard.  Behind a branch comes what follows its If.  Behind the body of a
loop come the rounds that are left, a new loop whose numbers begin with that of the next round, and then what follows.
What was done before is done: written memory is among the live values, and nothing of it runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, Final

from engine.aten.values.libraries import device_of
from engine.aten.values.tensor import Tensor
from engine.executor.profiling.guards import GUARD
from engine.executor.profiling.profiles import type_of
from engine.ir.clone import ValueMap, copy_node
from engine.ir.constants import constant_value, insert_constant
from engine.ir.facts.program_text import value_name
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.records import dataclass
from engine.lang.scalars import CPU, device
from engine.lang.source import SourceRange
from engine.lang.types import INT, TensorType

BAIL_OUT: Final = "prim::BailOut"
SITE: Final = "site"
"""The attribute of a `prim::BailOut` that holds its `BailoutSite`."""
MAX_FAILURES: Final = 8
"""Failures that are remembered of a site, the first ones; all are counted."""
_MAX_TRIP_COUNT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class GuardFailure:
    """`requested`: the guard failed because somebody asked for it."""

    expected: TensorType
    actual: TensorType
    requested: bool


@dataclass(eq=False, slots=True)
class BailoutSite:
    """A guard of a plan; called with the value, it is True if the plan has to be left.

    `on_failure` is called with every failure, `rest` is the rest of the program, `code` its instructions, once the
    interpreter has made them.  `shape`, `dtype` and `device` are those of the value that passed last: generated code
    compares them itself, the device where that `may_vary`, and calls only for a value that differs.
    """

    function: str
    number: int
    value: str
    range: SourceRange | None
    expected: TensorType
    rest: Graph
    on_failure: Callable[[BailoutSite, GuardFailure], object]
    name: str = ""
    """The value's name as people write it."""
    count: int = 0
    failures: list[GuardFailure] = field(default_factory=list)
    code: Any = None
    shape: Any = None
    dtype: Any = None
    device: Any = None
    may_vary: bool = False
    _requested: bool = False

    def request(self) -> None:
        """Let the next check fail."""
        self._requested, self.shape = True, None

    def __call__(self, value: Tensor) -> bool:
        if not self._requested and _is_of(value, self.expected):
            array = value.array
            self.dtype, self.shape, self.device = array.dtype, array.shape, device_of(array)
            return False
        failure = GuardFailure(self.expected, type_of(value), self._requested)
        self._requested = False
        self.count += 1
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(failure)
        self.on_failure(self, failure)
        return True

    def __str__(self) -> str:
        return f"{self.number}: {self.expected}"


def _is_of(value: Tensor, wanted: TensorType) -> bool:
    if wanted.dtype is not None and value.dtype != wanted.dtype:
        return False
    if wanted.device is not None and device_of(value.array) != wanted.device:
        return False
    if wanted.sizes is None:
        return True
    shape = value.array.shape
    return len(shape) == len(wanted.sizes) and all(
        size is None or size == have for size, have in zip(wanted.sizes, shape, strict=True)
    )


OnFailure = Callable[[BailoutSite, GuardFailure], object]


def insert_bailouts(
    graph: Graph, function: str, on_failure: OnFailure, everywhere: device | None = CPU
) -> list[BailoutSite]:
    """Turn the guards into bailouts; their sites, in the order in which they stand.

    `everywhere` is the device of all tensors; None: any.
    """
    guards = graph.find_all_nodes(GUARD)
    rests = [_Rest.behind(guard) for guard in guards]
    sites: list[BailoutSite] = []
    now: ValueMap = {}
    for number, (guard, rest) in enumerate(zip(guards, rests, strict=True)):
        expected = guard.output.type
        assert isinstance(expected, TensorType)
        value, name = guard.input.debug_name, value_name(guard.input)
        site = BailoutSite(function, number, value, guard.range, expected, rest.graph, on_failure, name)
        site.may_vary = everywhere is None and expected.device is not None
        live = [now.get(value, value) for value in rest.live]
        node = graph.create(BAIL_OUT, [guard.input, *live], [expected]).insert_before(guard)
        node.range = guard.range
        node.set_attr(SITE, site, "ival")
        node.set_attr("Subgraph", rest.graph)
        guard.output.replace_all_uses_with(node.output)
        now[guard.output] = node.output
        guard.destroy()
        sites.append(site)
    return sites


@dataclass(eq=False, slots=True)
class _Rest:
    """The rest of a program while it is written: `live` are the values that become the inputs of its graph."""

    graph: Graph = field(default_factory=Graph)
    live: list[Value] = field(default_factory=list)
    values: ValueMap = field(default_factory=dict)

    @classmethod
    def behind(cls, guard: Node) -> _Rest:
        found = cls()
        assert guard.block is not None
        found.values[guard.output] = found.of(guard.input)
        found._block(guard.block, guard.next)
        _drop_guards(found.graph)
        return found

    def of(self, value: Value) -> Value:
        """The value in the rest that stands for one of the original: a constant, an input, or a copy."""
        if value not in self.values:
            constant = value.node.kind == "prim::Constant"
            self.values[value] = self._constant(value.node) if constant else self._input(value)
        return self.values[value]

    def _constant(self, node: Node) -> Value:
        first = next(self.graph.nodes(), self.graph.return_node)
        return copy_node(node, self.graph, {}).insert_before(first).output

    def _input(self, value: Value) -> Value:
        self.live.append(value)
        return self.graph.add_input("", value.type).copy_metadata(value)

    # -- blocks

    def _block(self, block: Block, first: Node | None) -> None:
        """Copy the nodes of the block from `first` on, and what follows the block."""
        node = first
        while node is not None and node is not block.return_node:
            self._copy(node)
            node = node.next
        given = [self.of(value) for value in block.outputs]
        owner = block.owner
        if owner is None:
            for value in given:
                self.graph.register_output(value)
            return
        outputs = given if owner.kind == "prim::If" else self._rounds_left(owner, given)
        self.values |= dict(zip(owner.outputs, outputs, strict=True))
        assert owner.block is not None
        self._block(owner.block, owner.next)

    def _copy(self, node: Node) -> None:
        self._take([*node.inputs, *(value for block in node.blocks for value in _free_values(block))])
        self.graph.insert_node(copy_node(node, self.graph, self.values))

    def _take(self, values: Iterable[Value]) -> None:
        for value in values:
            self.of(value)

    def _rounds_left(self, loop: Node, given: list[Value]) -> list[Value]:
        """A loop for the rounds that are left after the one that has given these values; its results."""
        (body,) = loop.blocks
        self._take(_free_values(body))
        one = insert_constant(self.graph, 1)
        done = self._number("aten::add", self.of(body.inputs[0]), one)
        count = self.of(loop.inputs[0])
        if constant_value(loop.inputs[0]) != _MAX_TRIP_COUNT:
            count = self._number("aten::sub", count, done)
        rest = self.graph.append("prim::Loop", [count, *given], [value.type for value in loop.outputs])
        rest.range = loop.range
        inner, values = rest.add_block(), dict(self.values)
        number = inner.add_input(INT)
        with self.graph.inserting_at(inner):
            values[body.inputs[0]] = self._number("aten::add", number, done)
            for value in body.inputs[1:]:
                values[value] = inner.add_input(value.type)
            for node in body.nodes():
                self.graph.insert_node(copy_node(node, self.graph, values))
        for value in body.outputs:
            inner.register_output(values[value])
        return rest.outputs

    def _number(self, kind: str, a: Value, b: Value) -> Value:
        return self.graph.append(kind, [a, b], [INT]).output


def _free_values(block: Block) -> list[Value]:
    """The values from outside that the block uses."""
    own: set[Value] = set()
    found: list[Value] = []

    def visit(block: Block) -> None:
        own.update(block.inputs)
        for node in [*block.nodes(), block.return_node]:
            found.extend(value for value in node.inputs if value not in own)
            for inner in node.blocks:
                visit(inner)
            own.update(node.outputs)

    visit(block)
    return found


def _drop_guards(graph: Graph) -> None:
    for guard in graph.find_all_nodes(GUARD):
        guard.output.replace_all_uses_with(guard.input)
        guard.destroy()
