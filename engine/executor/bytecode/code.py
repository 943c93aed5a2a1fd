"""A graph as a list of instructions.

In: a graph.  Out: `Code`: instructions with registers, jumps instead of blocks, move flags and drops, a table of
constants.  `str(code)` is the listing; Note [Listing] in `instructions` explains it.

Every value has a register of its own, numbered in the order in which the instructions define them: a listing reads
like the graph, and a debugger finds each value as long as it is alive.

Note [Control flow]
    x = prim::If(c)                 = JumpZ c -> @else
                                    (then block)
                                    x = Assign (its outputs)
                                    = Jump -> @end
                            @else:  (else block)
                                    x = Assign (its outputs)
                            @end:

    x = prim::Loop(max, c0, a0)     i = Constant                  0
      block0(i, a):                 one = Constant                1
        ...                         c, a = Assign c0, a0
        -> (c1, a1)         @head:  = JumpZ c -> @end
                                    t = lt i, max
                                    = JumpZ t -> @end
                                    (body)
                                    c, a = Assign c1, a1
                                    i = add i, one
                                    = Jump -> @head
                            @end:   x = Assign a

Note [Late binding]
    Operations are looked up when they first run: most of what a program has is on branches that are never taken, and
    an operator that begins is compiled or found in the library.  The step that called holds the operation then.

A loop whose condition is the constant True does not test it; one that may run 2**63 - 1 times (a `while`) does not
test its count, and counts only if its body uses the number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Any, Final

from engine.aten.dispatch.op import BEGINNINGS
from engine.executor.bytecode.instructions import (
    ASSIGN,
    CALL,
    CONSTANT,
    ENTER,
    EXIT,
    FORK,
    JUMP,
    JUMP_IF_NOT,
    JUMPS,
    LOAD,
    OPCODES,
    OPERATE,
    RETURN,
    TAIL_CALL,
    WAIT,
    Instruction,
    Step,
    encode,
)  # fmt: skip
from engine.executor.bytecode.liveness import place_moves_and_drops
from engine.executor.bytecode.operations import CALLEES, OPERATIONS, Operation, operation_of
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.unit import Function
from engine.lang.records import dataclass

MAX_TRIP_COUNT: Final = 2**63 - 1


class Code:
    """The instructions of one graph, shared by all its runs.  `name` is the function's, as tracebacks show it.

    `values[r]` is the value that register `r` holds, None for a loop's own bookkeeping.  `blank` is what the
    registers behind the arguments start with; the last one takes the results of operations that have none.
    """

    __slots__ = (
        "__weakref__", "_beginnings", "blank", "constants", "graph", "has_loops", "instructions", "name", "program",
        "values",
    )  # fmt: skip

    def __init__(self, graph: Graph, name: str, *, keeps_values: bool = False) -> None:
        """With `keeps_values` no register is cleared after its last use, so that debuggers find what was computed."""
        self._beginnings = BEGINNINGS.count
        emitter = _CodeBuilder(name)
        emitter.emit_graph(graph)
        self.graph, self.name = graph, name
        place = _place_no_moves if keeps_values else place_moves_and_drops
        self.instructions: tuple[Instruction, ...] = tuple(place(emitter.instructions))
        self.constants: tuple[Any, ...] = tuple(emitter.constants)
        self.values: tuple[Value | None, ...] = tuple(emitter.values)
        self.program: list[Step] = [
            encode(instruction, self.constants, len(self.values)) for instruction in self.instructions
        ]
        for at, instruction in enumerate(self.instructions):
            if isinstance(instruction.operand, _LateBound):
                instruction.operand.place = self.program, at
        self.has_loops = any(each.opcode in JUMPS and each.operand <= at for at, each in enumerate(self.instructions))
        self.blank: list[Any] = [None] * (len(self.values) - len(graph.inputs) + 1)

    @property
    def is_current(self) -> bool:
        """True while operators are served as they were when the code was made, which holds their functions."""
        return self._beginnings == BEGINNINGS.count

    def register_of(self, value: Value) -> int:
        """The register that holds the value.  Raises ValueError if the graph does not have it."""
        return self.values.index(value)

    def listing(self) -> str:
        """One line for each instruction, and `@12:` before instruction 12 if a jump names it."""
        targets = {i.operand for i in self.instructions if i.opcode in JUMPS}
        lines: list[str] = []
        for at, instruction in enumerate(self.instructions):
            lines += [f"@{at}:"] * (at in targets) + [str(instruction)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.listing()

    def __repr__(self) -> str:
        return f"<Code of {self.name}: {len(self.instructions)} instructions>"


@dataclass(eq=False, slots=True)
class _LateBound:
    """The operation of a node until its first call, which puts it into the step at `place`."""

    node: Node
    place: tuple[list[Step], int] | None = None
    operation: Operation | None = None

    def __call__(self, *inputs: Any) -> Any:
        if self.operation is None:
            self.operation = operation_of(self.node)
            if self.place is not None:
                program, at = self.place
                opcode, _, *others = program[at]
                program[at] = (opcode, self.operation, *others)
        return self.operation(*inputs)


@dataclass(eq=False, slots=True)
class _CodeBuilder:
    """Appends instructions; jumps forward get their target once it is reached."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    values: list[Value | None] = field(default_factory=list)
    registers: dict[Value, int] = field(default_factory=dict)

    # -- registers

    def define(self, value: Value | None = None) -> int:
        """A new register, for that value or for bookkeeping."""
        if value is not None:
            self.registers[value] = len(self.values)
        self.values.append(value)
        return len(self.values) - 1

    def define_all(self, values: Iterable[Value]) -> tuple[int, ...]:
        """The values' registers, new ones unless the other branch has defined them."""
        return tuple(self.registers[v] if v in self.registers else self.define(v) for v in values)

    def read(self, values: Iterable[Value]) -> tuple[int, ...]:
        return tuple(self.registers[value] for value in values)

    # -- instructions

    def emit(
        self, opcode: int, node: Node | None, inputs: Sequence[int] = (), outputs: Sequence[int] = (),
        operand: Any = None, name: str = "",
    ) -> int:  # fmt: skip
        """Append an instruction; returns its index."""
        name = name or OPCODES[opcode].name or (node.kind.partition("::")[2] if node else "")
        self.instructions.append(Instruction(opcode, name, tuple(inputs), tuple(outputs), operand, node=node))
        return len(self.instructions) - 1

    def constant(self, value: Any, node: Node, output: int) -> None:
        self.emit(CONSTANT, node, outputs=[output], operand=len(self.constants))
        self.constants.append(value)

    def assign(self, node: Node, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        if outputs:
            self.emit(ASSIGN, node, inputs, outputs)

    def jump_here(self, *jumps: int) -> None:
        """Set the target of these jumps to the next instruction."""
        for at in jumps:
            old = self.instructions[at]
            self.instructions[at] = replace(old, operand=len(self.instructions))

    # -- nodes

    def emit_graph(self, graph: Graph) -> None:
        self.emit(LOAD, None, outputs=self.define_all(graph.inputs))
        self.emit_block(graph.block)
        end = graph.return_node if graph.return_node.range is not None else None
        self.emit(RETURN, end, self.read(graph.outputs))

    def emit_block(self, block: Block) -> None:
        for node in block.nodes():
            _EMITTERS.get(node.kind, _emit_operation)(self, node)


def _emit_operation(to: _CodeBuilder, node: Node) -> None:
    if node.has_attribute("Subgraph") and node.kind not in OPERATIONS:
        function = _subgraph(to, node)
        to.emit(CALL, node, to.read(node.inputs), to.define_all(node.outputs), lambda inputs: (function, inputs))
        return
    to.emit(OPERATE, node, to.read(node.inputs), to.define_all(node.outputs), _LateBound(node))


def _emit_constant(to: _CodeBuilder, node: Node) -> None:
    value = constant_value(node.output)
    assert value is not NOT_CONSTANT, f"a constant without a value: {node}"
    to.constant(value, node, to.define(node.output))


def _emit_call(opcode: int) -> Callable[[_CodeBuilder, Node], None]:
    def emit(to: _CodeBuilder, node: Node) -> None:
        to.emit(opcode, node, to.read(node.inputs), to.define_all(node.outputs), CALLEES[node.kind](node))

    return emit


def _emit_bailout(to: _CodeBuilder, node: Node) -> None:
    """Where the site says that the value fails, the rest of the program takes the place of this one."""
    value, *live = to.read(node.inputs)
    failed = to.define()
    to.emit(OPERATE, node, [value], [failed], node.attr("site"), "guard")
    to_next = to.emit(JUMP_IF_NOT, node, [failed])
    function = _subgraph(to, node)
    to.emit(TAIL_CALL, node, live, operand=lambda inputs: (function, inputs))
    to.jump_here(to_next)
    to.assign(node, [value], to.define_all(node.outputs))


def _emit_fork(to: _CodeBuilder, node: Node) -> None:
    to.emit(FORK, node, to.read(node.inputs), to.define_all(node.outputs), _subgraph(to, node))


def _emit_wait(to: _CodeBuilder, node: Node) -> None:
    to.emit(WAIT, node, to.read(node.inputs), to.define_all(node.outputs))


def _emit_if(to: _CodeBuilder, node: Node) -> None:
    then, otherwise = node.blocks
    to_else = to.emit(JUMP_IF_NOT, node, to.read(node.inputs))
    to.emit_block(then)
    to.assign(node, to.read(then.outputs), to.define_all(node.outputs))
    if otherwise.is_empty() and not node.outputs:
        to.jump_here(to_else)
        return
    to_end = to.emit(JUMP, node)
    to.jump_here(to_else)
    to.emit_block(otherwise)
    to.assign(node, to.read(otherwise.outputs), to.define_all(node.outputs))
    to.jump_here(to_end)


def _emit_loop(to: _CodeBuilder, node: Node) -> None:
    (body,) = node.blocks
    max_count, first_condition, *first = to.read(node.inputs)
    limited = constant_value(node.inputs[0]) != MAX_TRIP_COUNT
    counted = limited or body.inputs[0].has_uses
    tested = constant_value(node.inputs[1]) is not True or constant_value(body.outputs[0]) is not True
    index, one, condition = to.define(body.inputs[0]), -1, -1
    if counted:
        to.constant(0, node, index)
        one = to.define()
        to.constant(1, node, one)
    if tested:
        condition = to.define()
    carried = (condition, *to.define_all(body.inputs[1:]))[not tested :]
    to.assign(node, (first_condition, *first)[not tested :], carried)
    head = len(to.instructions)
    exits = [to.emit(JUMP_IF_NOT, node, [condition])] if tested else []
    if limited:
        within = to.define()
        to.emit(OPERATE, node, [index, max_count], [within], operator.lt, "lt")
        exits.append(to.emit(JUMP_IF_NOT, node, [within]))
    to.emit_block(body)
    to.assign(node, to.read(body.outputs)[not tested :], carried)
    if counted:
        to.emit(OPERATE, node, [index, one], [index], operator.add, "add")
    to.emit(JUMP, node, operand=head)
    to.jump_here(*exits)
    to.assign(node, to.read(body.inputs[1:]), to.define_all(node.outputs))


def _place_no_moves(instructions: Sequence[Instruction]) -> list[Instruction]:
    return [replace(each, moves=(False,) * len(each.inputs)) for each in instructions]


def _subgraph(to: _CodeBuilder, node: Node) -> Function:
    """The node's own graph as a function; in tracebacks it goes by the name of the function around it."""
    return Function(to.name, _graph=node.attr("Subgraph"))


_EMITTERS: Final[dict[str, Callable[[_CodeBuilder, Node], None]]] = {
    "prim::Constant": _emit_constant,
    "prim::If": _emit_if,
    "prim::Loop": _emit_loop,
    "prim::CallFunction": _emit_call(CALL),
    "prim::CallMethod": _emit_call(CALL),
    "prim::Enter": _emit_call(ENTER),
    "prim::Exit": _emit_call(EXIT),
    "prim::BailOut": _emit_bailout,
    "prim::fork": _emit_fork,
    "aten::wait": _emit_wait,
}
