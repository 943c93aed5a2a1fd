"""A graph as the source of one Python function.

In: a graph, and what is known of its values.  Out: `Source`: text, the objects that it names, and for each line the
node it belongs to.  Values are local variables (`v3`; `a3` for the bare array of a tensor), If and Loop are Python's
own control flow, operators are expressions (`templates`, `tensor_forms`) or calls.  The same graph gives the same text.

    graph(%n : int):                                  def f(v0):
      %zero : int = prim::Constant[value=0]()             v1 = 0
      %t : bool = prim::Constant[value=1]()               for v2 in range(v0):
      %s : int = prim::Loop(%n, %t, %zero)        →           v3 = v1 + v2
        block0(%i : int, %acc : int):                         if not LOW <= v3 <= HIGH: v3 = wrap(v3)
          %next : int = aten::add(%acc, %i)                   v1 = v3
          -> (%t, %next)                                  return v1
      return (%s)

Note [Moved expressions]
An expression of numbers that cannot fail and is used once stands where it is used.  Its inputs are never assigned in
between: every variable is assigned in one place, and those that a loop carries at the end of an iteration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from engine.aten.autograd.deferred import Stretch
from engine.aten.dispatch.unboxed import tensor_in
from engine.aten.values import xp
from engine.aten.values.libraries import device_of
from engine.aten.values.tensor import Tensor, fresh_lines, wrapped
from engine.executor.deferral import Closing, Open
from engine.executor.lifetimes import Deaths
from engine.executor.loop_conditions import ATOMS, condition_of, qualified_name
from engine.executor.loop_lines import write_loop
from engine.executor.node_lines import NODES, unpack
from engine.executor.operations import CALLEES, OPERATIONS, operation_of
from engine.executor.ranges import HIGH, LOW, Ranges
from engine.executor.templates import NAMES, ROWS, Row, asks, question
from engine.executor.tensor_forms import TensorForms
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.types import TensorType

FUNCTION: Final = "run"
_ENVIRONMENT: Final[dict[str, Any]] = {
    **NAMES, "LOW": LOW, "HIGH": HIGH, "Tensor": Tensor, "new": object.__new__, "ndarray": np.ndarray,
    "asarray": np.asarray, "quiet": xp.quiet, "loud": xp.loud, "place": device_of, "FROM_NUMPY": xp.FROM_NUMPY,
    "wrapped": wrapped,
}  # fmt: skip
_SUSPENDING: Final = ("prim::fork", "aten::wait", "prim::Enter", "prim::Exit")
"""Nodes that are neither operators nor plain calls."""
NO_FUNCTIONS: Final[Mapping[Node, Callable[..., Any]]] = {}


class NotGenerated(Exception):
    """The graph has to be run by the interpreter; the text says why."""


@dataclass(slots=True)
class Source:
    """`nodes[i]` is the node of line i + 1.  `calls`: the function takes the depth of calls as one more argument.
    `waits`: it may have to wait for a future, and keeps its thread meanwhile."""

    text: str
    environment: dict[str, Any]
    nodes: tuple[Node | None, ...]
    calls: bool
    waits: bool
    variables: dict[Value, str]
    """Where a value is found while the function runs."""
    genuine: frozenset[Node]
    """Nodes that are calls, whose errors are their own; what others raise is only Python's."""
    stretches: tuple[Stretch, ...] = ()
    """What is recorded later."""


def generate(
    graph: Graph,
    *,
    records: bool,
    name: str = "f",
    native: Mapping[Node, Callable[..., Any]] = NO_FUNCTIONS,
    waits: bool = True,
) -> Source:
    """Write the function; `records` says that an operator may have to be recorded for gradients, `name` what forked
    parts of it go by, `native` what functions of tensors do some of its nodes, `waits` that what has to be recorded may
    be when gradients are asked for.  Raises NotGenerated."""
    return Writer(graph, TensorForms(graph, records, native, waits), name, native).write()


