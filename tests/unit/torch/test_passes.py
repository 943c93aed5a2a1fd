"""Passes by name."""

import pytest

import engine
import engine.torch as torch
from engine.lang.errors import CompileError

DEAD = "graph(%x : int):\n  %y : int = aten::neg(%x)\n  return (%x)\n"


def test_a_pass_changes_the_graph_and_gives_it_back() -> None:
    graph = engine.parse_ir(DEAD)
    assert engine.run_pass("dce", graph) is graph
    assert "aten::neg" not in str(graph)


def test_a_pipeline_is_passes_in_order() -> None:
    graph = engine.parse_ir(DEAD)
    assert engine.run_pipeline(("constant_pooling", "dce"), graph) is graph
    assert "aten::neg" not in str(graph)


def test_an_unknown_pass_is_refused_with_the_nearest() -> None:
    with pytest.raises(CompileError, match="there is no pass 'dcee'"):
        engine.run_pass("dcee", engine.parse_ir(DEAD))


def test_branches_tell_the_lengths_of_lists() -> None:
    unit = torch.jit.CompilationUnit("""
def told(x: List[int], y: List[int]):
    known = True if len(x) == 5 else len(y) != 4
    assert not known
    return len(x), len(y)
def written(x: List[int]):
    assert len(x) == 4
    x.append(3)
    return len(x)
""")
    for function, known in ((unit.told, [None, 4]), (unit.written, [None])):
        torch._C._jit_pass_peephole_list_idioms(function.graph, refine_list_len=True)
        result = next(function.graph.outputs()).node()
        lengths = list(result.inputs()) if result.kind() == "prim::TupleConstruct" else [result.output()]
        assert [value.toIValue() for value in lengths] == known
    assert unit.told([1], [1, 2, 3, 4]) == (1, 4)
    assert unit.written([1, 2, 3, 4]) == 5
