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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from engine.aten import xp
from engine.aten.tensor import Tensor, fresh_lines
from engine.executor.lifetimes import Deaths
from engine.executor.loop_conditions import ATOMS, carried_place, condition_of, qualified_name
from engine.executor.operations import CALLEES, OPERATIONS, op_of, operation_of
from engine.executor.ranges import HIGH, LOW, Ranges
from engine.executor.templates import NAMES, ROWS, Row
from engine.executor.tensor_forms import TensorForms
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.types import NONE, ClassType, TensorType

MAX_TRIP_COUNT: Final = 2**63 - 1
_ENVIRONMENT: Final[dict[str, Any]] = {
    **NAMES, "LOW": LOW, "HIGH": HIGH, "Tensor": Tensor, "new": object.__new__, "ndarray": np.ndarray,
    "asarray": np.asarray, "quiet": xp.quiet, "loud": xp.loud,
}  # fmt: skip
_SUSPENDING: Final = ("prim::fork", "aten::wait", "prim::Enter", "prim::Exit")


class NotGenerated(Exception):
    """The graph has to be run by the interpreter; the text says why."""


@dataclass(slots=True)
class Source:
    """`nodes[i]` is the node of line i + 1.  `calls`: the function takes the depth of calls as one more argument."""

    text: str
    environment: dict[str, Any]
    nodes: tuple[Node | None, ...]
    calls: bool
    variables: dict[Value, str]
    """Where a value is found while the function runs."""
    genuine: frozenset[Node]
    """Nodes that are calls, whose errors are their own; what others raise is only Python's."""


def generate(graph: Graph, *, records: bool) -> Source:
    """Write the function; `records` says that an operator may have to be recorded for gradients.  Raises
    NotGenerated."""
    return _Writer(graph, TensorForms(graph, enabled=not records)).write()


@dataclass(eq=False, slots=True)
class _Writer:
    graph: Graph
    forms: TensorForms
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
    reseats: bool = False
    """May a tensor come to show another array?  Then it is asked for it every time."""
    genuine: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.deaths, self.ranges = Deaths(self.graph), Ranges(self.graph)

    def write(self) -> Source:
        self.calls = any(node.kind in CALLEES for node in self.graph.all_nodes())
        self.reseats = any(map(_may_give_another_array, self.graph.all_nodes()))
        quiet = any(map(self.forms.is_raw, self.graph.all_nodes()))
        inputs = [self.define(value) for value in self.graph.inputs]
        parameters = [*inputs, *(["depth=0"] * self.calls)]
        self.line(f"def {_FUNCTION}({', '.join(parameters)}):")
        self.indent = 1
        if quiet:
            self.line("token = quiet()")
            self.line("try:")
            self.indent = 2
        self.load_arrays()
        self.block(self.graph.block)
        self.line(f"return {self.results()}", self.graph.return_node)
        if quiet:
            self.indent = 1
            self.line("finally:")
            self.indent = 2
            self.line("loud(token)")
        variables = {**self.arrays, **self.names}
        text = "\n".join(self.lines) + "\n"
        return Source(text, self.environment, tuple(self.nodes), self.calls, variables, frozenset(self.genuine))

    def results(self) -> str:
        outputs = [self.value(value) for value in self.graph.outputs]
        return outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})" if outputs else "None"

    def load_arrays(self) -> None:
        """Arrays of arguments that keep them, read once."""
        if self.reseats:
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
        """Let go of what dies here."""
        held = [table[v] for v in values for table in (self.names, self.arrays) if v in table]
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
            if node.kind == "prim::If":
                self.write_if(node)
            elif node.kind == "prim::Loop":
                self.write_loop(node, conditions[node])
            else:
                self.write_node(node)
            self.forget(self.deaths.after.get(node, ()))

    def write_node(self, node: Node) -> None:
        if node.kind in _SUSPENDING or node.has_attribute("Subgraph"):
            raise NotGenerated(f"{node.kind} needs the interpreter")
        if self.forms.is_raw(node):
            self.write_array(node)
            return
        row = self.row(node)
        if row is not None:
            self.write_row(node, row)
        elif node.kind in _NODES:
            _NODES[node.kind](self, node)
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
        return self.bind(what, operation_of(node))

    def write_array(self, node: Node) -> None:
        text, is_array = self.forms.text(node, self.array, self.value, self.bind)
        name = self.define(node.output, "a")
        self.line(f"{name} = {text}", node)
        if not is_array:
            self.line(f"if type({name}) is not ndarray: {name} = asarray({name})", node)
        if all(map(self.forms.takes_array, node.output.uses)):
            return
        self.names[node.output] = tensor = "v" + name[1:]
        for line in (f"{tensor} = new(Tensor)", f"{tensor}.array = {name}", *fresh_lines(tensor)):
            self.line(line)
        if self.reseats:
            del self.arrays[node.output]
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
        targets = [self.define(value) for value in node.outputs]
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
        self.assign(targets, [self.value(value) for value in block.outputs], node)
        self.forget(self.deaths.after.get(block.return_node, ()), targets)
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1

    def write_loop(self, node: Node, condition: tuple[Node, Node] | None) -> None:
        (body,) = node.blocks
        index, *carried = body.inputs
        first, given = node.inputs[1], body.outputs[0]
        targets = [self.define(value) for value in carried]
        self.assign(targets, [self.value(value) for value in node.inputs[2:]], node)
        self.forget(self.deaths.on_entry.get(node, ()))
        limited = constant_value(node.inputs[0]) != MAX_TRIP_COUNT
        counter = self.define(index)
        test = self.test_of(body, condition) if condition else ""
        ends_late = not test and constant_value(first) is True and constant_value(given) is not True
        flag = ""
        if not test and constant_value(first) is not True:
            test = flag = f"c{counter[1:]}"
            self.line(f"{flag} = {self.value(first)}", node)
        self.loop_head(node, counter, test, limited)
        if limited and test:
            self.line(f"    if not {test}: break", node)
        self.indent += 1
        self.block(body)
        going_on = self.value(given) if flag or ends_late else ""
        if ends_late and given in self.moved:
            going_on = f"c{counter[1:]}"
            self.line(f"{going_on} = {self.moved[given]}", node)
        ends, sources = [*targets], [self.value(value) for value in body.outputs[1:]]
        if flag:
            ends, sources = [flag, *ends], [going_on, *sources]
        self.assign(ends, sources, node)
        self.forget(self.deaths.after.get(body.return_node, ()), targets)
        if ends_late:
            self.line(f"if not {going_on}: break", node)
        if not limited and index.has_uses:
            self.line(f"{counter} += 1", node)
        self.indent -= 1
        for output, target in zip(node.outputs, targets, strict=True):
            self.names[output] = target

    def loop_head(self, node: Node, counter: str, test: str, limited: bool) -> None:
        if limited:
            self.line(f"for {counter} in range({self.value(node.inputs[0])}):", node)
            return
        if node.blocks[0].inputs[0].has_uses:
            self.line(f"{counter} = 0", node)
        self.line(f"while {test or 'True'}:", node)

    def test_of(self, body: Block, condition: tuple[Node, Node]) -> str:
        """The condition in terms of what is carried."""
        first, again = condition
        loop = body.owner
        assert loop is not None
        texts: list[str] = []
        for a, b in zip(first.inputs, again.inputs, strict=True):
            place = carried_place(loop, a, b)
            texts.append(self.value(b) if place is None else self.names[body.inputs[place]])
        row = self.row(again)
        assert row is not None
        return row.text.format(*texts)


