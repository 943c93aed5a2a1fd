"""Following bytecode: values in place of what would lie on the stack and in registers, and blocks for jumps.

In: a `MobileFunction`, and what each instruction without jumps does (`lift.py`).  Out: a graph.  Bytecode is written
from graphs, and so jumps only where these have blocks:

    JF to else, then-block, JMP over else, else-block       prim::If; what the blocks leave on the stack are its outputs
    LOOP to behind, block, JMP back to LOOP                 prim::Loop; the condition and carried values come last

Where a value may be None on one way, its type is optional.  What does not come out so is refused with ArchiveError that
names function and instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from engine.frontend.compilation.compile import library_value, written_overloads
from engine.frontend.sugared.sugared_value import Builder
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Value
from engine.ir.match import constant_bool
from engine.lang.errors import ArchiveError, EngineError
from engine.lang.records import dataclass
from engine.lang.schema import FunctionSchema
from engine.lang.source import Source, SourceRange
from engine.lang.types import INT, Type, unify
from engine.serialize.mobile.bare import BareClasses
from engine.serialize.mobile.bytecode import MobileFunction, MobileInstruction
from engine.serialize.pickling.scan import PickleRefusal

_MOST_STEPS: Final = 50
"""So often may an instruction be followed: loops are followed again where types turn out wider."""
_MOST_ROUNDS: Final = 6
"""So often a loop is followed with ever wider types."""
MAX_DEPTH: Final = 100
ReadType = Callable[[str], Type]
Step = Callable[["Lifter", MobileInstruction], None]


@dataclass(slots=True, eq=False)
class Lifter:
    """Follows the instructions of one function; see the module's top."""

    function: MobileFunction
    classes: BareClasses
    read_type: ReadType
    version: int
    step_of: Mapping[str, Step]
    b: Builder = field(init=False)
    stack: list[Value] = field(default_factory=list)
    registers: dict[int, Value] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0
    at: int = 0
    source: Source = field(init=False)
    """The instructions as lines of text, which errors show: the number of a line is that of its instruction."""

    def __post_init__(self) -> None:
        self.b = Builder(self.classes.unit, written_overloads, library_value)
        self.source = Source("\n".join(self.function.lines()), self.function.name, first_line=0)

    def run(self, schema: FunctionSchema) -> Builder:
        """The builder that holds the function's graph.  Raises ArchiveError."""
        code = self.function.instructions
        self.stack = [self.b.graph.add_input(each.name, each.type) for each in schema.arguments]
        try:
            if not code or code[-1].opcode != "RET":
                raise PickleRefusal("it does not end with RET")
            self.follow(0, len(code) - 1)
            self.b.graph.register_output(self.stack.pop() if self.stack else self.b.constant(None))
        except (PickleRefusal, EngineError) as error:
            raise self._refused(error) from error
        return self.b

    def _refused(self, error: Exception) -> ArchiveError:
        reason = str(error).strip().partition("\n")[0]
        shown = self.function.instructions[self.at].opcode if self.at < len(self.function.instructions) else "its end"
        where = f"instruction {self.at} ({shown})"
        hint = "tsrepl show --bytecode lists the instructions"
        text = f"the bytecode of '{self.function.name}' cannot be turned into a graph: {where}: {reason}"
        return ArchiveError(text, record="bytecode", hints=(hint,))

    # -- control flow

    def follow(self, start: int, end: int) -> None:
        """Follow the instructions of that range, with the blocks in it."""
        at = start
        while at < end:
            self.at = at
            self.b.graph.current_range = SourceRange(self.source, *self.source.line_span(at))
            self.steps += 1
            if self.steps > _MOST_STEPS * len(self.function.instructions):
                raise PickleRefusal("its loops nest so that their types are not found soon")
            instruction = self.function.instructions[at]
            block = _BLOCKS.get(instruction.opcode)
            if block is not None:
                at = block(self, at, end)
                continue
            step = self.step_of.get(instruction.opcode)
            if step is None:
                raise PickleRefusal("this instruction has no form in a graph here")
            step(self, instruction)
            at += 1

    def branch(self, at: int, end: int) -> int:
        """`JF`: the place behind both blocks."""
        middle = self._jump(at, at, end)
        behind = self._jump(middle - 1, at, end, "JMP")
        condition, base = self.pop(), len(self.stack)
        known = _known_truth(condition)
        if known is not None:  # the other way may make no sense for the values there are
            self._deeper(*((at + 1, middle - 1) if known else (middle, behind)))
            return behind
        node = self.b.node("prim::If", [condition], [])
        for first, last in ((at + 1, middle - 1), (middle, behind)):
            self.block(node.add_block(), first, last, base)
        then, other = node.blocks
        if len(then.outputs) != len(other.outputs):
            raise PickleRefusal("its two ways leave different numbers of values")
        for one, two in zip(then.outputs, other.outputs, strict=True):
            self.stack.append(node.add_output(_joined(one, two)))
        return behind

    def loop(self, at: int, end: int) -> int:
        """`LOOP`: the place behind it.  Where a round leaves a value of a wider type, it is followed anew with that."""
        behind = self._jump(at, at, end)
        if self._jump(behind - 1, at - 1, end, "JMP") != at:
            raise PickleRefusal("a loop does not lead back to its beginning")
        count = self.function.instructions[at].n
        if count < 2:
            raise PickleRefusal("a loop has no condition")
        carried = self.take(count - 2)
        condition, most, _ = self.pop(), self.pop(), self.pop()
        types = [value.type for value in carried]
        for _ in range(_MOST_ROUNDS):
            found = self._round(at, behind, (most, condition, *carried), types)
            if found == types:
                return behind
            types = found
        raise PickleRefusal("the types of what a loop carries do not settle")

    def _round(self, at: int, behind: int, inputs: Sequence[Value], types: list[Type]) -> list[Type]:
        """The loop with carried values of these types, or what other types they need (then there is no loop yet)."""
        node, base = self.b.node("prim::Loop", inputs, types), len(self.stack)
        body = node.add_block()
        self.stack += [body.add_input(type) for type in (INT, *types)]
        self.block(body, at + 1, behind - 1, base)
        if len(body.outputs) != len(types) + 1:
            raise PickleRefusal("a round of a loop leaves another number of values")
        given = [value.type for value in body.outputs[1:]]
        wider = [_wider(mine, new) for mine, new in zip(types, given, strict=True)]
        if wider == types:
            self.stack += node.outputs
        else:
            node.destroy()
        return wider

    def block(self, block: Block, start: int, end: int, base: int) -> None:
        """Follow a block: what it leaves on the stack above `base` is its output.  Registers of it end with it."""
        registers, self.registers = self.registers, dict(self.registers)
        with self.b.graph.inserting_at(block):
            self._deeper(start, end)
        if len(self.stack) < base:
            raise PickleRefusal("a block takes values that are not its own")
        for value in self.take(len(self.stack) - base):
            block.register_output(value)
        self.registers = registers

    def _deeper(self, start: int, end: int) -> None:
        """Follow instructions inside of what is followed."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise PickleRefusal(f"its blocks nest deeper than {MAX_DEPTH}")
        self.follow(start, end)
        self.depth -= 1

    def _jump(self, at: int, least: int, most: int, wanted: str = "") -> int:
        """The target of the jump at `at`: behind `least`, and not behind `most`."""
        opcode, x, _ = self.function.instructions[at] if 0 <= at < most else MobileInstruction("", 0, 0)
        if (wanted and opcode != wanted) or not least < at + x <= most:
            raise PickleRefusal("a jump leads where no block can be")
        return at + x

    # -- values

    def pop(self) -> Value:
        if not self.stack:
            raise PickleRefusal("it takes a value that is not there")
        return self.stack.pop()

    def take(self, count: int) -> list[Value]:
        """So many values from the top of the stack, the deepest first."""
        if not 0 <= count <= len(self.stack):
            raise PickleRefusal("it takes values that are not there")
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    def push(self, kind: str, inputs: Sequence[Value], type: Type) -> None:
        self.stack.append(self.b.value(kind, inputs, type))

    def type_at(self, index: int) -> Type:
        return self.read_type(entry_of(self.function.types, index, "type"))


def entry_of(table: Sequence[Any], index: int, what: str) -> Any:
    if not 0 <= index < len(table):
        raise PickleRefusal(f"there is no {what} {index}")
    return table[index]


def _known_truth(condition: Value) -> bool | None:
    """The bool that a condition always is, as far as constants tell: those of a layer that was inlined decide much."""
    node = condition.node
    if node.kind == "aten::__not__":
        found = _known_truth(node.input)
        return None if found is None else not found
    if node.kind in ("aten::__is__", "aten::__isnot__"):
        is_none = all(constant_value(value) is None for value in node.inputs)
        return node.kind == "aten::__is__" if is_none else None
    return constant_bool(condition)


def _joined(one: Value, two: Value) -> Type:
    """The type of a value that is one or the other; what was never set is of any type."""
    if one.node.kind == NEVER or two.node.kind == NEVER:
        known = two if one.node.kind == NEVER else one
        for each in (one, two):
            each.set_type(known.type)
        return known.type
    return _unified(one.type, two.type)


def _wider(mine: Type, new: Type) -> Type:
    return mine if new.is_subtype_of(mine) else _unified(mine, new)


def _unified(one: Type, two: Type) -> Type:
    found = unify(one, two, default_to_union=True)
    assert found is not None
    return found


NEVER: Final = "prim::Uninitialized"
_BLOCKS: Final[dict[str, Callable[[Lifter, int, int], int]]] = {"JF": Lifter.branch, "LOOP": Lifter.loop}
