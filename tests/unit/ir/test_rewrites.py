"""Rewrites are counted, told, and refused."""

import pytest

from engine.ir.parser import parse_ir
from engine.ir.rewrites import Rewrite, allowed, is_watched, watching
from engine.passes.pipeline import names, run_pass, run_pipeline, verifier

TEXT = """graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=3]()
  %3 : int = aten::mul(%1, %2)
  %4 : Tensor = aten::add(%x, %x, %3)
  %5 : Tensor = aten::relu(%4)
  %6 : Tensor = aten::relu(%4)
  %7 : Tensor = aten::mul(%5, %6)
  return (%7)
"""


def test_nobody_watching_allows_all() -> None:
    assert not is_watched()
    assert allowed(next(parse_ir(TEXT).nodes()))


def test_rewrites_are_told_with_what_they_make() -> None:
    told: list[Rewrite] = []
    with watching(lambda rewrite: told.append(rewrite) is None):
        run_pass("cse", parse_ir(TEXT))
    assert [(r.pass_name, r.number) for r in told] == [("cse", 1)]
    graph = parse_ir(TEXT)
    texts: list[str] = []
    with watching(lambda rewrite: texts.append(rewrite.text) is None):
        run_pass("cse", graph)
        run_pass("constant_propagation", graph)
    assert texts[0] == "Replacing\n%6 : Tensor = aten::relu(%4)\nwith\n%5 : Tensor = aten::relu(%4)"
    assert texts[1] == "Replacing\n%3 : int = aten::mul(%1, %2)\nwith\n3"
    assert "Removing\n%3 : int = aten::mul(%1, %2)" in texts


def test_refused_rewrites_do_not_happen() -> None:
    for name in ("cse", "dce", "peephole", "constant_pooling"):
        graph = parse_ir(TEXT)
        with watching(lambda rewrite: False):
            assert not run_pass(name, graph)
        assert str(graph) == TEXT


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("limit", [0, 1, 2])
def test_graphs_stay_valid_wherever_a_pass_is_stopped(name: str, limit: int) -> None:
    source = """graph(%x : Tensor, %c : bool, %n : int):
  %t : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=2]()
  %l : int[] = prim::ListConstruct(%0, %n)
  %k : int = aten::len(%l)
  %r : Tensor, %s : int = prim::If(%c)
    block0():
      %a : int = prim::Constant[value=2]()
      %b : Tensor = aten::mul(%x, %a)
      -> (%b, %a)
    block1():
      %d : int = prim::Constant[value=2]()
      %e : Tensor = aten::mul(%x, %d)
      -> (%e, %d)
  %q : Tensor, %v : int = prim::Loop(%0, %t, %r, %s)
    block0(%i : int, %y : Tensor, %z : int):
      %m : int = aten::mul(%k, %0)
      %o : Tensor = aten::add(%y, %m, %i)
      -> (%t, %o, %z)
  %p : (Tensor, int) = prim::TupleConstruct(%q, %k)
  %g : Tensor, %h : int = prim::TupleUnpack(%p)
  return (%g, %h)
"""
    graph, left = parse_ir(source), [limit]

    def few(rewrite: Rewrite) -> bool:
        left[0] -= 1
        return left[0] >= 0

    with watching(few):
        run_pass(name, graph, verifier)
    run_pipeline(("dce", "constant_propagation", "dce"), graph, verifier)
