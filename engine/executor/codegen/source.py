"""A graph as the source of one Python function.

In: a graph, and facts about its values.  Out: `GeneratedSource`: text, the objects that it names, and for each line its
node.  Values are local variables (`v3`; `a3` for the bare array of a tensor), If and Loop are Python's
own control flow, operators are expressions (`templates`, `unboxing`) or calls.  The same graph gives the same text.

    graph(%n : int):                                  def f(v0):
      %zero : int = prim::Constant[value=0]()             v1 = 0
      %t : bool = prim::Constant[value=1]()               for v2 in range(v0):
      %s : int = prim::Loop(%n, %t, %zero)        →           v3 = v1 + v2
        block0(%i : int, %acc : int):                         if not LOW <= v3 <= HIGH: v3 = wrap(v3)
          %next : int = aten::add(%acc, %i)                   v1 = v3
          -> (%t, %next)                                  return v1
      return (%s)

Note [Order in memory]
numpy lays out results in another way than PyTorch where operands lie differently.  A pointwise expression therefore is
followed by `if turned: a3 = ordered_like(a3, (a1, a2))`.  `turned` is true once an operand was met that is not in C
order: operands that no such expression made are looked at before they are first used, at most once in a block.

Note [Moved expressions]
An expression of numbers that cannot fail and is used once stands where it is used.  Its inputs are never assigned in
between: every variable is assigned in one place, and those that a loop carries at the end of an iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Protocol

import numpy as np

from engine.aten.kernels.rules import ordered_like
from engine.aten.values import xp
from engine.aten.values.libraries import device_of
from engine.aten.values.tensor import Tensor, fresh_lines, wrapped
from engine.executor.bytecode.operations import CALLEES, OPERATIONS, operation_of
from engine.executor.codegen.builder import FunctionBuilder
from engine.executor.codegen.lifetimes import Deaths
from engine.executor.codegen.loop_conditions import ATOMS, carried_place, condition_of, qualified_name
from engine.executor.codegen.ranges import HIGH, LOW, Ranges
from engine.executor.codegen.templates import NAMES, ROWS, Row, asks, question
from engine.executor.codegen.unboxing import Unboxing
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.unit import Function
from engine.lang.records import dataclass
from engine.lang.types import NONE, ClassType, TensorType

FUNCTION: Final = "run"
MAX_TRIP_COUNT: Final = 2**63 - 1
_ENVIRONMENT: Final[dict[str, Any]] = {
    **NAMES, "LOW": LOW, "HIGH": HIGH, "Tensor": Tensor, "new": object.__new__, "ndarray": np.ndarray,
    "asarray": np.asarray, "quiet": xp.quiet, "loud": xp.loud, "place": device_of, "FROM_NUMPY": xp.FROM_NUMPY,
    "wrapped": wrapped, "ordered_like": ordered_like,
}  # fmt: skip
_SUSPENDING: Final = ("prim::fork", "aten::wait", "prim::Enter", "prim::Exit", "prim::BailOut")
"""Nodes that are neither operators nor plain calls."""


class Slot(Protocol):
    """The way to run a node with a subgraph.  Generated code asks for `run` at each call, so its text is written once,
    whatever kernels come and go."""

    @property
    def run(self) -> Callable[..., Any]: ...


NO_SLOTS: Final[Mapping[Node, Slot]] = {}


class NotGenerated(Exception):
    """The graph has to be run by the interpreter, for the reason in the message."""


@dataclass(slots=True)
class GeneratedSource:
    """`nodes[i]` is the node of line i + 1.  `calls`: the function takes the depth of calls as one more argument.
    `waits`: it may have to wait for a future, and keeps its thread meanwhile."""

    text: str
    environment: dict[str, Any]
    nodes: tuple[Node | None, ...]
    calls: bool
    waits: bool
    variables: dict[Value, str]
    """Values -> the variables that hold them while the function runs."""
    genuine: frozenset[Node]
    """Nodes that are calls, whose errors are the operator's own; other nodes raise Python's errors."""


def generate(
    graph: Graph,
    *,
    records: bool,
    name: str = "f",
    groups: Mapping[Node, Slot] = NO_SLOTS,
) -> GeneratedSource:
    """Write the function.  Raises NotGenerated.

    `records`: operators may have to be recorded for gradients; `groups`: the slots of nodes with subgraphs; `name`: the
    name of forked parts.
    """
    return PlanWriter(graph, Unboxing(graph, records), name, groups).write()


@dataclass(eq=False, slots=True)
class PlanWriter:
    """Writes one graph as a function: control flow and nodes, line by line into `out`."""

    graph: Graph
    unboxing: Unboxing
    name: str
    groups: Mapping[Node, Slot]
    out: FunctionBuilder = field(default_factory=lambda: FunctionBuilder(dict(_ENVIRONMENT)))
    deaths: Deaths = field(init=False)
    ranges: Ranges = field(init=False)
    absorbed: set[Node] = field(default_factory=set)
    """Nodes that the condition of a loop stands for."""
    calls: bool = False
    genuine: set[Node] = field(default_factory=set)
    seen: set[Value] = field(default_factory=set)
    """Values that `turned` tells of.  See Note [Order in memory]."""

    def __post_init__(self) -> None:
        self.deaths, self.ranges = Deaths(self.graph), Ranges(self.graph)

    def write(self) -> GeneratedSource:
        self.calls = any(node.kind in CALLEES for node in self.graph.all_nodes())
        quiet = any(map(self.unboxing.is_unboxed, self.graph.all_nodes()))
        waits = self.graph.find_node("aten::wait") is not None
        enters = self.graph.find_node("prim::Enter") is not None
        inputs = [self.out.define(value) for value in self.graph.inputs]
        parameters = [*inputs, *(["depth=0"] * self.calls)]
        self.out.line(f"def {FUNCTION}({', '.join(parameters)}):")
        self.out.indent = 1
        if quiet:
            self.out.line("token = quiet()")
            self.out.line("try:")
            self.out.indent = 2
        if enters:
            self.out.line("entered = []")
            self.out.line("try:")
            self.out.indent += 1
        if any(map(self.unboxing.operands, self.graph.all_nodes())):
            self.out.line(f"turned = {self.unboxing.reseats}")
        self.load_arrays()
        self.block(self.graph.block)
        self.out.line(f"return {self.results()}", self.graph.return_node)
        if enters:
            self.out.indent -= 1
            for line in ("except AssertionError: raise", "except Exception:", "    leave(entered)", "    raise"):
                self.out.line(line)
        if quiet:
            self.out.indent = 1
            self.out.line("finally:")
            self.out.indent = 2
            self.out.line("loud(token)")
        variables = {**self.out.arrays, **self.out.names}
        text = "\n".join(self.out.lines) + "\n"
        out, genuine = self.out, frozenset(self.genuine)
        return GeneratedSource(text, out.environment, tuple(out.nodes), self.calls, waits, variables, genuine)

    def results(self) -> str:
        outputs = [self.out.value(value) for value in self.graph.outputs]
        return outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})" if outputs else "None"

    def load_arrays(self) -> None:
        """Read the arrays of arguments once, if no tensor may come to have another array."""
        if self.unboxing.reseats:
            return
        for value in self.graph.inputs:
            if (
                isinstance(value.type, TensorType)
                and value.type.dtype
                and any(map(self.unboxing.takes_array, value.uses))
            ):
                self.out.arrays[value] = name = "a" + self.out.names[value][1:]
                self.out.line(f"{name} = {self.out.names[value]}.array")

    # -- lines and names

    def forget(self, values: Iterable[Value], keep: Sequence[str] = ()) -> None:
        """Clear the variables of values that die here."""
        held = [table[v] for v in values for table in (self.out.names, self.out.arrays) if v in table]
        names = [name for name in dict.fromkeys(held) if name not in keep]
        if names:
            self.out.line(f"{' = '.join(names)} = None")

    # -- nodes

    def block(self, block: Block) -> None:
        before = self.seen.copy()
        self.forget(self.deaths.at_start.get(block, ()))
        loops = [node for node in block.nodes() if node.kind == "prim::Loop"]
        conditions = {loop: condition_of(loop) for loop in loops}
        for found in conditions.values():
            self.absorbed.update(found or ())
        for node in block.nodes():
            if node.kind == "prim::Constant" or node in self.absorbed:
                continue
            if node.kind == "prim::If":
                self.write_if(node)
            elif node.kind == "prim::Loop":
                self.write_loop(node, conditions[node])
            else:
                self.write_node(node)
            self.forget(self.deaths.after.get(node, ()))
        self.seen = before

    def write_node(self, node: Node) -> None:
        if node in self.groups:
            self.genuine.add(node)
            slot = self.out.bind("group", self.groups[node])
            self.give(node, f"{slot}.run({', '.join(map(self.out.value, node.inputs))})")
            return
        if node.has_attribute("Subgraph") and node.kind not in (*_SUSPENDING, *OPERATIONS):
            raise NotGenerated(f"{node.kind} needs the interpreter")
        if asks(node):
            self.ask(node)
            return
        if self.unboxing.gives_list(node):
            self.out.line(f"{self.out.define(node.output)} = [{', '.join(map(self.out.array, node.inputs))}]", node)
            return
        if self.unboxing.gives_parts(node):
            self.give(node, self.unboxing.text(node, self.out.array, self.out.value, self.out.bind)[0])
            return
        if self.unboxing.is_unboxed(node):
            self.write_array(node)
            return
        if node.kind == "prim::ListUnpack" and self.unboxing.gives_parts(node.input.node):
            unpack(self, node, "a")
            return
        row = None if node.kind in _SUSPENDING else self.row(node)
        if row is not None:
            self.write_row(node, row)
        elif node.kind in NODES:
            NODES[node.kind](self, node)
        else:
            operation = self.operation(node)
            self.give(node, f"{operation}({', '.join(map(self.out.value, node.inputs))})")

    def give(self, node: Node, text: str) -> None:
        """Assign the expression to the node's outputs."""
        if not node.outputs:
            self.out.line(text, node)
            return
        targets = ", ".join(map(self.out.define, node.outputs))
        self.out.line(f"{targets} = {text}", node)

    def operation(self, node: Node) -> str:
        """The name of the function that computes the node."""
        self.genuine.add(node)
        what = "".join(c if c.isalnum() else "_" for c in node.kind.partition("::")[2])
        return self.out.bind(what, operation_of(node))

    def ask(self, node: Node) -> None:
        """Write a query of a tensor's shape or dtype as an expression over its array."""
        self.give(node, question(node).format(self.out.array(node.inputs[0]), *map(self.out.value, node.inputs[1:])))

    def write_array(self, node: Node) -> None:
        operands = self.unboxing.operands(node)
        self.look_at(operands)
        arrays = "".join(self.out.array(value) + ", " for value in operands)
        text, is_array = self.unboxing.text(node, self.out.array, self.out.value, self.out.bind)
        names = [self.out.define(value, "a") for value in node.outputs]
        self.out.line(f"{', '.join(names)} = {text}", node)
        if operands:
            self.out.line(f"if turned: {names[0]} = ordered_like({names[0]}, ({arrays}))", node)
            self.seen.add(node.output)
        for name, value in zip(names, node.outputs, strict=True):
            if not is_array:
                self.out.line(f"if type({name}) is not ndarray: {name} = asarray({name})", node)
            if not all(map(self.unboxing.takes_array, value.uses)):
                self.wrap(value, name)

    def look_at(self, operands: Sequence[Value]) -> None:
        """Write lines that set `turned` for operands that are not in C order.  See Note [Order in memory]."""
        new = dict.fromkeys(v for v in operands if v not in self.seen and not self.unboxing.has_one_order(v))
        if new and not self.unboxing.reseats:
            checks = [f"{self.out.array(value)}.flags.c_contiguous" for value in new]
            self.out.line(f"if not ({' and '.join(checks)}): turned = True")
        self.seen.update(new)

    def wrap(self, value: Value, name: str) -> None:
        """Write lines that make a tensor of a new array."""
        self.out.names[value] = tensor = "v" + name[1:]
        for line in (f"{tensor} = new(Tensor)", f"{tensor}.array = {name}", *fresh_lines(tensor)):
            self.out.line(line)
        if self.unboxing.reseats:
            del self.out.arrays[value]
            self.out.line(f"{name} = None")

    # -- rows

    def row(self, node: Node) -> Row | None:
        if node.kind in OPERATIONS:
            return ROWS.get(node.kind)
        return ROWS.get(qualified_name(node))

    def write_row(self, node: Node, row: Row) -> None:
        first, second = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
        if row.largest and second is not None:
            low, high = self.ranges.of(second)
            if low < -row.largest or high > row.largest:
                self.give(node, f"{self.operation(node)}({', '.join(map(self.out.value, node.inputs))})")
                return
        text = row.text.format(*map(self.out.value, node.inputs))
        if row.is_statement:
            self.out.line(text, node)
            if node.output.has_uses:
                self.out.line(f"{self.out.define(node.output)} = {self.out.value(first)}", node)
            return
        if self.wraps(node, row):
            name = self.out.define(node.output)
            self.out.line(f"{name} = {text}", node)
            self.out.line(f"if not LOW <= {name} <= HIGH: {name} = wrap({name})", node)
        elif self.may_move(node, row):
            self.out.moved[node.output] = text
        else:
            self.give(node, text)

    def wraps(self, node: Node, row: Row) -> bool:
        if not row.wraps:
            return False
        found = self.ranges.unwrapped(node)
        return found is None or found[0] < LOW or found[1] > HIGH

    def may_move(self, node: Node, row: Row) -> bool:
        """True if the node's expression may be written where its result is used.  See Note [Moved expressions]."""
        if row.raises or (row.divides and not self.divisor_is_not_zero(node)):
            return False
        uses = node.output.uses
        if len(uses) != 1 or uses[0].user.block is not node.block or not self.takes_expression(*uses[0]):
            return False
        return node.output.type in ATOMS and all(value.type in ATOMS for value in node.inputs)

    def divisor_is_not_zero(self, node: Node) -> bool:
        low, high = self.ranges.of(node.inputs[1])
        return low > 0 or high < 0

    def takes_expression(self, user: Node, offset: int) -> bool:
        if user.kind in ("prim::If", "prim::Return"):
            return True
        row = self.row(user) if user.kind not in ("prim::Loop", *CALLEES, *_SUSPENDING) else None
        return row is not None and row.text.count(f"{{{offset}}}") == 1 and not row.largest

    # -- control flow

    def write_if(self, node: Node) -> None:
        then, otherwise = node.blocks
        targets = [self.out.define(value, "a" if self.unboxing.is_joined(value) else "v") for value in node.outputs]
        condition = self.out.value(node.inputs[0])
        if then.is_empty() and not targets and not self.deaths.at_start.get(then):
            self.branch(f"if not {condition}:", node, otherwise, targets)
            return
        self.branch(f"if {condition}:", node, then, targets)
        if targets or not otherwise.is_empty() or self.deaths.at_start.get(otherwise):
            self.branch("else:", node, otherwise, targets)

    def branch(self, head: str, node: Node, block: Block, targets: Sequence[str]) -> None:
        self.out.line(head, node)
        self.out.indent += 1
        before = len(self.out.lines)
        self.block(block)
        sources = [
            (self.out.array if target.startswith("a") else self.out.value)(value)
            for target, value in zip(targets, block.outputs, strict=True)
        ]
        self.out.assign(targets, sources, node)
        self.forget(self.deaths.after.get(block.return_node, ()), targets)
        if len(self.out.lines) == before:
            self.out.line("pass")
        self.out.indent -= 1

    def write_loop(self, node: Node, condition: tuple[Node, Node] | None) -> None:
        (body,) = node.blocks
        index, *carried = body.inputs
        first, given = node.inputs[1], body.outputs[0]
        targets = [self.out.define(value) for value in carried]
        self.out.assign(targets, [self.out.value(value) for value in node.inputs[2:]], node)
        self.forget(self.deaths.on_entry.get(node, ()))
        limited = constant_value(node.inputs[0]) != MAX_TRIP_COUNT
        counter = self.out.define(index)
        test = self._test_of(body, condition) if condition else ""
        ends_late = not test and constant_value(first) is True and constant_value(given) is not True
        flag = ""
        if not test and constant_value(first) is not True:
            test = flag = f"c{counter[1:]}"
            self.out.line(f"{flag} = {self.out.value(first)}", node)
        self._loop_head(node, counter, test, limited)
        if limited and test:
            self.out.line(f"    if not {test}: break", node)
        self.out.indent += 1
        self.block(body)
        going_on = self.out.value(given) if flag or ends_late else ""
        if ends_late and given in self.out.moved:
            going_on = f"c{counter[1:]}"
            self.out.line(f"{going_on} = {self.out.moved[given]}", node)
        ends, sources = [*targets], [self.out.value(value) for value in body.outputs[1:]]
        if flag:
            ends, sources = [flag, *ends], [going_on, *sources]
        self.out.assign(ends, sources, node)
        self.forget(self.deaths.after.get(body.return_node, ()), targets)
        if ends_late:
            self.out.line(f"if not {going_on}: break", node)
        if not limited and index.has_uses:
            self.out.line(f"{counter} += 1", node)
        self.out.indent -= 1
        for output, target in zip(node.outputs, targets, strict=True):
            self.out.names[output] = target

    def _loop_head(self, node: Node, counter: str, test: str, limited: bool) -> None:
        if limited:
            self.out.line(f"for {counter} in range({self.out.value(node.inputs[0])}):", node)
            return
        if node.blocks[0].inputs[0].has_uses:
            self.out.line(f"{counter} = 0", node)
        self.out.line(f"while {test or 'True'}:", node)

    def _test_of(self, body: Block, condition: tuple[Node, Node]) -> str:
        """The expression of the loop's condition over its carried values."""
        first, again = condition
        loop = body.owner
        assert loop is not None
        texts: list[str] = []
        for a, b in zip(first.inputs, again.inputs, strict=True):
            place = carried_place(loop, a, b)
            texts.append(self.out.value(b) if place is None else self.out.names[body.inputs[place]])
        row = self.row(again)
        assert row is not None
        return row.text.format(*texts)


