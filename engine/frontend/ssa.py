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
from dataclasses import dataclass, field
from typing import Final

from engine.ir.clone import copy_block_at
from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.names import name_after
from engine.lang.types import Type, unify

Types = MutableMapping[str, Type]
EXITS: Final = frozenset({"prim::ReturnStmt", "prim::RaiseException"})


def to_ssa(graph: Graph) -> None:
    """Rewrite the emitter's graph in place; ReturnStmt and LoopContinuation are left to the exit transform."""
    _carry_variables(graph.block, {})
    _lower_loop_exits(graph.block, None)
    for loop in [node for node in graph.all_nodes() if node.kind == "prim::Loop"]:
        _inline_condition(loop)
    _erase_loads_and_stores(graph.block, ChainMap())


# -- variables cross control flow as inputs and outputs


@dataclass(slots=True)
class Written:
    """The variables that a block writes, with their types at its end, and whether it is always left early.

    `looped` are those that only loops in it write: for the emitter the block itself does not define them.
    """

    types: dict[str, Type] = field(default_factory=dict)
    looped: set[str] = field(default_factory=set)
    exits: bool = False

    def add(self, name: str, type: Type, *, looped: bool = False) -> None:
        if looped and name not in self.types:
            self.looped.add(name)
        elif not looped:
            self.looped.discard(name)
        self.types[name] = type


def _carry_variables(block: Block, outer: Types) -> Written:
    """Give every If and Loop in `block` outputs for the variables that it writes."""
    written = Written()
    known: Types = ChainMap(written.types, outer)
    for node in block.nodes():
        if node.kind == "prim::Store":
            written.add(node.attr("name"), node.input.type)
            written.exits = False  # printed code hands values on even behind its call of prim::RaiseException
        elif node.kind == "prim::If":
            written.exits |= _carry_through_if(node, known, written)
        elif node.kind == "prim::Loop":
            _carry_through_loop(node, known, written)
        elif node.kind in EXITS:
            written.exits = True
        else:
            for inner in node.blocks:
                _carry_variables(inner, known)
    return written


def _carry_through_if(node: Node, known: Types, written: Written) -> bool:
    """Do both branches leave early?  Then nothing follows, and nothing has to be carried."""
    branches = [_carry_variables(block, known) for block in node.blocks]
    staying = [branch for branch in branches if not branch.exits]
    if not staying:
        return True
    for name in sorted(set().union(*(branch.types for branch in staying))):
        looped = all(name in branch.looped for branch in staying if name in branch.types)
        types = [_type_at_end(branch, name, known, looped) for branch in branches]
        reaching = [type for branch, type in zip(branches, types, strict=True) if type and not branch.exits]
        if len(reaching) < len(staying):
            continue  # not defined on every way here, so nothing after may read it
        joined = unify(reaching[0], reaching[-1], default_to_union=True)
        assert joined is not None
        for block, type in zip(node.blocks, types, strict=True):
            block.register_output(_load(block.return_node, name, type) if type else _never(block, joined))
        _store_output(node, name, joined)
        written.add(name, joined, looped=looped)
    return False


def _type_at_end(branch: Written, name: str, known: Types, looped: bool) -> Type | None:
    """The variable's type at the end of a branch; None where it has no value there, or none that is ever seen."""
    if branch.exits:
        return known.get(name) if looped else None
    return branch.types.get(name, known.get(name))


def _never(block: Block, type: Type) -> Value:
    """A value for the end of a block that is left before."""
    return block.append(block.graph.create("prim::Uninitialized", (), [type])).output


def _carry_through_loop(node: Node, known: Types, written: Written) -> None:
    body = node.blocks[0]
    for name, type in sorted(_carry_variables(body, known).types.items()):
        before = known.get(name)
        if before is None:
            continue  # local to the body
        joined = unify(before, type, default_to_union=True)
        assert joined is not None
        node.add_input(_load(node, name, before))
        carried = body.add_input(joined, name_after(name))
        first = body.param_node.next
        assert first is not None
        _store(first, name, carried)
        body.register_output(_load(body.return_node, name, type))
        _store_output(node, name, joined)
        written.add(name, joined, looped=True)


def _load(place: Node, name: str, type: Type) -> Value:
    node = place.graph.create("prim::Load", (), [type]).set_attr("name", name).insert_before(place)
    return node.output.set_debug_name(name_after(name))


def _store(place: Node, name: str, value: Value) -> Node:
    return place.graph.create("prim::Store", [value], 0).set_attr("name", name).insert_before(place)


def _store_output(node: Node, name: str, type: Type) -> None:
    assert node.next is not None
    _store(node.next, name, node.add_output(type, name_after(name)))


# -- break and continue


def _lower_loop_exits(block: Block, loop: Node | None) -> None:
    """Turn the `break` and `continue` of `block` into LoopContinuations of `loop`, the innermost around it."""
    for node in block.nodes():
        if node.kind in ("prim::BreakStmt", "prim::ContinueStmt"):
            assert loop is not None
            _to_continuation(node, loop)
        for inner in node.blocks:
            _lower_loop_exits(inner, node if node.kind == "prim::Loop" else loop)


def _to_continuation(node: Node, loop: Node) -> None:
    graph = node.graph
    with graph.inserting_at(node, node.range):
        if node.kind == "prim::BreakStmt":
            condition = _false_at_start(graph)
        else:
            (condition,) = copy_block_at(loop.blocks[1], node)
        carried = [_load(node, *variable) for variable in _carried_variables(loop)]
        graph.append("prim::LoopContinuation", [condition, *carried], 0)
    node.destroy()


def _false_at_start(graph: Graph) -> Value:
    first = graph.block.param_node.next
    assert first is not None
    with graph.inserting_at(first):
        return insert_constant(graph, False)


def _carried_variables(loop: Node) -> Iterator[tuple[str, Type]]:
    """Name and type of what the body hands on: its outputs are Loads until these are erased."""
    for value in loop.blocks[0].outputs:
        yield value.node.attr("name"), value.type


# -- loop conditions


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
    """Let every Load stand for the value last stored under its name, and remove both."""
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
