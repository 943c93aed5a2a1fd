"""For each instruction: the registers that it writes, and the values that it may change besides.

In: a code.  Out: an `Effect` for each of its instructions, worked out once.  What an operator writes to stands in its
schema; operators with side effects, and calls of Python, may change whatever they can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from engine.aten.kernels.random import Generator
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import (
    ENTER,
    EXIT,
    FORK,
    OPERATE,
    RETURN,
    TAIL_CALL,
    WAIT,
    Instruction,
)  # fmt: skip
from engine.executor.bytecode.operations import op_of
from engine.executor.debugging.undo import Kept, keep, keep_modes, keep_random, keep_reachable
from engine.ir.graph import Node
from engine.lang.records import dataclass
from engine.lang.schema import Argument

Keep = Callable[[Sequence[Any]], Iterable[Kept]]
"""From the instruction's inputs to what it may change."""


@dataclass(frozen=True, slots=True)
class Effect:
    """`registers` are written by the instruction; `keep` is None for one that changes no values.

    `is_plain` is True for one that changes registers and nothing else.
    """

    registers: tuple[int, ...]
    keep: Keep | None
    is_plain: bool


CHANGING: Final = frozenset({ENTER, EXIT, FORK, RETURN, TAIL_CALL, WAIT})
"""Opcodes that change more than registers: calls under way, contexts, threads, futures."""


def effects_of(code: Code) -> tuple[Effect, ...]:
    """The effects of the code's instructions, in order."""
    scratch = len(code.values)
    return tuple(_effect(each, each.outputs or (scratch,)) for each in code.instructions)


def _effect(instruction: Instruction, registers: tuple[int, ...]) -> Effect:
    keep = _keep_of(instruction)
    return Effect(registers, keep, keep is None and instruction.opcode not in CHANGING)


def _keep_of(instruction: Instruction) -> Keep | None:
    node = instruction.node
    if instruction.opcode != OPERATE or node is None or instruction.name != node.kind.partition("::")[2]:
        return None  # bookkeeping of loops has the node, and writes registers alone
    return _ROWS.get(node.kind) or _of_operator(node)


def _of_operator(node: Node) -> Keep | None:
    op = op_of(node)
    if op is None:
        return None
    if op.side_effects:
        return _everything
    arguments = [(i, each, _writes_elements(each)) for i, each in enumerate(op.schema.arguments)]
    written = [(i, all) for i, each, all in arguments if each.is_write or all or each.name in op.also_writes]
    if op.nondeterministic:
        return lambda inputs: _keep_random(inputs, written)
    return (lambda inputs: _keep_written(inputs, written)) if written else None


def _writes_elements(argument: Argument) -> bool:
    """True for a list whose tensors are written to."""
    return argument.alias is not None and any(each.is_write for each in argument.alias.elements)


Written = Sequence[tuple[int, bool]]
"""The places of arguments, and whether what is written to is their elements."""


def _keep_written(inputs: Sequence[Any], written: Written) -> list[Kept]:
    kept: list[Kept] = []
    for place, is_elements in written:
        for value in inputs[place] if is_elements else (inputs[place],):
            kept += keep(value)
    return kept


def _keep_random(inputs: Sequence[Any], written: Written) -> Iterator[Kept]:
    """An operator that draws random numbers: from the generator that it is given, or the shared one."""
    yield keep_random(next((each for each in inputs if isinstance(each, Generator)), None))
    yield from _keep_written(inputs, written)


def _everything(inputs: Sequence[Any]) -> Iterator[Kept]:
    yield keep_random()
    yield keep_modes()
    yield from keep_reachable(inputs)


def _owner(inputs: Sequence[Any]) -> list[Kept]:
    return keep(inputs[0])


_ROWS: Final[dict[str, Keep]] = {"prim::SetAttr": _owner, "prim::PythonOp": _everything}
"""Nodes that are no operators of the table, and change values."""
