"""Generated text: shapes of loops, moved expressions, what is let go."""

import textwrap

import pytest

from engine.executor.codegen.source import NotGenerated, generate
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.passes.pipeline import run_pass, run_pipeline


def text_of(graph: Graph) -> str:
    return generate(graph, records=False).text


def check(graph: Graph, expected: str) -> None:
    assert text_of(graph) == textwrap.dedent(expected).lstrip("\n")


def compiled(text: str) -> Graph:
    graph = compile_source(text + "\n").functions["f"].graph
    run_pipeline(("constant_propagation_immutable_types", "constant_pooling", "dce"), graph)
    return graph


def test_a_for_loop_is_pythons_and_sums_are_checked() -> None:
    check(
        compiled("def f(n: int):\n    s = 0\n    for i in range(n):\n        s += i\n    return s"),
        """
        def run(v0):
            v1 = 0
            for v2 in range(v0):
                v3 = v1 + v2
                if not LOW <= v3 <= HIGH: v3 = wrap(v3)
                v1 = v3
            return v1
        """,
    )


def test_the_two_conditions_of_a_while_become_one() -> None:
    check(
        compiled("def f(n: int):\n    i = 0\n    while i < n:\n        i += 2\n    return i"),
        """
        def run(v0):
            v1 = 0
            while v1 < v0:
                v3 = v1 + 2
                if not LOW <= v3 <= HIGH: v3 = wrap(v3)
                v1 = v3
            return v1
        """,
    )


def test_what_cannot_leave_64_bits_is_not_checked_and_moves_to_its_use() -> None:
    check(
        compiled("def f(n: int, m: int):\n    return n % 10 * 3 + m % 5 < 20"),
        """
        def run(v0, v1):
            return ((((v0 % 10) * 3) + (v1 % 5)) < 20)
        """,
    )


def test_a_loop_whose_condition_is_no_comparison_of_what_it_carries() -> None:
    check(
        parse_ir("""
graph(%n : int, %c : bool):
  %max : int = prim::Constant[value=9223372036854775807]()
  %a : int = prim::Loop(%max, %c, %n)
    block0(%i : int, %b : int):
      %d : bool = aten::gt(%i, %n)
      -> (%d, %i)
  return (%a)
"""),
        """
        def run(v0, v1):
            v2 = v0
            c3 = v1
            v3 = 0
            while c3:
                c3 = (v3 > v0)
                v2 = v3
                v3 += 1
            return v2
        """,
    )


@pytest.mark.usefixtures("without_machine_code")
def test_tensors_die_and_results_are_wrapped_once() -> None:
    check(
        parse_ir("""
graph(%x : Float(*)):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::neg(%x)
  %z : Tensor = aten::add(%y, %x, %one)
  return (%z)
"""),
        """
        def run(v0):
            token = quiet()
            try:
                a0 = v0.array
                a1 = negative_0(a0)
                a2 = add_1(a1, a0)
                v2 = new(Tensor)
                v2.array = a2
                v2._requires_grad = False
                v2._grad_fn = v2._storage = v2._base = None
                v2.output_nr = 0
                v0 = a0 = a1 = None
                return v2
            finally:
                loud(token)
        """,
    )


def test_branches_let_go_of_what_only_the_other_one_needs() -> None:
    check(
        parse_ir("""
graph(%c : bool, %l : int[], %m : int[]):
  %r : int[] = prim::If(%c)
    block0():
      -> (%l)
    block1():
      -> (%m)
  return (%r)
"""),
        """
        def run(v0, v1, v2):
            if v0:
                v2 = None
                v3 = v1
                v1 = None
            else:
                v1 = None
                v3 = v2
                v2 = None
            return v3
        """,
    )


def test_graphs_in_nodes_are_not_generated() -> None:
    graph = parse_ir(
        "graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  %z : Tensor = aten::exp(%y)\n  return (%z)\n"
    )
    run_pass("create_fusion_groups", graph)
    with pytest.raises(NotGenerated, match="prim::FusionGroup needs the interpreter"):
        text_of(graph)


def test_waiting_is_told() -> None:
    source = generate(parse_ir("graph(%f : Future(int)):\n  %x : int = aten::wait(%f)\n  return (%x)\n"), records=False)
    assert source.waits
    assert "v1 = v0.wait()" in source.text


def test_each_line_knows_its_node() -> None:
    graph = compiled("def f(x: List[int], n: int):\n    return x[n] + x[n + 1]")
    source = generate(graph, records=False)
    assert len(source.nodes) == source.text.count("\n")
    kinds = [node.kind if node else "" for node in source.nodes]
    assert kinds.count("aten::__getitem__") == 2
