"""Who may share memory with whom, and who writes."""

import json
from pathlib import Path

import pytest

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.aliasing.analysis import may_write_silently
from engine.ir.graph import Graph, Value
from engine.ir.ops import has_side_effects
from engine.ir.parser import parse_ir
from engine.passes.pipeline import run_pass


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


def test_a_loop_that_surely_runs_gives_what_an_iteration_gave() -> None:
    text = (
        "graph(%x : Tensor, %c : bool):\n  %n : int = prim::Constant[value=3]()\n"
        "  %t : bool = prim::Constant[value=1]()\n  %b : Tensor = prim::Loop(%n, %t, %x)\n"
        "    block0(%i : int, %e : Tensor):\n      %d : Tensor = aten::neg(%e)\n      -> (%c, %d)\n  return (%b)\n"
    )
    assert not {"b~x", "x~b"} & pairs(text)
    assert {"b~x", "x~b"} & pairs(text.replace("value=3", "value=0"))


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


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["id"])
def test_recorded_facts_to_the_letter(case: dict[str, object]) -> None:
    """What PyTorch found, taking like it for granted that loops run."""
    graph = parse_ir(str(case["graph"]))
    db, values = AliasDb(graph, loops_run=True), values_of(graph)
    named = [(name, values[name]) for name in case["values"]]  # type: ignore[attr-defined]
    found = [[a, b] for i, (a, v) in enumerate(named) for b, w in named[i + 1 :] if db.may_contain_alias(v, w)]
    assert found == case["pairs"]
    assert [name for name, value in named if db.has_writers(value)] == case["writers"]


def test_writers_of_inputs_and_of_outputs() -> None:
    graph = parse_ir(
        "graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::neg(%a)\n"
        "  %w : Tensor = aten::relu_(%b)\n  %d : Tensor = aten::neg(%b)\n  return (%d)\n"
    )
    db, values = AliasDb(graph), values_of(graph)
    told = {n: (db.has_input_writers(values[n].node), db.has_output_writers(values[n].node)) for n in "abwd"}
    assert told == {"a": (False, False), "b": (False, True), "w": (True, True), "d": (True, False)}


def test_values_that_nobody_sees_may_become_one() -> None:
    text = (
        "graph(%x : Tensor, %l : Tensor[], %k : int):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::neg(%x)\n"
        "  %w : Tensor = aten::neg(%x)\n  %u : Tensor = aten::relu_(%w)\n  %o : Tensor = aten::neg(%x)\n"
        "  %p : Tensor = aten::neg(%x)\n  %i : Tensor = aten::neg(%x)\n  %j : Tensor[] = aten::append(%l, %i)\n"
        "  return (%o, %p)\n"
    )
    graph = parse_ir(text)
    db, values = AliasDb(graph), values_of(graph)

    def safe(a: str, b: str) -> bool:
        return db.safe_to_change_aliasing_relationship(values[a], [values[b]])

    assert safe("a", "b")
    assert safe("a", "o")
    assert not safe("a", "w")
    assert not safe("o", "p")
    assert not safe("o", "i")
    assert [name for name, value in values.items() if db.is_given_away(value)] == ["i"]
    assert db.may_alias_wildcard(values["i"])
    assert not db.may_alias_wildcard(values["o"])


def test_what_waits_may_have_written_to_all_that_was_given_away() -> None:
    graph = parse_ir(
        "graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::neg(%x)\n"
        "  %f : Future(Tensor) = prim::fork_0(%a)\n  %r : Tensor = aten::wait(%f)\n  return (%r)\n"
        "with prim::fork_0 = graph(%i : Tensor):\n  return (%i)\n"
    )
    db, values = AliasDb(graph), values_of(graph)
    assert db.has_writers(values["a"])
    assert not db.has_writers(values["b"])


def test_a_future_of_what_cannot_change_is_nobody() -> None:
    assert pairs(
        "graph(%f : Future(int), %g : Future(int), %h : Future(Tensor), %i : Future(Tensor)):\n  return ()\n"
    ) == {"h~i"}


def test_a_subgraph_does_what_its_nodes_do() -> None:
    text = (
        "graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::neg(%x)\n"
        "  %r : Tensor, %s : Tensor = prim::FusionGroup_0(%a, %b)\n  return (%r)\n"
        "with prim::FusionGroup_0 = graph(%i : Tensor, %j : Tensor):\n  %one : int = prim::Constant[value=1]()\n"
        "  %n : Tensor = aten::exp(%i)\n  %v : Tensor = aten::t(%j)\n  %w : Tensor = aten::add_(%v, %n, %one)\n"
        "  return (%n, %w)\n"
    )
    graph = parse_ir(text)
    db, values = AliasDb(graph), values_of(graph)
    assert not db.has_writers(values["a"])
    assert db.writes_to_alias(values["r"].node, [values["b"]])
    assert db.may_alias(values["s"], values["b"])
    assert not db.may_alias(values["r"], values["a"])


def test_what_is_not_initialised_aliases_nothing() -> None:
    text = (
        "graph(%x : Tensor, %c : bool):\n  %u : Tensor = prim::Uninitialized()\n  %a : Tensor = aten::neg(%x)\n"
        "  %r : Tensor = prim::If(%c)\n    block0():\n      -> (%u)\n    block1():\n      -> (%a)\n  return (%r)\n"
    )
    assert pairs(text) == {"a~r"}


