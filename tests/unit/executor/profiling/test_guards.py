"""Guards made from profiles: where they stand, which are dropped, and why."""

from __future__ import annotations

import engine
from engine.executor.profiling.guards import GUARD, GuardNote, implies, place_guards
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.verify import verify
from engine.lang.scalars import float32
from engine.lang.types import TensorType

from .test_record import LOOP, profiled


def guarded(text: str, *calls: tuple[object, ...]) -> tuple[Graph, list[GuardNote]]:
    graph = copy_graph(profiled(text, *calls).graph)
    notes = place_guards(graph)
    verify(graph)
    return graph, notes


def test_arguments_are_guarded_once_and_results_by_shape_rules() -> None:
    graph, notes = guarded(LOOP, (engine.ones(3, 2), engine.ones(1, 2), 4))
    guards = graph.find_all_nodes(GUARD)
    assert [guard.input.debug_name for guard in guards] == ["x.1", "y.1"]
    fates = {(note.value, note.user): note.fate for note in notes}
    assert fates["x.1", "aten::add"] == "moved"
    assert fates["x.1", "aten::mul"] == "merged"
    assert fates["z.1", "prim::Loop"] == "eliminated"


def test_parts_need_no_guards() -> None:
    text = "def f(x):\n    a, b = (x + 1).chunk(2, 1)\n    return torch.tanh(a) * b"
    graph, _ = guarded(text, (engine.ones(3, 4),))
    assert [guard.input.debug_name for guard in graph.find_all_nodes(GUARD)] == ["x.1"]


def test_what_no_rule_tells_keeps_its_guard() -> None:
    graph, notes = guarded("def f(x):\n    return torch.tanh(torch.nonzero(x) * 2.0)", (engine.ones(3),))
    (_, found) = graph.find_all_nodes(GUARD)
    assert found.input.node.kind == "aten::nonzero"
    assert {note.fate for note in notes} >= {"moved", "eliminated"}


def test_branches_that_did_not_run_have_no_guards() -> None:
    text = "def f(x, c: bool):\n    if c:\n        x = torch.tanh(x)\n    return x + 1"
    _, notes = guarded(text, (engine.ones(3), False))
    (tanh,) = [note for note in notes if note.user == "aten::tanh"]
    assert (tanh.fate, tanh.why) == ("not inserted", "no run came here with a tensor")


def test_memory_that_is_resized_is_not_guarded() -> None:
    _, notes = guarded("def f(x):\n    x.resize_(4)\n    return torch.tanh(x)", (engine.ones(3),))
    assert {note.why for note in notes if note.value.startswith("x")} == {"it may be resized"}


def test_implied_types() -> None:
    full, some = TensorType(float32, (2, 3)), TensorType(None, (2, None))
    assert implies(full, some)
    assert not implies(some, full)
    assert not implies(TensorType(float32), some)