_FUNCTION: Final = "run"
_WORD: Final = re.compile(r"\w+")
_RESEATING: Final = frozenset(
    f"aten::{name}_"
    for name in "unsqueeze squeeze t transpose swapaxes swapdims resize resize_as set as_strided moveaxis".split()
)
_UNKNOWN_EFFECTS: Final = ("prim::PythonOp", *CALLEES)


def _may_give_another_array(node: Node) -> bool:
    """May the node make a tensor show another array?  Writes into the array it has do not."""
    if node.kind in _UNKNOWN_EFFECTS or node.kind in _RESEATING:
        return True
    if node.kind in OPERATIONS or node.namespace == "prim":
        return False
    return any(argument.is_write and argument.kwarg_only for argument in op_of(node).schema.arguments)


# -- nodes that are neither operators nor rows


def _tuple(writer: _Writer, node: Node) -> None:
    writer.give(node, f"({''.join(writer.value(v) + ', ' for v in node.inputs)})")


def _list(writer: _Writer, node: Node) -> None:
    writer.give(node, f"[{', '.join(map(writer.value, node.inputs))}]")


def _unpack(writer: _Writer, node: Node) -> None:
    if not node.outputs:
        return
    comma = "," * (len(node.outputs) == 1)
    targets = ", ".join(map(writer.define, node.outputs))
    writer.line(f"{targets}{comma} = {writer.value(node.input)}", node)


def _slot(node: Node) -> int:
    type = node.inputs[0].type
    slot = type.slot(node.attr("name")) if isinstance(type, ClassType) else None
    assert slot is not None, f"no such attribute: {node}"
    return slot


def _get_attribute(writer: _Writer, node: Node) -> None:
    writer.give(node, f"{writer.value(node.input)}.slots[{_slot(node)}]")


def _set_attribute(writer: _Writer, node: Node) -> None:
    owner, value = map(writer.value, node.inputs)
    writer.line(f"{owner}.slots[{_slot(node)}] = {value}", node)


def _is(negation: str) -> Callable[[_Writer, Node], None]:
    def write(writer: _Writer, node: Node) -> None:
        if NONE not in (value.type for value in node.inputs):
            operands = ", ".join(map(writer.value, node.inputs))
            writer.give(node, f"{writer.operation(node)}({operands})")
            return
        one, other = map(writer.value, node.inputs)
        writer.give(node, f"{one} is {negation}{other}")

    return write


def _call_function(writer: _Writer, node: Node) -> None:
    writer.genuine.add(node)
    function, *arguments = map(writer.value, node.inputs)
    writer.give(node, f"call({function}, ({''.join(a + ', ' for a in arguments)}), depth)")


def _call_method(writer: _Writer, node: Node) -> None:
    writer.genuine.add(node)
    arguments = "".join(writer.value(value) + ", " for value in node.inputs)
    owner = writer.value(node.inputs[0])
    writer.give(node, f"call({owner}.type.methods[{node.attr('name')!r}], ({arguments}), depth)")


_NODES: Final[dict[str, Callable[[_Writer, Node], None]]] = {
    "prim::TupleConstruct": _tuple, "prim::NamedTupleConstruct": _tuple, "prim::ListConstruct": _list,
    "prim::TupleUnpack": _unpack, "prim::ListUnpack": _unpack,
    "prim::GetAttr": _get_attribute, "prim::SetAttr": _set_attribute,
    "aten::__is__": _is(""), "aten::__isnot__": _is("not "),
    "prim::CallFunction": _call_function, "prim::CallMethod": _call_method,
}  # fmt: skip
