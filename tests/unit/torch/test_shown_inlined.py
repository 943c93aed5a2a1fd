"""Graphs that are shown with what they call are the same ones until the mode changes."""

from __future__ import annotations

import engine.torch as torch


def test_passes_change_the_graph_that_is_seen_next() -> None:
    unit = torch.jit.CompilationUnit(
        "def g(x: Optional[Tensor]) -> Tensor:\n    return x if x is not None else torch.tensor(3)\n"
        "def f(x):\n    return g(x)\n"
    )
    torch._C._jit_set_inline_everything_mode(True)
    try:
        assert "prim::unchecked_cast" in str(unit.f.graph)
        torch._C._jit_pass_peephole(unit.f.graph)
        assert "prim::unchecked_cast" not in str(unit.f.graph)
    finally:
        torch._C._jit_set_inline_everything_mode(False)
    assert "prim::CallFunction" in str(unit.f.graph)
