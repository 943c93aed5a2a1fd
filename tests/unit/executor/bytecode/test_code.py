"""Listings: registers, move flags, drops, jumps."""

import pytest

from engine.aten.values.tensor import tensor
from engine.executor.bytecode import code
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.operations import operation_of
from engine.executor.interpreter.interpreter import InterpreterState
from engine.ir.parser import parse_ir
from engine.lang.errors import ExecutionError
from tests.unit.executor.lstm_listing import LSTM_LISTING

LSTM_CELL = """
graph(%x : Tensor, %hx : Tensor, %cx : Tensor, %w_ih : Tensor, %w_hh : Tensor, %b_ih : Tensor, %b_hh : Tensor):
  %7 : int = prim::Constant[value=1]()
  %8 : Tensor = aten::t(%w_ih)
  %9 : Tensor = aten::mm(%x, %8)
  %10 : Tensor = aten::t(%w_hh)
  %11 : Tensor = aten::mm(%hx, %10)
  %12 : Tensor = aten::add(%9, %11, %7)
  %13 : Tensor = aten::add(%12, %b_ih, %7)
  %gates : Tensor = aten::add(%13, %b_hh, %7)
  %ingate.1 : Tensor, %forgetgate.1 : Tensor, %cellgate.1 : Tensor, %outgate.1 : Tensor = CHUNK
  %ingate : Tensor = aten::sigmoid(%ingate.1)
  %forgetgate : Tensor = aten::sigmoid(%forgetgate.1)
  %cellgate : Tensor = aten::tanh(%cellgate.1)
  %outgate : Tensor = aten::sigmoid(%outgate.1)
  %23 : Tensor = aten::mul(%forgetgate, %cx)
  %24 : Tensor = aten::mul(%ingate, %cellgate)
  %cy : Tensor = aten::add(%23, %24, %7)
  %26 : Tensor = aten::tanh(%cy)
  %hy : Tensor = aten::mul(%outgate, %26)
  %28 : (Tensor, Tensor) = prim::TupleConstruct(%hy, %cy)
  return (%28)
"""


BRANCHES = """
graph(%x : Tensor, %flag : bool):
  %y : Tensor = prim::If(%flag)
    block0():
      %a : Tensor = aten::lgamma(%x)
      -> (%a)
    block1():
      %b : Tensor = aten::frac(%x)
      -> (%b)
  return (%y)
"""


def test_operations_are_looked_up_when_they_first_run(monkeypatch):
    asked = []
    monkeypatch.setattr(code, "operation_of", lambda node: asked.append(node.kind) or operation_of(node))
    made = code_of_ir(BRANCHES)
    for _ in range(3):
        assert InterpreterState(made).run(tensor([1.5]), False).tolist() == [0.5]
    assert asked == ["aten::frac"], "the step that called has the operation itself"
    assert InterpreterState(made).run(tensor([1.0]), True).tolist() == [0.0]
    assert asked == ["aten::frac", "aten::lgamma"]


def code_of_ir(text: str, name: str = "f") -> Code:
    return Code(parse_ir(text), name)


def test_the_lstm_cell_prints_as_the_design_document_has_it() -> None:
    code = code_of_ir(LSTM_CELL.replace("CHUNK", "prim::ConstantChunk[chunks=4, dim=1](%gates)"))
    assert str(code) == LSTM_LISTING


def test_registers_know_their_values_and_instructions_their_nodes() -> None:
    code = code_of_ir(LSTM_CELL.replace("CHUNK", "prim::ConstantChunk[chunks=4, dim=1](%gates)"))
    gates = code.values[14]
    assert gates is not None
    assert gates.debug_name == "gates"
    assert code.register_of(gates) == 14
    assert code.instructions[8].node is gates.node
    assert code.constants == (1,)


def test_values_that_nobody_uses_are_dropped_at_once() -> None:
    code = code_of_ir("""
graph(%x : Tensor, %unused : Tensor):
  %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=0](%x)
  return (%a)
""")
    assert str(code).split("\n") == [
        "0, 1 = Load", "= Drop move(1)", "2, 3 = ConstantChunk move(0)", "= Drop move(3)", "= Store move(2)",
    ]  # fmt: skip


def test_a_value_used_twice_by_one_instruction_moves_once() -> None:
    code = code_of_ir("graph(%x : Tensor):\n  %y : Tensor = aten::mul(%x, %x)\n  return (%y)\n")
    assert "1 = mul 0, move(0)" in str(code)


def test_if_drops_on_each_branch_what_only_the_other_uses() -> None:
    code = code_of_ir("""
graph(%c : bool, %x : Tensor, %y : Tensor):
  %z : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      %b : Tensor = aten::neg(%y)
      -> (%b)
  return (%z)
""")
    assert (
        str(code)
        == """\
0, 1, 2 = Load
= JumpZ move(0) -> @6
= Drop move(2)
3 = neg move(1)
4 = Assign move(3)
= Jump -> @9
@6:
= Drop move(1)
5 = neg move(2)
4 = Assign move(5)
@9:
= Store move(4)"""
    )


def test_loop_keeps_what_the_next_round_needs_and_drops_it_at_the_exit() -> None:
    code = code_of_ir("""
graph(%n : int, %x : Tensor, %y : Tensor):
  %t : bool = prim::Constant[value=1]()
  %z : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::mul(%a, %y)
      -> (%t, %b)
  return (%z)
""")
    assert (
        str(code)
        == """\
0, 1, 2 = Load
3 = Constant
= Drop move(3)
4 = Constant
5 = Constant
6 = Assign move(1)
@6:
7 = lt 4, 0
= JumpZ move(7) -> @12
8 = mul move(6), 2
6 = Assign move(8)
4 = add 4, 5
= Jump -> @6
@12:
= Drop move(0), move(2), move(4), move(5)
9 = Assign move(6)
= Store move(9)"""
    )


def test_a_while_loop_tests_its_condition_and_counts_nothing() -> None:
    code = code_of_ir("""
graph(%c : bool, %x : int):
  %max : int = prim::Constant[value=9223372036854775807]()
  %z : int = prim::Loop(%max, %c, %x)
    block0(%i : int, %a : int):
      %b : int = aten::neg(%a)
      %d : bool = aten::lt(%b, %a)
      -> (%d, %b)
  return (%z)
""")
    names = [instruction.name for instruction in code.instructions]
    assert names == ["Load", "Constant", "Drop", "Assign", "JumpZ", "neg", "lt", "Assign", "Jump", "Assign", "Store"]


def test_an_unknown_operator_is_refused_when_it_runs_with_the_types_it_was_given() -> None:
    code = code_of_ir("graph(%x : Tensor):\n  %y : Tensor = aten::no_such_thing(%x)\n  return (%y)\n")
    with pytest.raises(ExecutionError, match=r"no operator aten::no_such_thing\(Tensor\)"):
        InterpreterState(code).run(tensor([1.0]))
