"""Move flags and drops on hand-made instructions."""

from engine.executor.bytecode.instructions import ASSIGN, JUMP, JUMP_IF_NOT, LOAD, OPERATE, RETURN, Instruction
from engine.executor.bytecode.liveness import place_moves_and_drops


def listing(*instructions: Instruction) -> list[str]:
    return [str(i) for i in place_moves_and_drops(instructions)]


def test_the_last_use_moves() -> None:
    assert listing(
        Instruction(LOAD, "Load", (), (0,)),
        Instruction(OPERATE, "neg", (0,), (1,)),
        Instruction(OPERATE, "add", (0, 1), (2,)),
        Instruction(RETURN, "Store", (2,)),
    ) == ["0 = Load", "1 = neg 0", "2 = add move(0), move(1)", "= Store move(2)"]


def test_targets_of_jumps_follow_the_drops_that_are_inserted_before_them() -> None:
    # 1 is needed on the way that falls through only, so the target begins with its drop.
    assert listing(
        Instruction(LOAD, "Load", (), (0, 1)),
        Instruction(JUMP_IF_NOT, "JumpZ", (0,), operand=3),
        Instruction(OPERATE, "print", (1,)),
        Instruction(RETURN, "Store"),
    ) == ["0, 1 = Load", "= JumpZ move(0) -> @3", "= print move(1)", "= Drop move(1)", "= Store"]


def test_a_value_of_the_next_round_stays_alive() -> None:
    # @1: use 0, jump back: 0 is never used for the last time, 1 dies in each round.
    assert listing(
        Instruction(LOAD, "Load", (), (0,)),
        Instruction(OPERATE, "neg", (0,), (1,)),
        Instruction(OPERATE, "print", (1,)),
        Instruction(JUMP, "Jump", operand=1),
    ) == ["0 = Load", "1 = neg 0", "= print move(1)", "= Jump -> @1"]


def test_what_an_assignment_overwrites_is_not_cleared() -> None:
    swap = Instruction(ASSIGN, "Assign", (1, 0), (0, 1), moves=(True, True))
    assert swap.dead == ()
