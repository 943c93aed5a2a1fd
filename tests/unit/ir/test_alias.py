"""Who may share memory with whom, and who writes."""

import json
from pathlib import Path

import pytest

from engine.ir.alias import AliasDb
from engine.ir.graph import Graph, Value
from engine.ir.parser import parse_ir


def values_of(graph: Graph) -> dict[str, Value]:
    found = {value.debug_name: value for value in graph.inputs}
    for node in graph.all_nodes():
        for value in (*node.outputs, *(v for block in node.blocks for v in block.inputs)):
            found[value.debug_name] = value
    return found


def pairs(text: str, contained: bool = False) -> set[str]:
    graph = parse_ir(text)
    db = AliasDb(graph)
    ask = db.may_contain_alias if contained else db.may_alias
    named = list(values_of(graph).items())
    return {f"{a}~{b}" for i, (a, v) in enumerate(named) for b, w in named[i + 1 :] if ask(v, w)}


def test_inputs_views_and_fresh_values() -> None:
    text = (
        "graph(%x : Tensor, %y : Tensor, %l : int[], %n : int):\n  %v : Tensor = aten::t(%x)\n"
        "  %f : Tensor = aten::neg(%x)\n  %g : Tensor = aten::t(%f)\n  return (%v)\n"
    )
    assert pairs(text) == {"x~y", "x~v", "y~v", "f~g"}


def test_writes_reach_views() -> None:
    graph = parse_ir(
        "graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %v : Tensor = aten::t(%a)\n"
        "  %b : Tensor = aten::neg(%a)\n  %w : Tensor = aten::relu_(%v)\n  return (%b)\n"
    )
    db, values = AliasDb(graph), values_of(graph)
    assert {name for name, value in values.items() if db.has_writers(value)} == {"a", "v", "w"}
    write = values["w"].node
    assert db.writes_to_alias(write, [values["a"]])
    assert not db.writes_to_alias(write, [values["b"], values["x"]])
    assert not db.writes_to_wildcard(write)
    assert db.is_mutable(write)
    assert db.has_writers(values["a"].node)


def test_containers_hold_wildcards_when_they_leave() -> None:
    text = "graph(%x : Tensor, %k : int):\n  %a : Tensor = aten::neg(%x)\n  %l : Tensor[] = prim::ListConstruct(%a)\n"
    kept = text + "  %c : Tensor = aten::cat(%l, %k)\n  return (%c)\n"
    assert pairs(kept, contained=True) == {"a~l"}
    given = text + "  %e : Tensor = aten::__getitem__(%l, %k)\n  return (%e)\n"
    assert pairs(given) == {"x~a", "x~e", "a~e"}


def test_an_appended_value_escapes() -> None:
    graph = parse_ir(
        "graph(%x : Tensor, %l : Tensor[]):\n  %a : Tensor = aten::neg(%x)\n  %m : Tensor[] = aten::append(%l, %a)\n"
        "  return (%x)\n"
    )
    db, values = AliasDb(graph), values_of(graph)
    assert db.may_alias(values["a"], values["x"])
    assert db.may_alias(values["l"], values["m"])
    assert db.may_contain_alias(values["l"], values["a"])
    assert db.writes_to_wildcard(values["m"].node)


def test_control_flow() -> None:
    text = (
        "graph(%x : Tensor, %c : bool, %n : int):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = prim::If(%c)\n"
        "    block0():\n      -> (%a)\n    block1():\n      %d : Tensor = aten::neg(%x)\n      -> (%d)\n  return (%b)\n"
    )
    assert pairs(text) == {"a~b", "b~d"}


def test_a_loop_may_not_run_and_may_run_twice() -> None:
    text = (
        "graph(%x : Tensor, %c : bool, %n : int):\n  %a : Tensor = aten::neg(%x)\n"
        "  %b : Tensor = prim::Loop(%n, %c, %a)\n    block0(%i : int, %e : Tensor):\n"
        "      %d : Tensor = aten::neg(%e)\n      -> (%c, %d)\n  return (%b)\n"
    )
    assert pairs(text) >= {"a~b", "a~e", "b~d", "b~e"}
    assert not {p for p in pairs(text) if p.startswith("x")}


def test_types_bound_wildcards() -> None:
    text = "graph(%l : int[], %m : int[], %x : Tensor, %t : (int, str), %u : (int[], Tensor)):\n  return (%l)\n"
    assert pairs(text) == {"l~m"}
    assert pairs(text, contained=True) == {"l~m", "l~u", "m~u", "x~u"}


def test_unknown_operators_may_do_anything() -> None:
    graph = parse_ir("graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = my::op(%a)\n  return (%b)\n")
    db, values = AliasDb(graph), values_of(graph)
    assert db.has_writers(values["a"])
    assert db.may_alias(values["a"], values["b"])
    assert db.has_side_effects(values["b"].node)


RECORDED = json.loads((Path(__file__).parent / "recorded_aliases.json").read_text())


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["id"])
def test_recorded_facts(case: dict[str, object]) -> None:
    """What PyTorch found; where loops carry tensors we find more, see Note [Loops that do not run]."""
    graph = parse_ir(str(case["graph"]))
    db, values = AliasDb(graph), values_of(graph)
    named = [(name, values[name]) for name in case["values"]]  # type: ignore[attr-defined]
    found = [[a, b] for i, (a, v) in enumerate(named) for b, w in named[i + 1 :] if db.may_contain_alias(v, w)]
    writers = [name for name, value in named if db.has_writers(value)]
    assert all(pair in found for pair in case["pairs"])  # type: ignore[attr-defined]
    if not case["loops"]:
        assert found == case["pairs"]
        assert writers == case["writers"]