# ------------------------------------------------------------------ nodes that are neither operators nor expressions


def _tuple(writer: PlanWriter, node: Node) -> None:
    writer.give(node, f"({''.join(writer.out.value(v) + ', ' for v in node.inputs)})")


def _list(writer: PlanWriter, node: Node) -> None:
    writer.give(node, f"[{', '.join(map(writer.out.value, node.inputs))}]")


def unpack(writer: PlanWriter, node: Node, prefix: str = "v") -> None:
    if not node.outputs:
        return
    comma = "," * (len(node.outputs) == 1)
    targets = ", ".join(writer.out.define(value, prefix) for value in node.outputs)
    writer.out.line(f"{targets}{comma} = {writer.out.value(node.input)}", node)


def _slot(node: Node) -> int:
    type = node.inputs[0].type
    slot = type.slot(node.attr("name")) if isinstance(type, ClassType) else None
    assert slot is not None, f"no such attribute: {node}"
    return slot


def _get_attribute(writer: PlanWriter, node: Node) -> None:
    writer.give(node, f"{writer.out.value(node.input)}.slots[{_slot(node)}]")


def _set_attribute(writer: PlanWriter, node: Node) -> None:
    owner, value = map(writer.out.value, node.inputs)
    writer.out.line(f"{owner}.slots[{_slot(node)}] = {value}", node)