def test_new_and_replaced_values_are_told() -> None:
    graph = parse_ir("graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %v : Tensor = aten::t(%a)\n  return (%v)\n")
    db, values = AliasDb(graph), values_of(graph)
    with graph.inserting_at(values["v"].node):
        new = graph.append("aten::neg", [values["x"]]).output
        copy = graph.append("aten::neg", [values["x"]]).output
    db.create_value(new)
    assert not db.may_alias(new, values["a"])
    db.copy_value(values["a"], copy)
    assert db.may_alias(copy, values["v"])
    db.replace_with_new_value(values["a"], new)
    assert db.may_alias(new, values["v"])
    assert not db.may_alias(values["a"], values["v"])


def test_nodes_come_and_go() -> None:
    graph = parse_ir("graph(%x : Tensor, %c : bool):\n  %a : Tensor = aten::neg(%x)\n  return (%a)\n")
    db, values = AliasDb(graph), values_of(graph)
    branch = graph.append("prim::If", [values["c"]], 0)
    for _ in range(2):
        with graph.inserting_at(branch.add_block()):
            write = graph.append("aten::relu_", [values["a"]])
    db.add_node(branch)
    assert db.has_writers(values["a"])
    assert db.may_alias(write.output, values["a"])
    assert db.writes_to_alias(branch, [values["a"]])
    db.forget_node(write)
    write.destroy()
    assert db.has_writers(values["a"])
    db.forget_node(branch)
    branch.destroy()
    assert not db.has_writers(values["a"])


TEXT = """graph(%x : Tensor,
      %l : int[]):
  %a : Tensor = aten::neg(%x)
  %v : Tensor = aten::t(%a)
  %w : Tensor = aten::relu_(%v)
  %p : (Tensor, Tensor) = prim::TupleConstruct(%v, %x)
  %d : int[] = aten::append(%l, %l)
  return (%p)
"""


def test_a_person_can_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = TEXT.replace("  %d : int[] = aten::append(%l, %l)\n", "")
    db = AliasDb(parse_ir(text))
    assert str(db) == text + (
        "values\n  %x may be any Tensor\n  %l may be any int[]\n  %a is new\n  %v may be %a\n  %w may be %v\n"
        "  %p is new, may hold %v, %x\nwrites\n  %w : Tensor = aten::relu_(%v)\n    to %a, %v, %w\n"
    )
    db.dump()
    assert capsys.readouterr().out == f"{db}\n"
    drawn = db.to_graphviz_str()
    assert drawn.startswith("digraph alias_db {\n")
    assert drawn.count(" -> ") == 6
    assert drawn.count("style=dashed") == 2


def test_adding_to_a_list_gives_the_list() -> None:
    graph = parse_ir(
        "graph(%a : int[], %x : int[]):\n  %b : int[] = aten::add_(%a, %x)\n  %c : int[] = aten::add_(%b, %x)\n"
        "  return (%a)\n"
    )
    values = values_of(graph)
    assert AliasDb(graph).may_alias(values["a"], values["c"])
    # What PyTorch goes by when it compiles is the schema.
    assert not AliasDb(graph, loops_run=True).may_alias(values["a"], values["c"])
    assert not run_pass("dead_write_elimination", graph)


def test_whether_anything_writes_silently_is_quick_to_tell() -> None:
    start, end = "graph(%x : Tensor, %l : int[], %b : bool):\n", "  return (%x)\n"
    lines = {
        "  %y : Tensor = aten::neg(%x)\n  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)\n": False,
        "  %y : Tensor = aten::relu_(%x)\n": True,
        "  %m : int[] = aten::add_(%l, %l)\n": True,
        "  %y : Tensor = prim::If(%b)\n    block0():\n      -> (%x)\n    block1():\n      -> (%x)\n": False,
        "  %y : Tensor = prim::If(%b)\n    block0():\n      %z : Tensor = aten::relu_(%x)\n      -> (%z)\n"
        "    block1():\n      -> (%x)\n": True,
        "  %y : Tensor = prim::Unheard(%x)\n": True,
        "  %y : Tensor = mine::op(%x)\n": False,  # may do anything, and so runs whatever it writes to
    }
    for text, writes in lines.items():
        assert may_write_silently(parse_ir(start + text + end)) == writes, text


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["id"])
def test_what_is_quick_to_tell_agrees_with_the_analysis(case: dict[str, object]) -> None:
    graph = parse_ir(str(case["graph"]))
    db = AliasDb(graph)
    silent = (node for node in graph.all_nodes() if not node.blocks and not has_side_effects(node))
    assert may_write_silently(graph) or not any(map(db.is_mutable, silent))


def test_elements_of_a_returned_list_are_as_they_were() -> None:
    text = "graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %l : Tensor[] = prim::ListConstruct(%a)\n"
    assert pairs(f"{text}  return (%l)\n", contained=True) == {"a~l"}
    assert "x~a" in pairs(f"{text}  %t : (Tensor[], Tensor) = prim::TupleConstruct(%l, %x)\n  return (%t)\n", True)


def test_what_takes_a_returned_list_of_a_subgraph_apart_reaches_its_elements() -> None:
    graph = parse_ir(
        "graph(%x : Tensor, %k : int):\n  %r : Tensor[] = prim::FusionGroup_0(%x)\n"
        "  %e : Tensor = aten::__getitem__(%r, %k)\n  %w : Tensor = aten::relu_(%e)\n  return (%w)\n"
        "with prim::FusionGroup_0 = graph(%i : Tensor):\n  %n : Tensor = aten::exp(%i)\n"
        "  %l : Tensor[] = prim::ListConstruct(%n)\n  return (%l)\n"
    )
    inner = next(graph.nodes()).attr("Subgraph")
    assert AliasDb(graph).has_writers(inner.find_node("aten::exp").output)
