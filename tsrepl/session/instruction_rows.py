"""Instructions as rows: what each does in the program's own words.

In: a code.  Out: an `InstructionRow` for each instruction: constants with their values, attributes and callees with
their names, the author's variables that it computes, the line that it is from.
"""

from __future__ import annotations

from typing import Any, Final

from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import CONSTANT, DROP, Instruction
from engine.executor.plans.source_lines import line_of
from engine.executor.plans.source_places import Places
from engine.ir.constants import constant_value
from engine.ir.graph import Node
from engine.ir.unit import Function
from tsrepl.session.modules import without_scopes
from tsrepl.session.replies import InstructionRow
from tsrepl.session.values import summary

_ATTRIBUTE: Final = ("prim::GetAttr", "prim::SetAttr", "prim::CallMethod")
_OF_TYPE: Final = ("prim::CreateObject", "prim::unchecked_cast", "prim::NamedTupleConstruct")


def instruction_rows(code: Code, *, with_lines: bool = True) -> tuple[InstructionRow, ...]:
    """All instructions of a code, with their places if that is wanted."""
    lines = [line_of(each.range) for each in code.instructions]
    places = Places(lines)
    return tuple(
        InstructionRow(
            at, instruction_text(code, each), variables_of(code, each), places.text(line) if with_lines else ""
        )
        for at, (each, line) in enumerate(zip(code.instructions, lines, strict=True))
    )


def instruction_text(code: Code, instruction: Instruction) -> str:
    """The instruction as listings print it, with the value or the name that it is about."""
    text = str(instruction).strip()
    about = _about(code, instruction)
    return text.replace(instruction.name, f"{instruction.name} {about}", 1) if about else text


def _about(code: Code, instruction: Instruction) -> str:
    node = instruction.node
    if instruction.opcode == CONSTANT:
        return summary(code.constants[instruction.operand])
    if node is None or instruction.opcode == DROP:
        return ""
    if node.kind in _ATTRIBUTE:
        name = str(node.attr("name"))
        return name if name.isidentifier() else repr(name)  # `0` would be taken for a register
    if node.kind in _OF_TYPE:
        return without_scopes(node.output.type.annotation_str)
    if node.kind == "prim::isinstance":
        return without_scopes(", ".join(type.annotation_str for type in node.attr("types")))
    return _callee(node) if node.kind == "prim::CallFunction" else ""


def _callee(node: Node) -> str:
    function: Any = constant_value(node.inputs[0])
    return function.name if isinstance(function, Function) else ""


def variables_of(code: Code, instruction: Instruction) -> str:
    """The names of the author's variables that the instruction computes."""
    values = [code.values[register] for register in instruction.outputs]
    return ", ".join(value.variable_name for value in values if value is not None and value.name)
