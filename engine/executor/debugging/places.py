"""Lines, variables and modules of a program in terms of instructions and registers.

In: a code, or a frame that stands at an instruction.  Out: the instructions at which lines begin, the registers that
hold the author's variables there, the path of the module whose method it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import every_place, is_module, joined
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import (
    ASSIGN,
    CONSTANT,
    DROP,
    JUMP,
    JUMP_IF_NOT,
    JUMPS,
    LOAD,
    OPERATE,
    Instruction,
)
from engine.executor.debugging.author_names import author_name
from engine.executor.interpreter.interpreter import Frame
from engine.ir.facts.program_text import called_module, module_inputs
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import Type

_NOWHERE: Final = (ASSIGN, CONSTANT, DROP, JUMP, LOAD)
"""Instructions that do nothing at the line of their node: constants stand at the start, wherever they were written."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the author that has a value: `register` holds it."""

    name: str
    type: Type
    register: int


def place_of(instruction: Instruction) -> SourceRange | None:
    """The instruction's place in the author's text; None for one that is at no line."""
    node = instruction.node
    if node is None or node.range is None or instruction.opcode in _NOWHERE:
        return None
    if node.kind == "prim::Loop" and instruction.opcode != JUMP_IF_NOT and instruction.name != "lt":
        return None  # the count of rounds goes up behind the last line
    return node.range.original()


def line_starts(code: Code) -> tuple[bool, ...]:
    """For each instruction: True if a line begins there, also when a loop comes back to it.

    Where the author's lines are known, lines of generated text that stand for none are not counted.
    """
    again = {i.operand for at, i in enumerate(code.instructions) if i.opcode in JUMPS and i.operand <= at}
    places = _places(code)
    starts = [False] * len(places)
    before: tuple[str, int] | None = None
    last = 0
    for at, range in enumerate(places):
        if range is None:
            continue
        line = range.filename, range.line
        if line != before or at in again:
            starts[last] &= line != before  # what prepares a loop is not a line of its own
            starts[at], last = True, at
        before = line
    return tuple(starts)


def _places(code: Code) -> list[SourceRange | None]:
    """The place of each instruction; of an archive's function, those in the author's file alone, if there are any."""
    places = [place_of(each) for each in code.instructions]
    is_authors = [
        place is not None and place is not i.range for place, i in zip(places, code.instructions, strict=True)
    ]
    if not any(is_authors):
        return places
    return [place if authors else None for place, authors in zip(places, is_authors, strict=True)]


def place_in(frame: Frame) -> SourceRange | None:
    """The place of a frame in the author's text: that of its instruction, else of the nearest before or behind."""
    places, pc = _places(frame.code), frame.pc
    return next((each for each in (places[pc], *reversed(places[:pc]), *places[pc:]) if each is not None), None)


# -- variables


def variables_in(frame: Frame) -> dict[str, Variable]:
    """The variables that have a value where the frame stands, by name, in the order in which they got theirs."""
    found: dict[str, Variable] = {}
    for value in _values_before(_end_of_scope(frame.code, frame.pc)):
        name = author_name(value)
        if name and not name.startswith("$"):  # what no program can write is not the program's
            found.pop(name, None)
            found[name] = Variable(name, value.type, frame.code.register_of(value))
    return found


def _end_of_scope(code: Code, pc: int) -> Node:
    """The node before which the values that an instruction can see are defined."""
    instruction = code.instructions[pc]
    node = instruction.node
    if node is None or node.graph is not code.graph:
        return code.graph.return_node if pc else _first(code.graph.block)
    if node.kind == "prim::Loop" and (instruction.opcode == JUMP_IF_NOT or instruction.name == "lt"):
        return _first(node.blocks[0])  # the head: a round is over, or none has begun
    if instruction.opcode in (ASSIGN, JUMP, OPERATE) and node.blocks:
        return _end_of_block(code.instructions[:pc], node)
    return node


def _first(block: Block) -> Node:
    return block.param_node.next or block.return_node


def _end_of_block(before: Sequence[Instruction], node: Node) -> Node:
    """The end of the block of the node that is behind the last of these instructions; the node, if there is none."""
    last = next((i.node for i in reversed(before) if i.node not in (None, node) and i.opcode != CONSTANT), None)
    blocks = [block for block, _ in _blocks_around(last) if block.owner is node] if last is not None else []
    return blocks[0].return_node if blocks else node