def _is(negation: str) -> Callable[[PlanWriter, Node], None]:
    def write(writer: PlanWriter, node: Node) -> None:
        if NONE not in (value.type for value in node.inputs):
            operands = ", ".join(map(writer.out.value, node.inputs))
            writer.give(node, f"{writer.operation(node)}({operands})")
            return
        one, other = map(writer.out.value, node.inputs)
        writer.give(node, f"{one} is {negation}{other}")

    return write


def _call_function(writer: PlanWriter, node: Node) -> None:
    writer.genuine.add(node)
    function, *arguments = map(writer.out.value, node.inputs)
    writer.give(node, f"call({function}, ({''.join(a + ', ' for a in arguments)}), depth)")


def _call_method(writer: PlanWriter, node: Node) -> None:
    writer.genuine.add(node)
    arguments = "".join(writer.out.value(value) + ", " for value in node.inputs)
    owner = writer.out.value(node.inputs[0])
    writer.give(node, f"call({owner}.type.methods[{node.attr('name')!r}], ({arguments}), depth)")


def _enter(writer: PlanWriter, node: Node) -> None:
    writer.genuine.add(node)
    owner = writer.out.value(node.inputs[0])
    writer.out.line(f"entered.append({owner})")
    writer.give(node, f"call({owner}.type.methods['__enter__'], ({owner}, ), depth)")


