"""Liveness of registers: move flags at last uses, and drops where the last use depends on control flow.

In: instructions in order, jumps among them.  Out: the same with move flags set, and with a `Drop` after an
instruction whose result nobody uses and at the start of a branch on which a value is not needed any more.

A register is live where some path leads to a use of it before a definition.  The sets are ints used as
bit masks: bit r stands for register r.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from engine.executor.bytecode.instructions import DROP, ENDS, JUMP, JUMP_IF_NOT, JUMPS, Instruction


def place_moves_and_drops(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The instructions with flags and drops; targets of jumps are counted anew."""
    following = [_successors(i, instruction) for i, instruction in enumerate(instructions)]
    live_in, live_out = _live_sets(instructions, following)
    drops_before = _drops_on_branches(following, live_in, live_out)
    placed: list[Instruction] = []
    start_of: list[int] = []
    for index, instruction in enumerate(instructions):
        start_of.append(len(placed))
        placed += _drop(drops_before[index], instruction)
        placed.append(replace(instruction, moves=_moves(instruction, live_out[index])))
        placed += _drop(_mask(instruction.outputs) & ~live_out[index], instruction)
    return [replace(i, operand=start_of[i.operand]) if i.opcode in JUMPS else i for i in placed]


def _successors(index: int, instruction: Instruction) -> tuple[int, ...]:
    if instruction.opcode in ENDS:
        return ()
    if instruction.opcode == JUMP:
        return (instruction.operand,)
    return (index + 1, instruction.operand) if instruction.opcode == JUMP_IF_NOT else (index + 1,)


def _live_sets(
    instructions: Sequence[Instruction], following: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[int]]:
    """The registers live before and after each instruction; iterated to a fixed point over loops."""
    used = [_mask(i.inputs) for i in instructions]
    defined = [_mask(i.outputs) for i in instructions]
    live_in, live_out = [0] * len(instructions), [0] * len(instructions)
    changed = True
    while changed:
        changed = False
        for index in reversed(range(len(instructions))):
            after = 0
            for successor in following[index]:
                after |= live_in[successor]
            before = used[index] | (after & ~defined[index])
            changed |= before != live_in[index]
            live_in[index], live_out[index] = before, after
    return live_in, live_out


def _drops_on_branches(
    following: Sequence[tuple[int, ...]], live_in: Sequence[int], live_out: Sequence[int]
) -> list[int]:
    """Registers a branch drops first: live after the jump only because the other branch needs them."""
    drops = [0] * len(following)
    for index, successors in enumerate(following):
        if len(successors) > 1:
            for successor in successors:
                drops[successor] |= live_out[index] & ~live_in[successor]
    return drops


def _moves(instruction: Instruction, live_after: int) -> tuple[bool, ...]:
    """A flag for each input: True at the last read of its register, once even if the instruction reads it twice."""
    inputs = instruction.inputs
    last = {r: at for at, r in enumerate(inputs)}
    return tuple(last[r] == at and not live_after >> r & 1 for at, r in enumerate(inputs))


def _drop(registers: int, cause: Instruction) -> list[Instruction]:
    if not registers:
        return []
    dropped = tuple(_members(registers))
    return [Instruction(DROP, "Drop", dropped, moves=(True,) * len(dropped), node=cause.node)]


def _members(registers: int) -> Iterator[int]:
    """The registers of a mask, lowest first."""
    while registers:
        lowest = registers & -registers
        yield lowest.bit_length() - 1
        registers ^= lowest


def _mask(registers: Iterable[int]) -> int:
    mask = 0
    for register in registers:
        mask |= 1 << register
    return mask