def _values_before(node: Node) -> Iterator[Value]:
    """The values that are defined before the node, outer blocks first."""
    for block, end in reversed([*_blocks_around(node)]):
        yield from block.inputs
        for each in block.nodes():
            if each is end:
                break
            yield from each.outputs


def _blocks_around(node: Node) -> Iterator[tuple[Block, Node]]:
    """The block of the node and those around it, each with the node of it that is, or holds, the node."""
    at: Node | None = node
    while at is not None:
        block = at.block
        assert block is not None
        yield block, at
        at = block.owner


def writers_of(code: Code, name: str) -> dict[int, tuple[int, ...]]:
    """The instructions that give the variable a value, and the registers that they write.

    To go round a loop, or to leave a branch, moves its value to another register, which is no new value.
    """
    registers = registers_of(code, name)
    written: dict[int, tuple[int, ...]] = {}
    for at, instruction in enumerate(code.instructions):
        inputs = instruction.inputs if instruction.opcode == ASSIGN else ()
        moved = {target for source, target in zip(inputs, instruction.outputs, strict=False) if source in registers}
        found = tuple(r for r in instruction.outputs if r in registers and r not in moved)
        if found:
            written[at] = found
    return written


def registers_of(code: Code, name: str) -> frozenset[int]:
    """The registers that hold the variable, each in a part of the code."""
    return frozenset(at for at, value in enumerate(code.values) if value is not None and author_name(value) == name)


# -- modules


class ModulePaths:
    """The paths of the modules inside the arguments of a call, wherever modules stand among these.

    Where there are several, paths begin with the names of their arguments: `m2.fc1`.  That may be left out of a name,
    which then means one in each, or added.
    """

    def __init__(self, graph: Graph, inputs: Sequence[Any]) -> None:
        by_value = dict(module_inputs(graph))
        self._paths: dict[int, list[str]] = {}
        self._meant: dict[str, set[str]] = {}
        for value, given in zip(graph.inputs, inputs, strict=False):
            root = by_value.get(value)
            if root is None or not is_module(given):
                continue
            for path, module in every_place(given):
                whole = joined(root, path)
                self._paths.setdefault(id(module), []).append(whole)
                for name in {path, whole, joined(value.variable_name, path)}:
                    self._meant.setdefault(name, set()).add(whole)

    def along(self, frames: Sequence[Frame]) -> list[str | None]:
        """For each of these calls, outermost first, the path of the module whose method it runs; None for none."""
        found: list[str | None] = []
        caller, around = None, ""
        for frame in frames:
            found.append(self.of(frame, caller, around))
            caller, around = frame, around if found[-1] is None else found[-1]
        return found

    def of(self, frame: Frame, caller: Frame | None, around: str) -> str | None:
        """The path of the module whose method the frame runs, "" for the outermost; None for none.

        Of a module with several paths, it is that by which the caller, which works for the one `around`, reaches it.
        """
        owner = frame.registers[0] if frame.code.graph.inputs else None
        paths = (
            self._paths.get(id(owner)) if isinstance(owner, Object) and frame.code.name in owner.type.methods else None
        )
        if paths is None:
            return None
        node = caller.instruction.node if caller is not None else None
        here = joined(around, called_module(node)) if node is not None else ""
        return here if here in paths else paths[0]

    def meant(self, name: str) -> set[str]:
        """The paths that a name stands for: its own, or one in each of several modules; none of what is not known."""
        return self._meant.get(name, set())

    def known(self) -> list[str]:
        return [*self._meant]


class ModuleStack:
    """The modules for which the calls of a run work: those whose methods they are, and those of the callers of
    functions.  Asked at each instruction, it knows a call's module also when the register that had it is empty."""

    def __init__(self, paths: ModulePaths) -> None:
        self._paths = paths
        self._stack: list[tuple[Frame, str]] = []

    def of(self, frames: Sequence[Frame]) -> str:
        """The path of the module for which the innermost of these calls works, "" for none."""
        stack = self._stack
        known = next((at for at, (a, (b, _)) in enumerate(zip(frames, stack, strict=False)) if a is not b), len(stack))
        del stack[min(known, len(frames)) :]
        for frame in frames[len(stack) :]:
            caller, around = stack[-1] if stack else (None, "")
            found = self._paths.of(frame, caller, around)
            stack.append((frame, around if found is None else found))
        return stack[-1][1]