def _exit(writer: PlanWriter, node: Node) -> None:
    writer.genuine.add(node)
    owner = writer.out.value(node.inputs[0])
    writer.out.line("entered.pop()")
    writer.give(node, f"call({owner}.type.methods['__exit__'], ({owner}, None, None, None), depth)")


def _fork(writer: PlanWriter, node: Node) -> None:
    writer.genuine.add(node)
    function = writer.out.bind("function", Function(writer.name, _graph=node.attr("Subgraph")))
    writer.give(node, f"fork({function}, ({''.join(writer.out.value(value) + ', ' for value in node.inputs)}))")


def _bail_out(writer: PlanWriter, node: Node) -> None:
    writer.genuine.add(node)
    value, *live = map(writer.out.value, node.inputs)
    array = writer.out.array(node.inputs[0])
    guard = node.attr("site")
    site, depth = writer.out.bind("site", guard), "depth" if writer.calls else "0"
    rest = f"resume({site}, ({''.join(each + ', ' for each in live)}), {depth})"
    differs = f"{array}.shape != {site}.shape or {array}.dtype is not {site}.dtype"
    differs += f" or place({array}) is not {site}.device" * guard.may_vary
    writer.out.line(f"if ({differs}) and {site}({value}): return {rest}", node)
    writer.give(node, value)


def _wait(writer: PlanWriter, node: Node) -> None:
    writer.genuine.add(node)
    writer.give(node, f"{writer.out.value(node.inputs[0])}.wait()")


NODES: Final[dict[str, Callable[[PlanWriter, Node], None]]] = {
    "prim::TupleConstruct": _tuple, "prim::NamedTupleConstruct": _tuple, "prim::ListConstruct": _list,
    "prim::TupleUnpack": unpack, "prim::ListUnpack": unpack,
    "prim::GetAttr": _get_attribute, "prim::SetAttr": _set_attribute,
    "aten::__is__": _is(""), "aten::__isnot__": _is("not "),
    "prim::CallFunction": _call_function, "prim::CallMethod": _call_method,
    "prim::Enter": _enter, "prim::Exit": _exit, "prim::fork": _fork, "aten::wait": _wait,
    "prim::BailOut": _bail_out,
}  # fmt: skip
