"""What the emitter makes of trees before SSA conversion, and what it does with names."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source, library_value, written_overloads
from engine.frontend.emit import RULES, Emitter
from engine.frontend.emit.body import compile_body
from engine.frontend.names.resolve import TextResolver
from engine.frontend.syntax.parser import parse_statements
from engine.frontend.syntax.tree import BINARY_KINDS, UNARY_KINDS
from engine.ir.unit import CompilationUnit
from engine.ir.verify import verify
from engine.lang.errors import CompileError
from engine.lang.schema_parser import parse_type
from engine.lang.source import Source


def raw(text: str, **parameters: str) -> Emitter:
    """The emitter after those statements, with parameters of those types."""
    unit = CompilationUnit()
    e = Emitter(unit, written_overloads, library_value, resolver=TextResolver(unit), rules=RULES)
    for name, type in parameters.items():
        value = e.graph.add_input(name, parse_type(type))
        e.store(name, value, value.type)
    compile_body(e, parse_statements(Source(text)))
    return e


def kinds(text: str, **parameters: str) -> list[str]:
    return [node.kind.removeprefix("prim::") for node in raw(text, **parameters).graph.all_nodes()]


def test_variables_are_loads_and_stores() -> None:
    assert kinds("y = x\n", x="int") == ["Store", "Load", "Store"]


def test_a_literal_is_made_once_at_the_start() -> None:
    e = raw("y = x + 7\nz = y * 7\n", x="int")
    constants = e.graph.find_all_nodes("prim::Constant")
    assert [node.attr("value") for node in constants] == [7]
    assert e.graph.block.param_node.next is constants[0]


def test_equal_numbers_of_different_types_are_different_literals() -> None:
    e = raw("y = (1, 1.0, -0.0, 0.0)\n")
    assert len(e.graph.find_all_nodes("prim::Constant")) == 4


def test_a_loop_has_a_body_and_a_condition() -> None:
    e = raw("while x > 0:\n    x = x - 1\n    if x == 3:\n        break\n", x="int")
    loop = e.graph.find_node("prim::Loop")
    assert loop is not None
    body, condition = loop.blocks
    assert [str(value.type) for value in condition.outputs] == ["bool"]
    assert not body.outputs
    assert e.graph.find_node("prim::BreakStmt") is not None


def test_what_is_known_while_compiling_is_not_branched_on() -> None:
    assert "If" not in kinds("if x is None:\n    y = 1\nelse:\n    y = 2\n", x="int")
    assert "If" not in kinds("if torch.jit.is_scripting():\n    y = 1\nelse:\n    y = nothing\n")
    assert "If" not in kinds("y = 1 if isinstance(x, int) else 'a'\n", x="int")


def test_nothing_is_compiled_after_a_return() -> None:
    assert kinds("return x\ny = nothing\n", x="int") == ["Store", "Load", "ReturnStmt"]


def test_a_comprehension_keeps_its_variables_to_itself() -> None:
    unit = compile_source("def f(x: int, xs: List[int]):\n    ys = [x * 2 for x in xs]\n    return x, ys\n")
    graph = unit.functions["f"].graph
    verify(graph)
    assert graph.outputs[0].node.inputs[0] is graph.inputs[0]


def test_a_tuple_is_gone_through_while_compiling() -> None:
    assert "Loop" not in kinds("for i in (1, 'a', 2.5):\n    print(i)\n")


def test_names_of_values_are_those_of_variables() -> None:
    e = raw("total = x + 1\n_0 = x + 2\n", x="int")
    assert [node.output.name for node in e.graph.find_all_nodes("aten::add")] == ["total", ""]


def test_a_condition_refines_in_its_branch_only() -> None:
    e = raw("if x is not None:\n    y = x\nz = x\n", x="int?")
    loads = [str(node.output.type) for node in e.graph.find_all_nodes("prim::Load") if node.attr("name") == "x"]
    assert loads == ["int?", "int?", "int", "int?"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nif c:\n    x = 'a'\n", "Variable 'x' previously had type int but is now being assigned to a value"),
        ("if c:\n    y = 1\nelse:\n    y = 'a'\nz = y\n", "Type mismatch: y is set to type int in the true branch"),
        ("break\n", "'break' outside loop"),
        ("for i in (1, 2):\n    break\n", "we do not support break or continue"),
        ("t = torch\nif c:\n    t = 1\n", "t is not a first-class value"),
        ("a, *b, *c = (1, 2, 3)\n", "Only one starred expression is allowed"),
        ("y: int\n", "right-hand side"),
        ("y = [1, 'a'][0] + 1\n", "tell them apart with isinstance"),
        ("y: Dict[Any, int] = {}\n", "Cannot create dict for key type 'Any'"),
        ("y: Lst[int] = []\n", "Unknown type constructor Lst"),
        ("y: Tensr = c\n", "did you mean 'Tensor'?"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        raw(text, c="bool")
    assert message in str(error.value)
    assert error.value.range is not None


def test_every_operator_has_a_rule() -> None:
    assert set(RULES.expressions) >= BINARY_KINDS | UNARY_KINDS


def test_a_name_that_is_a_value_in_one_branch_only_cannot_be_used_after() -> None:
    with pytest.raises(CompileError, match="z does not stand for a value in the true branch"):
        raw("if c:\n    z = int\nelse:\n    z = 1\ny = z\n", c="bool")
