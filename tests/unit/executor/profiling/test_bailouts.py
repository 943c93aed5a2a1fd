"""Bailouts: guards that fail leave the plan there, and the interpreter goes on."""

from __future__ import annotations

import pytest

import engine
from engine.executor.bytecode.code import Code
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.profiling.bailouts import BAIL_OUT, BailoutSite, insert_bailouts
from engine.executor.profiling.guards import place_guards
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.verify import verify

from .test_record import profiled


def with_bailouts(text: str, *calls: tuple[object, ...]) -> tuple[Graph, list[BailoutSite]]:
    graph = copy_graph(profiled(text, *calls).graph)
    place_guards(graph)
    sites = insert_bailouts(graph, "f", lambda site, failure: None)
    verify(graph)
    for site in sites:
        verify(site.rest)
    return graph, sites


IN_LOOP = """
def f(x, n: int):
    total = torch.zeros(1)
    for i in range(n):
        x.add_(1.0)
        y = torch.nonzero(x > i)
        total = total + y.sum() * i
    return total, x
"""


@pytest.mark.parametrize("rounds", range(4))
def test_a_guard_that_fails_in_a_loop_after_a_write_goes_on_with_the_rounds_left(rounds: int) -> None:
    def start() -> engine.Tensor:
        return engine.tensor([-1.5, 0.5, 2.0])

    graph, sites = with_bailouts(IN_LOOP, (start(), 4))
    (inner,) = [site for site in sites if site.expected.dtype == engine.int64]
    state = InterpreterState(Code(graph, "f"))
    seen = 0

    def fail_in_round(state: InterpreterState) -> None:
        nonlocal seen
        if state.frame.instruction.operand is inner:
            seen += 1
            if seen == rounds + 1:
                inner.request()

    state.hooks.append(fail_in_round)
    found, written = state.run(start(), 4)
    with engine.jit.optimized_execution(False):
        wanted, expected = engine.CompilationUnit(IN_LOOP).f(start(), 4)
    assert inner.count == 1
    assert engine.equal(found, wanted)
    assert engine.equal(written, expected)


def test_a_guard_that_fails_in_a_branch_goes_on_behind_it() -> None:
    text = """
def f(x, c: bool):
    y = x
    if c:
        z = torch.nonzero(x)
        y = z * 2
    else:
        y = x + 1
    return y.sum() + x.size(0)
"""
    graph, sites = with_bailouts(text, (engine.ones(3), True))
    site = sites[-1]
    site.request()
    assert InterpreterState(Code(graph, "f")).run(engine.ones(3), True).item() == 9
    assert [(each.requested, site.count) for each in site.failures] == [(True, 1)]


def test_the_rest_takes_only_what_is_alive() -> None:
    graph, (site,) = with_bailouts("def f(x, n: int):\n    m = n * 2\n    return torch.tanh(x), m", (engine.ones(3), 1))
    (node,) = graph.find_all_nodes(BAIL_OUT)
    assert {value.debug_name for value in site.rest.inputs} == {"x.1", "n.1"}
    assert node.inputs[0].debug_name == "x.1"


def test_failures_tell_what_was_expected() -> None:
    graph, (site,) = with_bailouts("def f(x):\n    return torch.tanh(x)", (engine.ones(3),))
    InterpreterState(Code(graph, "f")).run(engine.ones(2, 2))
    (failure,) = site.failures
    assert (failure.expected.sizes, failure.actual.sizes, failure.requested) == ((3,), (2, 2), False)


def test_a_while_loop_goes_on_until_its_condition_fails() -> None:
    text = """
def f(x):
    while bool(x.sum() < 20):
        y = torch.nonzero(x)
        x = x * 2 + y.size(0)
    return x
"""
    graph, sites = with_bailouts(text, (engine.ones(3),))
    for site in sites:
        site.request()
        found = InterpreterState(Code(graph, "f")).run(engine.ones(3))
        assert engine.equal(found, engine.CompilationUnit(text).f(engine.ones(3)))
        assert site.count == 1
