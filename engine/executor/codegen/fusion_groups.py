"""Which nodes of a plan's graph become kernels together.

In: a graph of which nothing is recorded for gradients, and which nodes may be part of a kernel.  Out: the same graph,
with a `prim::FusionGroup` for each kernel, or a `prim::TensorExprGroup` where the graph is made from a profile.

Note [Groups give new memory]
Results of a kernel are new tensors.  So no result of a group may be a view, a list or a tuple: what is wanted outside
stays outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Final, NamedTuple

from engine.aten.values.tensor import Tensor
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.clone import ValueMap, copy_node, copy_nodes
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.facts.rules import may_go_along
from engine.ir.flat import is_plain_data
from engine.ir.graph import Block, Graph, Node, Use, Value
from engine.ir.ops import op_of
from engine.lang.scalars import device
from engine.lang.types import NUMBER, TensorType
from engine.passes.pipeline import Listener, run_pass

FUSION_GROUP: Final = "prim::FusionGroup"
TENSOREXPR_GROUP: Final = "prim::TensorExprGroup"
"""The kind of the groups of plans that are made from profiles."""
_FUSION_GROUPS: Final = frozenset({FUSION_GROUP, TENSOREXPR_GROUP})
_LOOP: Final = "prim::Loop"
Choice = Callable[[Node], bool]


def on(place: device, chosen: Choice) -> Choice:
    """The choice among the nodes of which it is known that their tensors are on that device."""
    return lambda node: _is_on(node, place) and chosen(node)


def with_known_dtypes(chosen: Choice) -> Choice:
    """The choice among the nodes whose results' dtypes follow from types of operands: no number may be either a float
    or an int, no dtype be known when the program runs only."""
    return lambda node: not any(map(_may_be_any_dtype, node.inputs, _argument_names(node))) and chosen(node)


def _may_be_any_dtype(value: Value, argument: str) -> bool:
    return value.type == NUMBER or (argument == "dtype" and constant_value(value) is NOT_CONSTANT)


def _argument_names(node: Node) -> list[str]:
    op = op_of(node)
    return [each.name for each in op.schema.arguments] if op is not None else [""] * len(node.inputs)


def _is_on(node: Node, place: device) -> bool:
    """True if results are there, and operands may be: also numbers of the CPU, and what a call has to tell."""
    given, made = _tensor_types(node.inputs), _tensor_types(node.outputs)
    inner = (each for block in node.blocks for each in block.nodes() if each.kind != "prim::Constant")
    may_be_there = all(type.device in (None, place) or may_go_along(type) for type in given)
    return may_be_there and all(type.device == place for type in made) and all(_is_on(each, place) for each in inner)


def _tensor_types(values: Sequence[Value]) -> list[TensorType]:
    return [value.type for value in values if isinstance(value.type, TensorType)]


DIFFERENTIABLE_GRAPH: Final = "prim::DifferentiableGraph"


def is_fusion_group(node: Node) -> bool:
    """True if the node is a group that runs as a kernel, of either kind."""
    return node.kind in _FUSION_GROUPS


def form_groups(
    graph: Graph, kind: str, is_fusible: Choice, refused: dict[Node, str], listener: Listener | None
) -> list[Node]:
    """Group what may be fused, less the nodes in `refused`, which learns those that have to stay outside, and why; the
    groups, of this kind, in their order."""

    def make(may_join: Choice, may_end: Choice) -> None:
        run_pass(
            "create_fusion_groups", graph, listener, kind=kind, is_fusible=may_join, min_size=1, may_end=may_end,
            widens=kind == TENSOREXPR_GROUP,
        )  # fmt: skip

    groups = _grouped(graph, kind, is_fusible, refused, make)
    for group in groups:
        _lift_tensors(group)
    return groups


def form_differentiable_graphs(
    graph: Graph, is_differentiable: Choice, threshold: int, refused: dict[Node, str], listener: Listener | None
) -> list[Node]:
    """The same for what may be differentiated, `threshold` nodes at least."""

    def make(may_join: Choice, may_end: Choice) -> None:
        run_pass(
            "create_autodiff_subgraphs", graph, listener, threshold=threshold, is_differentiable=may_join,
            may_end=may_end, widens=True,
        )  # fmt: skip

    return _grouped(graph, DIFFERENTIABLE_GRAPH, is_differentiable, refused, make)


def _grouped(
    graph: Graph, kind: str, is_chosen: Choice, refused: dict[Node, str], make: Callable[[Choice, Choice], None]
) -> list[Node]:
    """The groups that `make` makes, without nodes whose results no group may give."""

    def may_join(node: Node) -> bool:
        if node in refused or node.kind == "prim::Constant" or not is_chosen(node):
            return False
        return (node.kind != _LOOP or _makes_tensors(node)) and not is_in_loop(node)

    def is_in_loop(node: Node) -> bool:
        """True if the node is in a loop that is to be part of a kernel as a whole."""
        owner = node.block.owner if node.block is not None else None
        return owner is not None and (is_in_loop(owner) or (owner.kind == _LOOP and may_join(owner)))

    def may_end(node: Node) -> bool:
        """True if the group gives something: what nobody uses is there for its writes, and runs by itself."""
        return may_join(node) and _makes_tensors(node) and any(value.has_uses for value in node.outputs)

    _copy_lists(graph)
    known = {*graph.find_all_nodes(kind)}
    while True:
        make(may_join, may_end)
        groups = graph.find_all_nodes(kind)
        wrong = {group: nodes for group in groups if group not in known and (nodes := _unfit(group))}
        if not wrong:
            return groups
        for group, nodes in wrong.items():
            refused |= dict.fromkeys(dissolve(group, nodes), "its result is no new tensor, and wanted outside")


def _copy_lists(graph: Graph) -> None:
    """Make lists of sizes and the like anew for each operator that reads one, so that groups may hold them."""
    for node in graph.find_all_nodes("prim::ListConstruct"):
        uses = node.output.uses
        if all(_only_reads(use) for use in uses):
            for user, offset in uses[1:]:
                with graph.inserting_at(user):
                    user.replace_input(offset, graph.insert_node(copy_node(node, graph, {})).output)


def _only_reads(use: Use) -> bool:
    op = op_of(use.user)
    if op is None or use.offset >= len(op.schema.arguments):
        return False
    return op.schema.arguments[use.offset].alias is None


def _makes_tensors(node: Node) -> bool:
    """True if the node is an operator, or a loop, whose results are new tensors."""
    if node.kind == _LOOP:  # not those that it begins with, as kernels take a step at least
        return all(_makes_tensors(value.node) for value in node.blocks[0].outputs[1:])
    op = op_of(node)
    is_of_tensors = all(isinstance(value.type, TensorType) for value in node.outputs)
    return op is not None and is_of_tensors and op.gives_new


def dissolve(group: Node, some: Collection[Node] = ()) -> set[Node]:
    """Put the nodes of the group in its place; those that `some` of the nodes in it became."""
    graph, inner = group.graph, group.attr("Subgraph")
    values: ValueMap = dict(zip(inner.inputs, group.inputs, strict=True))
    found: set[Node] = set()
    with graph.inserting_at(group):
        for node in inner.nodes():
            copy = graph.insert_node(copy_node(node, graph, values))
            if node in some:
                found.add(copy)
    for output, result in zip(group.outputs, inner.outputs, strict=True):
        output.replace_all_uses_with(values[result])
    group.destroy()
    return found


def _unfit(group: Node) -> set[Node]:
    """The nodes whose results are results of the group, and views or no tensors.  See Note [Groups give new memory]."""
    graph: Graph = group.attr("Subgraph")
    db, makers = AliasDb(graph), {value.node for value in graph.outputs}
    makers -= {node for node in makers if node.kind == _LOOP}
    # parts of a list share memory with what is in the list, which is not the list itself
    views = {node for node in makers if node.kind == "prim::Param" or db.may_contain_alias(node.outputs, node.inputs)}
    return views | {value.node for value in graph.outputs if not isinstance(value.type, TensorType)}


def _lift_tensors(group: Node) -> None:
    """Let the group take constants that are tensors from outside: kernels hold no elements."""
    inner: Graph = group.attr("Subgraph")
    for node in inner.find_all_nodes("prim::Constant"):
        if isinstance(constant_value(node.output), Tensor):
            with group.graph.inserting_at(group):
                outside = group.graph.insert_node(copy_node(node, group.graph, {}))
            group.add_input(outside.output)
            node.output.replace_all_uses_with(inner.add_input(node.output.name, node.output.type))
            node.destroy()


class Whole(NamedTuple):
    """A group that does all that a graph does, but for guards of the graph's inputs, which stand before it.

    `expected` has, for each input, the type that it is guarded with, if it is.
    """

    group: Node
    expected: tuple[TensorType | None, ...]

    @property
    def is_guarded(self) -> bool:
        return any(self.expected)

    @property
    def sizes(self) -> tuple[tuple[int | None, ...], ...]:
        """The sizes that the guards ask for; nothing is known of those that they leave open."""
        return tuple(() if type is None else tuple(type.sizes or ()) for type in self.expected)


def whole(graph: Graph) -> Whole | None:
    """The group that does all that the graph does, arranged to take its inputs and give its results as they are."""
    nodes = [node for node in graph.nodes() if node.kind != "prim::Constant"]
    guards = [*itertools.takewhile(_guards_an_input, nodes)]
    nodes = nodes[len(guards) :]
    if not nodes or not is_fusion_group(nodes[0]):
        return None
    group, outputs = nodes[0], graph.outputs
    if len(nodes) == 2 and nodes[1].kind == "prim::TupleConstruct" and len(group.outputs) > 1:
        outputs = nodes[1].inputs if outputs == nodes[1].outputs else []
    elif len(nodes) > 1 or len(group.outputs) > 1:
        return None
    guarded = {node.inputs[0]: node.output for node in guards}
    inputs = [guarded.get(value, value) for value in graph.inputs]
    if {*group.inputs} != {*inputs} or {*group.outputs} != {*outputs} or len(group.outputs) != len(outputs):
        return None
    return Whole(_arranged(group, inputs, outputs), tuple(map(_guarded_type, inputs)))


def _guards_an_input(node: Node) -> bool:
    return node.kind == "prim::BailOut" and node.inputs[0].node.kind == "prim::Param"


def _guarded_type(value: Value) -> TensorType | None:
    return value.type if _guards_an_input(value.node) and isinstance(value.type, TensorType) else None


def _arranged(group: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> Node:
    """The group anew, with its inputs and outputs in this order."""
    if group.inputs == inputs and group.outputs == outputs:
        return group
    old: Graph = group.attr("Subgraph")
    given, made = dict(zip(group.inputs, old.inputs, strict=True)), dict(zip(group.outputs, old.outputs, strict=True))
    inner, values = Graph(), ValueMap()
    for value in inputs:
        values[given[value]] = inner.add_input(given[value].name, given[value].type)
    copy_nodes(old.nodes(), inner.block, values)
    for value in outputs:
        inner.register_output(values[made[value]])
    another = group.graph.create(group.kind, inputs, [value.type for value in outputs]).insert_before(group)
    for value, result in zip([*outputs], another.outputs, strict=True):
        value.replace_all_uses_with(result)
    group.destroy()
    return another.set_attr("Subgraph", inner)


def is_plain(graph: Graph) -> bool:
    """True if the graph's structure is text that means the same in another process."""
    attributes = (attr.value for node in graph.all_nodes() for attr in node.attributes.values())
    return all(isinstance(value, TensorType) or is_plain_data(value) for value in attributes)


def structure(graph: Graph) -> Hashable:
    """A key that graphs share which do the same, whatever their values are called."""
    return _structure(graph.block, {})


def _structure(block: Block, numbers: dict[Value, int]) -> Hashable:
    """The same for a block; `numbers` are those of values from outside, and learn others."""

    def number(values: Sequence[Value]) -> tuple[str, ...]:
        for value in values:
            numbers[value] = len(numbers)
        return tuple(str(value.type) for value in values)

    rows: list[Hashable] = [number(block.inputs)]
    for node in block.nodes():
        op, given = op_of(node), tuple(numbers[value] for value in node.inputs)
        what = repr([*node.attributes.items()]), op.qualified_name if op is not None else node.kind
        inside = tuple(_structure(each, numbers) for each in node.blocks)
        rows.append((*what, given, inside, number(node.outputs)))
    return (*rows, tuple(numbers[value] for value in block.outputs))
