"""Instructions of the interpreter, and their opcodes.

In: an opcode, the registers it reads and writes, its operand.  Out: an `Instruction` that prints as one
line of a listing, and the `Step` (a plain tuple) that the interpreter's loop unpacks.

Note [Listing]
    8 = t move(3)                 register 8 becomes t of register 3, which is not needed any more
    15, 16 = ListUnpack move(14)  several results
    = Store move(28)              no result: the function returns register 28
    = JumpZ move(4) -> @12        goes on at instruction 12 if register 4 is false
    @12:                          stands before an instruction that some jump names
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from engine.ir.graph import Node
from engine.lang.records import dataclass
from engine.lang.source import SourceRange


class Opcode(NamedTuple):
    """`name` is shown in listings (None: the operation's name); `operand` describes the instruction's operand."""

    name: str | None
    operand: str
    does: str


OPCODES: Final = (
    Opcode(None, "a callable", "calls the operand with the inputs and stores what it returns"),
    Opcode("Constant", "index into Code.constants", "stores the constant"),
    Opcode("JumpZ", "target", "goes to the target if the input is false"),
    Opcode("Assign", "", "copies the inputs to the outputs, all at once"),
    Opcode("Jump", "target", "goes to the target"),
    Opcode(None, "inputs -> (Function, arguments)", "calls a TorchScript function in a frame of its own"),
    Opcode("Store", "", "returns the inputs to the caller"),
    Opcode("Drop", "", "forgets the inputs"),
    Opcode("Load", "", "names the registers in which the caller has put the arguments"),
    Opcode("Enter", "inputs -> (Function, arguments)", "calls __enter__; the object waits for its __exit__"),
    Opcode("Exit", "inputs -> (Function, arguments)", "calls __exit__ of the object entered last"),
    Opcode("fork", "Function", "starts the function and stores the future of its result"),
    Opcode("wait", "", "takes a future's value; suspends the interpreter while there is none"),
    Opcode("TailCall", "inputs -> (Function, arguments)", "calls a function that takes the place of this one"),
)
(
    OPERATE, CONSTANT, JUMP_IF_NOT, ASSIGN, JUMP, CALL, RETURN, DROP, LOAD, ENTER, EXIT, FORK, WAIT, TAIL_CALL,
) = range(len(OPCODES))  # fmt: skip
JUMPS: Final = (JUMP, JUMP_IF_NOT)
CALLS: Final = (CALL, ENTER, EXIT, TAIL_CALL)
ENDS: Final = (RETURN, TAIL_CALL)
"""Those with which a function ends."""

Step = tuple[int, Any, Any, Any, tuple[int, ...]]
"""Opcode, operand, source (gathers the inputs), target (where the outputs go), registers to clear."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a `Code`.

    `moves[i]` says that `inputs[i]` is used here for the last time.  `node` is the node it comes from.
    """

    opcode: int
    name: str
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    operand: Any = None
    moves: tuple[bool, ...] = ()
    node: Node | None = None

    @property
    def range(self) -> SourceRange | None:
        return self.node.range if self.node else None

    @property
    def dead(self) -> tuple[int, ...]:
        """Registers to clear afterwards: moved from, and not just written."""
        written = set(self.outputs)
        return tuple(r for r, moves in zip(self.inputs, self.moves, strict=True) if moves and r not in written)

    def __str__(self) -> str:
        inputs = [f"move({r})" if moves else str(r) for r, moves in zip(self.inputs, self.moves, strict=True)]
        parts = [", ".join(map(str, self.outputs)), "=", self.name, ", ".join(inputs)]
        if self.opcode in JUMPS:
            parts.append(f"-> @{self.operand}")
        return " ".join(part for part in parts if part)


def encode(instruction: Instruction, constants: Sequence[Any], scratch: int) -> Step:
    """The instruction as a step of the interpreter's loop; results of operations without outputs go to `scratch`."""
    opcode, operand = instruction.opcode, instruction.operand
    source: Any = gatherer(instruction.inputs)
    target: Any = _target(instruction.outputs, scratch)
    if opcode == CONSTANT:
        operand = constants[operand]
    elif opcode == ASSIGN:
        target = slice(instruction.outputs[0], instruction.outputs[-1] + 1)
    elif opcode in (JUMP_IF_NOT, WAIT):
        (source,) = instruction.inputs
    return opcode, operand, source, target, instruction.dead


def gatherer(registers: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function from the register file to the values of these registers, in order."""
    if len(registers) > 1:
        return itemgetter(*registers)
    first = registers[0] if registers else 0
    return itemgetter(slice(first, first + len(registers)))


def _target(outputs: tuple[int, ...], scratch: int) -> int | slice:
    """One output is an index, several (they lie side by side) a slice."""
    if len(outputs) == 1:
        return outputs[0]
    assert outputs == tuple(range(outputs[0], outputs[-1] + 1)) if outputs else True, f"{outputs} are not side by side"
    return slice(outputs[0], outputs[-1] + 1) if outputs else scratch
