"""Instructions: how they print, and what the loop gets of them."""

import pytest

from engine.executor.bytecode.instructions import (
    ASSIGN,
    CONSTANT,
    JUMP_IF_NOT,
    OPCODES,
    OPERATE,
    RETURN,
    WAIT,
    Instruction,
    encode,
    gatherer,
)  # fmt: skip


@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        (Instruction(OPERATE, "t", (3,), (8,), moves=(True,)), "8 = t move(3)"),
        (Instruction(OPERATE, "add", (1, 2), (3,), moves=(False, True)), "3 = add 1, move(2)"),
        (Instruction(RETURN, "Store", (4,), moves=(False,)), "= Store 4"),
        (Instruction(JUMP_IF_NOT, "JumpZ", (4,), operand=12, moves=(True,)), "= JumpZ move(4) -> @12"),
        (Instruction(CONSTANT, "Constant", (), (7,), 0), "7 = Constant"),
    ],
)
def test_listing(instruction: Instruction, text: str) -> None:
    assert str(instruction) == text


@pytest.mark.parametrize("registers", [(), (2,), (1, 2), (2, 0, 2)])
def test_a_gatherer_takes_any_number_of_registers(registers: tuple[int, ...]) -> None:
    assert list(gatherer(registers)(["a", "b", "c"])) == ["abc"[r] for r in registers]


def test_steps_say_where_results_go() -> None:
    def target(*outputs: int) -> object:
        return encode(Instruction(OPERATE, "f", (), outputs), (), 9)[3]

    assert target(4) == 4
    assert target(4, 5) == slice(4, 6)
    assert target() == 9, "the scratch register"
    with pytest.raises(AssertionError, match="side by side"):
        target(4, 6)


def test_steps_carry_what_their_opcode_needs() -> None:
    assert encode(Instruction(CONSTANT, "Constant", (), (0,), 1), ("a", "b"), 9)[1] == "b"
    assert encode(Instruction(ASSIGN, "Assign", (1,), (0,), moves=(True,)), (), 9)[3:] == (slice(0, 1), (1,))
    assert encode(Instruction(WAIT, "wait", (1,), (0,), moves=(False,)), (), 9)[2] == 1


def test_every_opcode_says_what_it_does() -> None:
    assert all(opcode.does for opcode in OPCODES)
