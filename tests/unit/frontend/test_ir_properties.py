"""What holds for the graph of every program."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from engine.frontend.compilation.compile import compile_source
from engine.ir.clone import copy_graph
from engine.ir.parser import parse_ir
from engine.ir.verify import verify
from engine.passes.pipeline import run_pass

from .generated import programs

PASSES = ("peephole", "constant_propagation", "cse", "dce", "constant_pooling", "loop_unrolling")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_a_graph_reads_as_it_is_printed_after_every_pass(text: str) -> None:
    graph = compile_source(text).functions["f"].graph
    for name in (None, *PASSES):
        if name is not None:
            run_pass(name, graph)
        verify(graph)
        printed = str(graph)
        again = parse_ir(printed)
        verify(again)
        assert str(again) == printed
        assert str(copy_graph(graph)) == printed
