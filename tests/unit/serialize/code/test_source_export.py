"""The Python printer, against texts that PyTorch printed (`python_printer.case`) and by hand."""

import re
from pathlib import Path

import pytest

from engine.ir.parser import parse_ir
from engine.ir.unit import Function
from engine.lang.errors import ArchiveError
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import NONE, FunctionType
from engine.serialize.code.source_export import function_code

CASES = {
    name: (graph.strip(), code.strip())
    for name, graph, code in re.findall(
        r"=== (\w+)\n\[graph\]\n(.*?)\n\[code\]\n(.*?)(?=\n=== |\Z)",
        (Path(__file__).parent / "python_printer.case").read_text(),
        re.DOTALL,
    )
}


def function_from(text, name="f"):
    def resolve(known):
        return None if known.startswith("__torch__") else FunctionType(Function(known))

    graph = parse_ir(text, resolve)
    arguments = tuple(Argument(value.debug_name.partition(".")[0], value.type) for value in graph.inputs)
    returned = graph.outputs[0].type if graph.outputs else NONE
    function = Function(name)
    function.define(FunctionSchema(name, arguments=arguments, returns=(Argument("", returned),)), graph)
    return function


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch_prints_it(name):
    graph, code = CASES[name]
    assert function_code(function_from(graph, re.match(r"def (\w+)", code)[1])).strip() == code


def test_a_methods_self_shows_no_type():
    text = "graph(%self.1 : __torch__.C, %x.1 : int):\n  return (%x.1)"
    assert function_code(function_from(text, "__torch__.C.f")).startswith("def f(self,\n    x: int)")
    assert function_code(function_from(text, "f")).startswith("def f(self: __torch__.C,\n    x: int)")


def test_there_are_cases():
    assert len(CASES) > 30


def test_names_are_made_identifiers_and_told_apart():
    text = """graph(%if.1 : int, %a.b.1 : int):
      %x.1 : int = aten::mul(%if.1, %a.b.1)
      %x.2 : int = aten::mul(%x.1, %x.1)
      %y.1 : int = aten::mul(%x.2, %x.1)
      return (%y.1)"""
    assert function_code(function_from(text)).split("\n")[0] == "def f(if0: int,"
    assert "  x0 = torch.mul(x, x)" in function_code(function_from(text))


def test_constants():
    text = """graph():
      %0 : float = prim::Constant[value=-0.]()
      %1 : complex = prim::Constant[value=1.-2.j]()
      %2 : str = prim::Constant[value="a\\"\\n"]()
      %3 : Device = prim::Constant[value="cpu"]()
      %4 : bool = prim::Constant[value=1]()
      %5 : NoneType = prim::Constant()
      %6 : (int, float[]) = prim::Constant[value=(1, [0.5])]()
      %7 : Any = prim::TupleConstruct(%0, %1, %2, %3, %4, %5, %6)
      return (%7)"""
    expected = '_0 = (-0., 1.-2.j, "a\\"\\n", torch.device("cpu"), True, None, (1, [0.5]))'
    assert function_code(function_from(text)).split("\n")[-3] == f"  {expected}"


def test_long_expressions_get_lines_of_their_own_in_the_order_they_run():
    text = """graph(%first_argument.1 : Tensor, %second_argument.1 : Tensor):
      %2 : Tensor = aten::mul_(%first_argument.1, %second_argument.1)
      %3 : Tensor = aten::mul(%first_argument.1, %second_argument.1)
      %4 : Tensor = aten::mul(%2, %3)
      return (%4)"""
    assert function_code(function_from(text)).split("\n")[2:] == [
        "  _0 = torch.mul_(first_argument, second_argument)",
        "  _1 = torch.mul(first_argument, second_argument)",
        "  return torch.mul(_0, _1)",
        "",
    ]


def test_a_loop_that_is_both_kinds_is_refused():
    text = """graph(%n.1 : int, %c.1 : bool):
      %x : bool = prim::Loop(%n.1, %c.1, %c.1)
        block0(%i.1 : int, %y.1 : bool):
          -> (%y.1, %y.1)
      return (%x)"""
    with pytest.raises(ArchiveError, match="both a while and a for"):
        function_code(function_from(text))


def test_a_closure_is_refused():
    text = """graph(%x.1 : int):
      %f.1 : Function = prim::Closure_0()
      return (%x.1)
    with prim::Closure_0 = graph():
      %0 : NoneType = prim::Constant()
      return (%0)
    """
    with pytest.raises(ArchiveError, match="closure"):
        function_code(function_from(text))
