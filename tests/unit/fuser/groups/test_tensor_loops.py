"""Loops over tensors run inside kernels, and do what they do without."""

from __future__ import annotations

import signal
from typing import Any
from weakref import WeakSet

import pytest

import engine.torch as torch
from engine.executor.plans import fusion
from engine.fuser.backend import tiering
from engine.fuser.groups import tensor_loops

_CELL = """
def f(xs: Tensor, h: Tensor, w: Tensor, u: Tensor) -> Tensor:
    for i in range(xs.size(0)):
        h = torch.tanh(torch.mm(xs[i], w) + torch.mm(h, u))
    return h
"""
_TWO = """
def f(x: Tensor, h: Tensor, c: Tensor, n: int):
    for i in range(n):
        gate = torch.sigmoid(h + x)
        c = gate * c + h * i
        h = gate * torch.tanh(c)
    return h + 1, c
"""
_AROUND = """
def f(x: Tensor, w: Tensor, n: int):
    y = torch.relu(x) * 2
    z = y.sum(1, keepdim=True)
    for i in range(n):
        y = torch.softmax(y @ w, 1) + z
        z = y.mean(1, keepdim=True)
    return y - z
"""
_TWICE = """
def f(x: Tensor, n: int, m: int):
    for i in range(n):
        x = torch.sin(x) + 0.5
    y = x * 2
    for j in range(m):
        y = torch.cos(y) * x
    return y
"""
_ALIKE = """
def f(x: Tensor, n: int):
    for i in range(n):
        x = torch.softmax(x * 2, -1)
    y = x
    for i in range(n):
        y = torch.softmax(y * 2, -1)
    z = y
    for i in range(n):
        z = torch.softmax(z * 2, -1)
    return x, y * 3 - x, z
"""
_CHANGING = """
def f(x: Tensor, n: int):
    for i in range(n):
        x = torch.cat([x, x * 2], 0)
    return x
"""
_SWAPPED = """
def f(a: Tensor, b: Tensor, n: int):
    for i in range(n):
        a, b = b, a * 0.5 + 1
    return a, b
"""
_UNCHANGED = """
def f(x: Tensor, n: int):
    y = x
    for i in range(n):
        y = y * 0.5
    y += 1
    return x + y
"""


def _run(text: str, calls: list[list[Any]], monkeypatch: pytest.MonkeyPatch, mode: str) -> list[Any]:
    monkeypatch.setattr(tiering, "mode", lambda: mode)
    function = torch.jit.CompilationUnit(text).f
    with torch.no_grad():
        return [function(*(each.clone() if hasattr(each, "clone") else each for each in call)) for call in calls]


def _check(text: str, calls: list[list[Any]], monkeypatch: pytest.MonkeyPatch) -> str:
    """The graph of the plan that ran the calls."""
    found = _run(text, calls, monkeypatch, "eager")
    graphs = [str(each.fused) for each in fusion.FOLLOWERS if each.fused is not None and each.groups]
    for a, b in zip(found, _run(text, calls, monkeypatch, "off"), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    return "\n".join(graphs)


def _of(*shape: int) -> Any:
    torch.manual_seed(sum(shape))
    return torch.randn(list(shape)) * 0.3


@pytest.fixture(autouse=True)
def _no_other_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "FOLLOWERS", WeakSet())


def _loops_inside(graphs: str) -> bool:
    """True if all loops are in groups."""
    plan, *groups = graphs.split("\nwith prim::FusionGroup")
    return "prim::Loop" not in plan and any("prim::Loop" in each for each in groups)


def test_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [[_of(*xs), _of(*h), _of(5, 7), _of(7, 7)] for xs, h in (
        ((6, 3, 5), (3, 7)), ((1, 3, 5), (3, 7)), ((9, 20, 5), (20, 7)),
    )]  # fmt: skip
    assert _loops_inside(_check(_CELL, calls, monkeypatch))


def test_cell_without_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [[_of(n, 3, 5), _of(3, 7), _of(5, 7), _of(7, 7)] for n in (4, 0, 2)]
    _check(_CELL, calls, monkeypatch)


def test_cell_broadcasts_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state grows in the first step."""
    _check(_CELL, [[_of(4, 3, 5), _of(1, 7), _of(5, 7), _of(7, 7)]], monkeypatch)


def test_several_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [[_of(4, 5), _of(4, 5), _of(4, 5), n] for n in (3, 1, 7)]
    assert _loops_inside(_check(_TWO, calls, monkeypatch))
    _check(_TWO, [[_of(4, 1), _of(4, 5), _of(4, 5), 3], [_of(0, 5), _of(0, 5), _of(0, 5), 2]], monkeypatch)


def test_nodes_around_and_reductions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [[_of(m, 8), _of(8, 8), n] for m, n in ((5, 4), (5, 1), (1, 3), (40, 2))]
    assert _loops_inside(_check(_AROUND, calls, monkeypatch))


def test_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _loops_inside(_check(_TWICE, [[_of(30), 3, 2], [_of(30), 1, 5], [_of(1), 2, 2]], monkeypatch))
    _check(_TWICE, [[_of(), 3, 2], [_of(2, 3, 4), 0, 5], [_of(70, 3), 2, 2]], monkeypatch)


def test_loops_that_do_the_same_go_on_where_one_before_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _loops_inside(_check(_ALIKE, [[_of(5, 6), 2], [_of(5, 6), 1], [_of(1, 3), 4]], monkeypatch))


def test_changing_sizes_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _loops_inside(_check(_CHANGING, [[_of(3, 2), 3], [_of(3, 2), 0]], monkeypatch))


def test_swapped_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    _check(_SWAPPED, [[_of(3, 2), _of(3, 2), n] for n in (0, 1, 2, 3)], monkeypatch)


def test_result_that_is_an_argument_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step the result is the argument itself, which is written to later."""
    _check(_UNCHANGED, [[_of(5), n] for n in (2, 0, 1)], monkeypatch)


def test_long_loops_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Alarm(Exception):
        pass

    def ring(*_: Any) -> None:
        raise Alarm

    monkeypatch.setattr(tensor_loops, "_FUEL", 1 << 16)
    monkeypatch.setattr(tiering, "mode", lambda: "eager")
    function = torch.jit.CompilationUnit(_TWICE).f
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with torch.no_grad():
            x = _of(31)
            function(x, 1, 1)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Alarm):
                function(x, 1 << 40, 1)
            function(x, 2, 1)
    finally:
        signal.signal(signal.SIGALRM, before)
