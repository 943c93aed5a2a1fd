"""The arguments of `specialize_autogradzero`, and the graphs that `check_inplace` refuses."""

from __future__ import annotations

import pytest

from engine.ir.parser import parse_ir
from engine.ir.verify import verify
from engine.lang.errors import CompileError
from engine.passes.check_inplace import check_inplace
from engine.passes.specialize_autogradzero import specialize_autogradzero

SUM = """graph(%a : Tensor,
      %b : Tensor):
  %s : Tensor = prim::AutogradAdd(%a, %b)
  return (%s)
"""
FORMULA = """graph(%a : Tensor,
      %b : Tensor):
  %s : Tensor = prim::GradOf[name="mul"](%a, %b)
    block0():
      %m : Tensor = aten::mul(%a, %b)
      -> (%m)
  return (%s)
"""
PYTHON = """graph(%x : Tensor):
  %y : Tensor = prim::PythonOp[name="Scale", inplace=1](%x)
  return (%y)
"""


@pytest.mark.parametrize(
    ("text", "missing", "there", "kinds", "result"),
    [
        (SUM, (0,), (), [], "b"),
        (SUM, (1,), (), [], "a"),
        (SUM, (), (0, 1), ["prim::Constant", "aten::add"], None),
        (SUM, (), (0,), ["prim::AutogradAdd"], "s"),
        (FORMULA, (0, 1), (), ["prim::AutogradZero"], None),
        (FORMULA, (), (0, 1), ["aten::mul"], "m"),
        (FORMULA, (0,), (1,), ["prim::GradOf"], "s"),
    ],
)
def test_what_is_known_of_inputs(
    text: str, missing: tuple[int, ...], there: tuple[int, ...], kinds: list[str], result: str | None
) -> None:
    graph = parse_ir(text)
    changed = specialize_autogradzero(graph, missing=missing, there=there)
    verify(graph)
    assert changed is (str(graph) != text)
    assert [node.kind for node in graph.nodes()] == kinds
    assert result is None or graph.outputs[0].debug_name == result


def test_python_functions_that_write_are_refused() -> None:
    with pytest.raises(CompileError, match="inplace Scale not supported"):
        check_inplace(parse_ir(PYTHON))


def test_others_are_not() -> None:
    for text in (
        PYTHON.replace(", inplace=1", ""),
        PYTHON.replace('prim::PythonOp[name="Scale", inplace=1]', "aten::relu_"),
    ):
        assert not check_inplace(parse_ir(text))
