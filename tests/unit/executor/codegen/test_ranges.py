"""Ranges of ints: what is known without running, never too narrow."""

import random

import pytest

from engine.executor.codegen.ranges import ALL, HIGH, Ranges
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.executor import executor_of
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir

pytestmark = pytest.mark.usefixtures("plans_at_once")


def of(text: str, name: str) -> tuple[int, int]:
    graph = parse_ir(text)
    values = [v for node in graph.all_nodes() for v in (*node.outputs, *(i for b in node.blocks for i in b.inputs))]
    (found,) = [value for value in values if value.debug_name == name]
    return Ranges(graph).of(found)


WHILE = """
graph(%n : int):
  %max : int = prim::Constant[value=9223372036854775807]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %c0 : bool = aten::lt(%zero, %n)
  %r : int, %s : int = prim::Loop(%max, %c0, %zero, %zero)
    block0(%k : int, %i : int, %t : int):
      %t2 : int = aten::add(%t, %i)
      %i2 : int = aten::add(%i, %one)
      %c1 : bool = aten::lt(%i2, %n)
      -> (%c1, %i2, %t2)
  return (%r)
"""


def test_the_condition_of_a_loop_bounds_what_is_counted() -> None:
    assert of(WHILE, "i") == (0, HIGH - 1)
    assert of(WHILE, "i2") == (1, HIGH)
    assert of(WHILE, "t2") == ALL, "sums are not bounded"
    assert of(WHILE, "k") == (0, HIGH - 1)
    assert of(WHILE, "r") == (0, HIGH)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%y : int = aten::remainder(%x, %seven)", (0, 6)),
        ("%y : int = aten::__and__(%x, %seven)", (0, 7)),
        ("%y : int = aten::add(%x, %seven)", ALL),
        ("%y : int = aten::floordiv(%x, %seven)", (-(2**63) // 7, HIGH // 7)),
        ("%y : int = aten::len(%l)", (0, 2**48)),
        ("%y : int = prim::min(%x, %seven)", (-(2**63), 7)),
        ("%y : int = aten::neg(%seven)", (-7, -7)),
    ],
)
def test_operators_bound_their_results(line: str, expected: tuple[int, int]) -> None:
    text = f"graph(%x : int, %l : int[]):\n  %seven : int = prim::Constant[value=7]()\n  {line}\n  return (%y)\n"
    assert of(text, "y") == expected


def program(generator: random.Random) -> str:
    """A function with loops, branches and arithmetic on small and large numbers."""
    lines = ["def f(a: int, b: int):", "    x = a", "    y = b", "    i0 = 0", "    i1 = 0"]

    def operand() -> str:
        return generator.choice(["x", "y", "i0", "i1", "a", "3", "-5", "1000", "9223372036854775807"])

    def statement(indent: str, depth: int) -> None:
        kind = generator.randrange(6)
        name = generator.choice("xy")
        if kind == 0 and depth < 2:
            lines.append(f"{indent}i{depth} = 0")
            lines.append(
                f"{indent}while i{depth} {generator.choice(['<', '<='])} {generator.choice(['4', 'a % 5', '3'])}:"
            )
            statement(indent + "    ", depth + 1)
            lines.append(f"{indent}    i{depth} += {generator.choice(['1', '2', '3'])}")
        elif kind == 1 and depth < 2:
            lines.append(f"{indent}for j{depth} in range({generator.choice(['3', 'b % 4'])}):")
            statement(indent + "    ", depth + 1)
            statement(indent + "    ", depth + 1)
        elif kind == 2:
            lines.append(f"{indent}if {operand()} {generator.choice(['<', '>', '=='])} {operand()}:")
            lines.append(f"{indent}    {name} = {operand()} {generator.choice('+-*')} {operand()}")
        elif kind == 3:
            lines.append(
                f"{indent}{name} = {operand()} {generator.choice(['//', '%'])} {generator.choice(['3', '-7'])}"
            )
        elif kind == 4:
            lines.append(f"{indent}{name} = -{name} & {generator.choice(['255', 'y'])}")
        else:
            lines.append(f"{indent}{name} = {operand()} {generator.choice('+-*')} {operand()}")

    for _ in range(6):
        statement("    ", 0)
    return "\n".join([*lines, "    return x, y, i0, i1", ""])


@pytest.mark.parametrize("seed", range(40))
def test_no_value_of_a_run_leaves_its_range(seed: int) -> None:
    generator = random.Random(seed)
    function = compile_source(program(generator)).functions["f"]
    code = executor_of(function).code
    ranges = Ranges(code.graph)

    def check(state: InterpreterState) -> None:
        for register, value in enumerate(state.frame.registers[: len(code.values)]):
            owner = code.values[register]
            # What a loop carries has its range in the body; its register also holds what ends the loop.
            if owner is not None and owner.node.kind != "prim::Param" and type(value) is int:
                low, high = ranges.of(owner)
                assert low <= value <= high, f"%{owner.debug_name} is {value}, not in {low} to {high}:\n{code.graph}"

    for arguments in ((0, 1), (7, -3), (2**63 - 1, 2**62)):
        InterpreterState(code, [check]).run(*arguments)
        plan = executor_of(function).plan_for(list(arguments))
        assert plan.entry is not None
        assert plan.entry(*arguments) == InterpreterState(code).run(*arguments)


def test_loops_nested_deeply_are_left_alone() -> None:
    lines = ["def f(n: int):", "    t = 0"]
    lines += ["    " * (i + 1) + f"for i{i} in range(n):" for i in range(40)]
    function = compile_source("\n".join([*lines, "    " * 41 + "t += 1", "    return t", ""])).functions["f"]
    graph: Graph = executor_of(function).graph
    assert Ranges(graph).of(graph.outputs[0]) == ALL
