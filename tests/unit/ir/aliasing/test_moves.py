"""Moving nodes such that nobody can tell."""

import pytest

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Graph, Node
from engine.ir.parser import parse_ir
from engine.ir.verify import verify

HEAD = "graph(%x : Tensor, %y : Tensor, %c : bool, %k : int):\n  %one : int = prim::Constant[value=1]()\n"


def built(*lines: str) -> tuple[Graph, AliasDb, dict[str, Node]]:
    """A graph of these lines, `name = kind(inputs)`, and its nodes by the names of what they give, `!` for a print."""
    text = HEAD + "".join(f"  {line}\n" for line in lines) + "  return (%x)\n"
    graph = parse_ir(text)
    named = {node.outputs[0].debug_name if node.outputs else "!": node for node in graph.nodes()}
    return graph, AliasDb(graph), named


def tensors(*assignments: str) -> tuple[str, ...]:
    return tuple("%" + each.replace(" = ", " : Tensor = aten::") for each in assignments)


def order(graph: Graph) -> str:
    verify(graph)
    names = [node.outputs[0].debug_name if node.outputs else "!" for node in graph.nodes()]
    return " ".join(name for name in names if name != "one")


CHAIN = tensors("a = neg(%x)", "b = tanh(%a)", "d = exp(%x)", "e = sin(%x)", "f = cos(%b)")


@pytest.mark.parametrize(
    ("verb", "node", "point", "after"),
    [
        ("before", "a", "e", "d a e b f"),  # %b needs %a and makes room
        ("before", "a", "b", "a b d e f"),  # it stands there
        ("after", "a", "e", "d e a b f"),  # %b comes along
        ("before", "e", "a", "e a b d f"),
        ("after", "e", "a", "a e b d f"),
        ("before", "f", "d", "a b f d e"),
        ("before", "f", "a", ""),  # %f needs %b, which needs %a
        ("after", "f", "a", ""),
        ("before", "a", "f", ""),  # %b would have to go behind %f
        ("after", "a", "f", ""),
        ("after", "a", "a", "a b d e f"),
    ],
)
def test_dependencies_move_along(verb: str, node: str, point: str, after: str) -> None:
    graph, db, nodes = built(*CHAIN)
    could = getattr(db, f"could_move_{verb}_topologically")(nodes[node], nodes[point])
    assert order(graph) == "a b d e f"
    moved = getattr(db, f"move_{verb}_topologically_valid")(nodes[node], nodes[point])
    assert moved is could is bool(after)
    assert order(graph) == (after or "a b d e f")


def test_reads_pass_no_writes_to_what_they_read() -> None:
    graph, db, nodes = built(
        *tensors("a = neg(%x)", "v = t(%a)", "w = add_(%v, %y, %one)", "r = exp(%a)", "s = exp(%y)")
    )
    assert not db.move_before_topologically_valid(nodes["r"], nodes["w"])
    assert db.move_before_topologically_valid(nodes["s"], nodes["w"])
    assert order(graph) == "a v s w r"
    assert not db.move_after_topologically_valid(nodes["v"], nodes["r"])


def test_writes_to_one_memory_keep_their_order() -> None:
    graph, db, nodes = built(
        *tensors("a = neg(%x)", "b = neg(%x)", "v = add_(%a, %x, %one)", "w = mul_(%a, %x)", "u = mul_(%b, %x)")
    )
    assert not db.move_before_topologically_valid(nodes["w"], nodes["v"])
    assert db.move_before_topologically_valid(nodes["u"], nodes["v"])
    assert order(graph) == "a b u v w"


def test_inputs_of_the_graph_may_be_the_same() -> None:
    _, db, nodes = built(*tensors("w = mul_(%x, %one)", "r = exp(%y)"))
    assert not db.could_move_before_topologically(nodes["r"], nodes["w"])


def test_nothing_passes_side_effects() -> None:
    graph, db, nodes = built(*tensors("a = neg(%x)"), "prim::Print(%k)", *tensors("b = neg(%y)"))
    for node, point in (("a", "b"), ("b", "a"), ("a", "!"), ("!", "a")):
        stands_there = {"after": (node, point) == ("!", "a"), "before": (node, point) == ("a", "!")}
        assert db.move_after_topologically_valid(nodes[node], nodes[point]) is stands_there["after"]
        assert db.move_before_topologically_valid(nodes[node], nodes[point]) is stands_there["before"]
    assert order(graph) == "a ! b"


def test_random_numbers_are_drawn_in_their_order() -> None:
    graph, db, nodes = built(
        "%n : NoneType = prim::Constant()",
        *tensors(*(f"{name} = rand_like(%x, %n, %n, %n, %n, %n)" for name in "ab"), "e = neg(%x)"),
    )
    assert not db.move_before_topologically_valid(nodes["b"], nodes["a"])
    assert db.move_before_topologically_valid(nodes["e"], nodes["a"])
    assert order(graph) == "n e a b"


BRANCHES = (
    *tensors("a = neg(%x)", "b = neg(%x)"),
    "%r : Tensor = prim::If(%c)", "  block0():", "    %i : Tensor = aten::add_(%a, %y, %one)", "    -> (%i)",
    "  block1():", "    -> (%b)",
    *tensors("d = exp(%a)", "e = exp(%b)"),
)  # fmt: skip


def test_blocks_read_and_write_what_is_around_them() -> None:
    graph, db, nodes = built(*BRANCHES)
    assert not db.move_before_topologically_valid(nodes["d"], nodes["r"])
    assert not db.move_after_topologically_valid(nodes["b"], nodes["r"])
    assert db.move_before_topologically_valid(nodes["e"], nodes["r"])
    assert order(graph) == "a b e r d"
    inner = next(nodes["r"].blocks[0].nodes())
    assert not db.move_before_topologically_valid(inner, nodes["a"])


def test_the_ends_of_a_block_are_points_too() -> None:
    graph, db, nodes = built(*tensors("a = neg(%x)", "b = neg(%a)", "d = neg(%x)"))
    assert db.move_before_topologically_valid(nodes["b"], graph.return_node)
    assert order(graph) == "a d b"
    assert db.move_after_topologically_valid(nodes["d"], graph.param_node)
    assert not db.move_before_topologically_valid(nodes["a"], graph.return_node)
    assert not db.move_after_topologically_valid(nodes["a"], graph.return_node)
    assert order(graph) == "d a b"


def test_a_write_to_what_was_just_made_can_be_left_out() -> None:
    graph, db, nodes = built(
        *tensors(
            "a = neg(%x)", "e = exp(%x)", "w = add_(%a, %y, %one)", "b = t(%a)", "u = mul_(%b, %y)", "z = mul_(%x, %y)"
        )
    )
    assert db.could_remove_write(nodes["w"])
    assert not db.could_remove_write(nodes["u"])  # a view: %a would miss it
    assert not db.could_remove_write(nodes["z"])  # an input: somebody outside would
    assert db.make_adjacent(nodes["w"])
    assert order(graph) == "e a w b u z"


def test_a_value_that_was_read_before_the_write_moves_only_what_can_move() -> None:
    _, db, nodes = built(*tensors("a = neg(%x)", "r = exp(%a)", "w = add_(%a, %y, %one)"))
    assert not db.could_remove_write(nodes["w"])
    assert not db.make_adjacent(nodes["w"])
