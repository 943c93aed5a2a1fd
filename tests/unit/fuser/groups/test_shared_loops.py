"""Threads share the loops around rows, whichever of their sizes is the large one."""

from __future__ import annotations

import pytest

import engine.torch as torch
from engine.fuser.groups.from_graph import lower
from engine.fuser.ir.kernel import For, all_expressions, all_statements
from engine.fuser.stubs import stub
from engine.fuser.stubs.binding import size
from engine.ir.parser import parse_ir

SPREAD = """
graph(%x : Tensor, %y : Tensor):
  %z : Tensor = aten::mul(%x, %y)
  %w : Tensor = aten::tanh(%z)
  return (%w)
"""


@pytest.mark.parametrize("shape", [(1, 7, 60), (7, 1, 60), (2, 3, 20), (3, 1, 4, 17), (1, 1, 9, 5)])
def test_all_loops_but_that_of_the_row_are_one(shape: tuple[int, ...]) -> None:
    """The second operand is one row for each first index, so memory is not gone over as in one loop."""
    x, y = torch.randn(*shape), torch.randn(shape[0], *[1] * (len(shape) - 2), shape[-1])
    binding = lower(parse_ir(SPREAD), [x, y])
    loops = [each for each in all_statements(binding.kernel.body) if isinstance(each, For) and each.kind == "parallel"]
    shared = {each for loop in loops for each in all_expressions(loop.stop)}
    assert len(loops) == 1
    for d in (d for d, extent in enumerate(shape[:-1]) if extent > 1):
        assert {size(each.name, d) for each in binding.arguments} & shared, "either operand has the size"
    run = stub.bind("f", [binding], lambda *given: None)
    torch.testing.assert_close(run(x, y), torch.tanh(x * y))


def test_a_softmax_shares_all_that_it_does() -> None:
    """Also over the first dimension, before which nothing is."""
    graph = parse_ir("""
graph(%x : Tensor):
  %d : int = prim::Constant[value=0]()
  %n : NoneType = prim::Constant()
  %y : Tensor = aten::softmax(%x, %d, %n)
  return (%y)
""")
    x = torch.randn(70, 300)
    binding = lower(graph, [x])
    rows, columns = (size(binding.arguments[0].name, d) for d in (0, 1))
    outermost = [each for each in binding.kernel.body if isinstance(each, For)]
    assert len(outermost) > 1
    for loop in outermost:
        assert loop.kind == "parallel"
        assert {rows, columns} & {*all_expressions(loop.stop)}
    run = stub.bind("f", [binding], lambda *given: None)
    torch.testing.assert_close(run(x), torch.softmax(x, 0))