@dataclass(eq=False, slots=True)
class Writer:
    graph: Graph
    forms: TensorForms
    name: str
    native: Mapping[Node, Callable[..., Any]]
    deaths: Deaths = field(init=False)
    ranges: Ranges = field(init=False)
    lines: list[str] = field(default_factory=list)
    nodes: list[Node | None] = field(default_factory=list)
    names: dict[Value, str] = field(default_factory=dict)
    arrays: dict[Value, str] = field(default_factory=dict)
    moved: dict[Value, str] = field(default_factory=dict)
    absorbed: set[Node] = field(default_factory=set)
    """Nodes that the condition of a loop stands for."""
    environment: dict[str, Any] = field(default_factory=lambda: dict(_ENVIRONMENT))
    bound: dict[Any, str] = field(default_factory=dict)
    count: int = 0
    indent: int = 0
    calls: bool = False
    genuine: set[Node] = field(default_factory=set)
    twins: dict[Value, str] = field(default_factory=dict)
    """Tensors that nothing is recorded of, of values that are arrays as well."""
    masks: dict[Node, str] = field(default_factory=dict)
    """Variables with what dropouts multiply with."""
    stretches: list[Stretch] = field(default_factory=list)
    stretch: Open | None = None
    """The one that is being written."""

    def __post_init__(self) -> None:
        self.deaths, self.ranges = Deaths(self.graph), Ranges(self.graph)

    def write(self) -> Source:
        self.calls = any(node.kind in CALLEES for node in self.graph.all_nodes())
        quiet = any(map(self.forms.is_raw, self.graph.all_nodes()))
        waits = self.graph.find_node("aten::wait") is not None
        enters = self.graph.find_node("prim::Enter") is not None
        inputs = [self.define(value) for value in self.graph.inputs]
        parameters = [*inputs, *(["depth=0"] * self.calls)]
        self.line(f"def {FUNCTION}({', '.join(parameters)}):")
        self.indent = 1
        if quiet:
            self.line("token = quiet()")
            self.line("try:")
            self.indent = 2
        if enters:
            self.line("entered = []")
            self.line("try:")
            self.indent += 1
        self.load_arrays()
        self.block(self.graph.block)
        self.line(f"return {self.results()}", self.graph.return_node)
        if enters:
            self.indent -= 1
            for line in ("except AssertionError: raise", "except Exception:", "    leave(entered)", "    raise"):
                self.line(line)
        if quiet:
            self.indent = 1
            self.line("finally:")
            self.indent = 2
            self.line("loud(token)")
        variables = {**self.arrays, **self.names}
        text = "\n".join(self.lines) + "\n"
        genuine, stretches = frozenset(self.genuine), tuple(self.stretches)
        return Source(text, self.environment, tuple(self.nodes), self.calls, waits, variables, genuine, stretches)

    def results(self) -> str:
        outputs = [self.value(value) for value in self.graph.outputs]
        return outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})" if outputs else "None"

    def load_arrays(self) -> None:
        """Arrays of arguments that keep them, read once."""
        if self.forms.reseats:
            return
        for value in self.graph.inputs:
            if isinstance(value.type, TensorType) and value.type.dtype and any(map(self.forms.takes_array, value.uses)):
                self.arrays[value] = name = "a" + self.names[value][1:]
                self.line(f"{name} = {self.names[value]}.array")

    # -- lines and names

    def line(self, text: str, node: Node | None = None) -> None:
        self.lines.append("    " * self.indent + text)
        self.nodes.append(node)

    def define(self, value: Value, prefix: str = "v") -> str:
        name = f"{prefix}{self.count}"
        self.count += 1
        (self.names if prefix == "v" else self.arrays)[value] = name
        return name

    def bind(self, what: str, thing: Any) -> str:
        """The name of an object in the environment; things that are one object have one name."""
        key = (thing.dtype, thing.tobytes()) if isinstance(thing, np.ndarray) and what == "constant" else id(thing)
        if key not in self.bound:
            self.bound[key] = name = f"{what}_{len(self.bound)}"
            self.environment[name] = thing
        return self.bound[key]

    def value(self, value: Value) -> str:
        """An expression for the value, in parentheses where it is more than a name."""
        if value in self.moved:
            return f"({self.moved[value]})"
        constant = constant_value(value)
        if constant is NOT_CONSTANT:
            return self.names[value]
        if constant is None or type(constant) in (bool, str):
            return repr(constant)
        if type(constant) is int or (type(constant) is float and constant - constant == 0):
            return repr(constant) if not repr(constant).startswith("-") else f"({constant!r})"
        return self.bind("constant", constant)

    def array(self, value: Value) -> str:
        return self.arrays[value] if value in self.arrays else f"{self.value(value)}.array"

    def forget(self, values: Iterable[Value], keep: Sequence[str] = ()) -> None:
        """Let go of what dies here, unless the stretch wants it."""
        if self.stretch is not None:
            values = [value for value in values if not self.stretch.keeps(value, self)]
        held = [table[v] for v in values for table in (self.names, self.arrays, self.twins) if v in table]
        names = [name for name in dict.fromkeys(held) if name not in keep]
        if names:
            self.line(f"{' = '.join(names)} = None")

    def assign(self, targets: Sequence[str], sources: Sequence[str], node: Node) -> None:
        """All at once; one after the other where that is the same."""
        pairs = [(t, s) for t, s in zip(targets, sources, strict=True) if t != s]
        written: set[str] = set()
        in_order = True
        for target, source in pairs:
            in_order &= written.isdisjoint(_WORD.findall(source))
            written.add(target)
        if in_order:
            for target, source in pairs:
                self.line(f"{target} = {source}", node)
        else:
            self.line(f"{', '.join(t for t, _ in pairs)} = {', '.join(s for _, s in pairs)}", node)

    # -- nodes

    def block(self, block: Block) -> None:
        self.forget(self.deaths.at_start.get(block, ()))
        loops = [node for node in block.nodes() if node.kind == "prim::Loop"]
        conditions = {loop: condition_of(loop) for loop in loops}
        for found in conditions.values():
            self.absorbed.update(found or ())
        for node in block.nodes():
            if node.kind == "prim::Constant" or node in self.absorbed:
                continue
            self.follow(block, node)
            if node.kind == "prim::If":
                self.write_if(node)
            elif node.kind == "prim::Loop":
                write_loop(self, node, conditions[node])
            else:
                self.write_node(node)
            self.forget(self.deaths.after.get(node, ()))
        if self.stretch is not None and self.stretch.block is block:
            self.end_stretch()

    def follow(self, block: Block, node: Node) -> None:
        """Begin or end the stretch, if one does here."""
        stretches = self.forms.stretches
        if stretches is None:
            return
        if self.stretch is not None and node in stretches.ends:
            self.end_stretch()
        if node in stretches.number:
            if self.stretch is None:
                self.stretch = Open(block)
            self.stretch.add(node)

    def end_stretch(self) -> None:
        opened, self.stretch = self.stretch, None
        assert opened is not None
        Closing(self, opened).close()
        self.forget(opened.postponed)

    def write_node(self, node: Node) -> None:
        if node.has_attribute("Subgraph") and node.kind != "prim::fork":
            raise NotGenerated(f"{node.kind} needs the interpreter")
        if asks(node):
            self.ask(node)
            return
        if self.forms.gives_list(node):
            self.line(f"{self.define(node.output)} = [{', '.join(map(self.array, node.inputs))}]", node)
            return
        if self.forms.gives_parts(node):
            self.give(node, self.forms.text(node, self.array, self.value, self.bind)[0])
            return
        if self.forms.is_raw(node):
            self.write_array(node)
            return
        if node.kind == "prim::ListUnpack" and self.forms.gives_parts(node.input.node):
            unpack(self, node, "a")
            return
        row = None if node.kind in _SUSPENDING else self.row(node)
        if row is not None:
            self.write_row(node, row)
        elif node.kind in NODES:
            NODES[node.kind](self, node)
        else:
            operation = self.operation(node)
            self.give(node, f"{operation}({', '.join(map(self.value, node.inputs))})")

    def give(self, node: Node, text: str) -> None:
        """Let the node's outputs be what the expression gives."""
        if not node.outputs:
            self.line(text, node)
            return
        targets = ", ".join(map(self.define, node.outputs))
        self.line(f"{targets} = {text}", node)

    def operation(self, node: Node) -> str:
        """The name of the function that does the node."""
        self.genuine.add(node)
        what = "".join(c if c.isalnum() else "_" for c in node.kind.partition("::")[2])
        function = self.native.get(node) if self.forms.may_call(node) else None
        return self.bind(what, function or operation_of(node))

    def ask(self, node: Node) -> None:
        """What the array of a tensor tells of its form."""
        self.give(node, question(node).format(self.array(node.inputs[0]), *map(self.value, node.inputs[1:])))

    def write_array(self, node: Node) -> None:
        if self.forms.is_called(node):
            self.write_called(node)
            return
        text, is_array = self.forms.text(node, self.array, self.value, self.bind)
        names = [self.define(value, "a") for value in node.outputs]
        targets = [*names]
        if self.stretch is not None and node.kind == "aten::dropout":
            self.masks[node] = "m" + names[0][1:]
            targets.append(self.masks[node])
        self.line(f"{', '.join(targets)} = {text}", node)
        for name, value in zip(names, node.outputs, strict=True):
            if not is_array:
                self.line(f"if type({name}) is not ndarray: {name} = asarray({name})", node)
            if not all(map(self.forms.takes_array, value.uses)):
                self.wrap(value, name)

    def write_called(self, node: Node) -> None:
        """A function of tensors between arrays."""
        name = self.define(node.output, "a")
        tensor = "v" + name[1:]
        self.line(f"{tensor} = {self.operation(node)}({', '.join(map(self.twin, node.inputs))})", node)
        self.line(f"{name} = {tensor}.array")
        self.twins[node.output] = tensor
        if not all(map(self.forms.takes_array, node.output.uses)):
            self.names[node.output] = tensor

    def twin(self, value: Value) -> str:
        """A value; of a tensor one that nothing is recorded of."""
        if not tensor_in(value.type) or constant_value(value) is None:
            return self.value(value)
        if value in self.twins:
            return self.twins[value]
        if isinstance(value.type, TensorType):
            return f"wrapped({self.array(value)})"
        return f"(None if {self.value(value)} is None else wrapped({self.value(value)}.array))"

    def wrap(self, value: Value, name: str) -> None:
        """A tensor of a new array."""
        self.names[value] = tensor = "v" + name[1:]
        for line in (f"{tensor} = new(Tensor)", f"{tensor}.array = {name}", *fresh_lines(tensor)):
            self.line(line)
        if self.forms.reseats:
            del self.arrays[value]
            self.line(f"{name} = None")

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
                self.give(node, f"{self.operation(node)}({', '.join(map(self.value, node.inputs))})")
                return
        text = row.text.format(*map(self.value, node.inputs))
        if row.is_statement:
            self.line(text, node)
            if node.output.has_uses:
                self.line(f"{self.define(node.output)} = {self.value(first)}", node)
            return
        if self.wraps(node, row):
            name = self.define(node.output)
            self.line(f"{name} = {text}", node)
            self.line(f"if not LOW <= {name} <= HIGH: {name} = wrap({name})", node)
        elif self.may_move(node, row):
            self.moved[node.output] = text
        else:
            self.give(node, text)

    def wraps(self, node: Node, row: Row) -> bool:
        if not row.wraps:
            return False
        found = self.ranges.unwrapped(node)
        return found is None or found[0] < LOW or found[1] > HIGH

    def may_move(self, node: Node, row: Row) -> bool:
        """See Note [Moved expressions]."""
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
        targets = [self.define(value, "a" if self.forms.is_joined(value) else "v") for value in node.outputs]
        condition = self.value(node.inputs[0])
        if then.is_empty() and not targets and not self.deaths.at_start.get(then):
            self.branch(f"if not {condition}:", node, otherwise, targets)
            return
        self.branch(f"if {condition}:", node, then, targets)
        if targets or not otherwise.is_empty() or self.deaths.at_start.get(otherwise):
            self.branch("else:", node, otherwise, targets)

    def branch(self, head: str, node: Node, block: Block, targets: Sequence[str]) -> None:
        self.line(head, node)
        self.indent += 1
        before = len(self.lines)
        self.block(block)
        sources = [
            (self.array if target.startswith("a") else self.value)(value)
            for target, value in zip(targets, block.outputs, strict=True)
        ]
        self.assign(targets, sources, node)
        self.forget(self.deaths.after.get(block.return_node, ()), targets)
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1


_WORD: Final = re.compile(r"\w+")
