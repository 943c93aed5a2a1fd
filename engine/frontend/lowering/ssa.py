"""From named variables to SSA.

In: the emitter's graph, where variables are read and written by `prim::Load` and `prim::Store` and a
loop has its condition in a second block.  Out: the same program with variables as values, loop
conditions inlined, and `break` and `continue` as `prim::LoopContinuation(%condition, %carried...)`.

    x = 1                              %x.1 : int = prim::Constant[value=1]()
    if c:               becomes        %x : int = prim::If(%c)
        x = 2                            block0(): -> (%x.5)
                                         block1(): -> (%x.1)

Source: "Conversion To SSA" in the design overview.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping

from engine.ir.clone import copy_block_at
from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.names import name_after
from engine.lang.types import Type, unify

Types = MutableMapping[str, Type]


def to_ssa(graph: Graph) -> None:
    """Rewrite the emitter's graph in place; ReturnStmt and LoopContinuation are left to the exit transform."""
    _carry_variables(graph.block, {})
    with graph.inserting_at(_first(graph.block)):
        leave = insert_constant(graph, False)
    _lower_loop_exits(graph.block, None, leave)
    _inline_conditions(graph.block)
    _erase_loads_and_stores(graph.block, ChainMap())


# -- variables cross control flow as inputs and outputs


def _carry_variables(block: Block, outer: Types) -> dict[str, Type]:
    """Give every If and Loop in `block` outputs for the variables that it writes; returns what the block writes."""
    written: dict[str, Type] = {}
    known: Types = ChainMap(written, outer)
    for node in block.nodes():
        if node.kind == "prim::Store":
            written[node.attr("name")] = node.input.type
        elif node.kind == "prim::If":
            written.update(_carry_through_if(node, known))
        elif node.kind == "prim::Loop":
            written.update(_carry_through_loop(node, known))
        else:
            for inner in node.blocks:
                _carry_variables(inner, known)
    return written


def _carry_through_if(node: Node, known: Types) -> dict[str, Type]:
    """Make outputs of the variables that one branch writes, if the other writes them too or has them from outside."""
    carried: dict[str, Type] = {}
    branches = [ChainMap(_carry_variables(block, known), known) for block in node.blocks]
    written = set(branches[0].maps[0]) | set(branches[1].maps[0])
    for name in sorted(name for name in written if all(name in branch for branch in branches)):
        types = [branch[name] for branch in branches]
        joined = unify(*types, default_to_union=True)
        assert joined is not None
        for block, type in zip(node.blocks, types, strict=True):
            block.register_output(_load(block.return_node, name, type))
        _store_output(node, name, joined)
        carried[name] = joined
    return carried


def _carry_through_loop(node: Node, known: Types) -> dict[str, Type]:
    """Carry the variables that the body writes, and that were known before, from iteration to iteration."""
    carried: dict[str, Type] = {}
    body = node.blocks[0]
    for name, type in sorted(_carry_variables(body, known).items()):
        before = known.get(name)
        if before is None:
            continue  # local to the body
        joined = unify(before, type, default_to_union=True)
        assert joined is not None
        node.add_input(_load(node, name, before))
        _store(_first(body), name, body.add_input(joined, name_after(name)))
        body.register_output(_load(body.return_node, name, type))
        _store_output(node, name, joined)
        carried[name] = joined
    return carried


def _load(place: Node, name: str, type: Type) -> Value:
    node = place.graph.create("prim::Load", (), [type]).set_attr("name", name).insert_before(place)
    return node.output.set_debug_name(name_after(name))


def _store(place: Node, name: str, value: Value) -> Node:
    return place.graph.create("prim::Store", [value], 0).set_attr("name", name).insert_before(place)


def _store_output(node: Node, name: str, type: Type) -> None:
    assert node.next is not None
    _store(node.next, name, node.add_output(type, name_after(name)))


def _first(block: Block) -> Node:
    first = block.param_node.next
    assert first is not None
    return first


# -- break and continue


def _lower_loop_exits(block: Block, loop: Node | None, leave: Value) -> None:
    """Turn the `break` and `continue` of `block` into LoopContinuations of `loop`, the innermost around it.

    `leave` is the condition under which every `break` goes on: False.
    """
    for node in block.nodes():
        if node.kind in ("prim::BreakStmt", "prim::ContinueStmt"):
            assert loop is not None
            _to_continuation(node, loop, leave)
        for inner in node.blocks:
            _lower_loop_exits(inner, node if node.kind == "prim::Loop" else loop, leave)


def _to_continuation(node: Node, loop: Node, leave: Value) -> None:
    graph = node.graph
    with graph.inserting_at(node, node.range):
        condition = leave
        if node.kind == "prim::ContinueStmt":
            (condition,) = copy_block_at(loop.blocks[1], node)
        carried = [_load(node, *variable) for variable in _carried_variables(loop)]
        graph.append("prim::LoopContinuation", [condition, *carried], 0)
    node.destroy()


def _carried_variables(loop: Node) -> Iterator[tuple[str, Type]]:
    """Name and type of the variables that the body carries: its outputs are Loads until these are erased."""
    for value in loop.blocks[0].outputs:
        yield value.node.attr("name"), value.type


# -- loop conditions


def _inline_conditions(block: Block) -> None:
    """Inline the conditions of all loops, inner ones first: a condition may contain loops."""
    for node in block.nodes():
        for inner in node.blocks:
            _inline_conditions(inner)
        if node.kind == "prim::Loop":
            _inline_condition(node)


def _inline_condition(loop: Node) -> None:
    """Evaluate the condition before the loop and at the end of the body, and drop the block that held it."""
    body, condition = loop.blocks
    (before,) = copy_block_at(condition, loop)
    loop.insert_input(1, before)
    (after,) = copy_block_at(condition, body.return_node)
    body.insert_output(0, after)
    loop.erase_block(1)


# -- loads and stores


def _erase_loads_and_stores(block: Block, values: ChainMap[str, Value]) -> None:
    """Replace every Load by the value last stored under its name, and remove both."""
    for node in block.nodes():
        if node.kind == "prim::Store":
            values[node.attr("name")] = node.input
            node.destroy()
        elif node.kind == "prim::Load":
            name = node.attr("name")
            assert name in values, f"{name} is read before it is written"
            node.output.replace_all_uses_with(values[name])
            node.destroy()
        else:
            for inner in node.blocks:
                _erase_loads_and_stores(inner, values.new_child())
