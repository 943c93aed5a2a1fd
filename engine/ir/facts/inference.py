"""Infers facts about every tensor of a graph from the facts about its inputs.

In: a graph whose inputs have types that tell something.  Out: facts for values; nothing in the graph changes, until
`apply_facts` writes them into the types.

    %1 : Float(2, 3) = ...                               both branches give floats of two dimensions:
    %2 : Float(2, 5) = ...                               %3 : Float(2, *) = prim::If(%c) -> (%1), (%2)

An If gives what its branches have in common; a loop's values are what went in and what an iteration gave have in
common, found by walking the body until nothing more is lost.  Memory that some operator may resize has no sizes, and
what is written to may come to need gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.constants import constant_value
from engine.ir.facts.rules import CERTAIN, Reading, node_facts
from engine.ir.facts.tensors import FIELDS, common, refined, tensor_of
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import has_side_effects, op_of
from engine.ir.rewrites import retype
from engine.ir.views import IfView, LoopView
from engine.lang.scalars import CPU, DTYPE_BY_NUMBER, bool_, dtype, float64, int64
from engine.lang.types import BOOL, FLOAT, INT, TENSOR, ListType, TensorType, TupleType, Type

_ROUNDS: Final = 64


def find_facts(graph: Graph, reading: Reading = CERTAIN) -> dict[Value, TensorType]:
    """The inferred fact of each tensor of the graph."""
    walk = _Walk(graph, reading)
    walk.block(graph.block)
    return walk.facts


def apply_facts(graph: Graph, fields: Iterable[str] = FIELDS, *, reading: Reading = CERTAIN) -> bool:
    """Write the inferred facts, restricted to these fields, into the types of the graph; True if a type changed."""
    facts, chosen = find_facts(graph, reading), tuple(fields)
    changed = False
    for block in _blocks(graph.block):
        values = [value for node in block.nodes() for value in node.outputs]
        for value in [*values, *(block.inputs if block.owner is not None else ())]:
            if value not in facts or not isinstance(value.type, TensorType):
                continue
            changed |= retype(value, refined(value.type, facts[value], chosen))
    return changed


def _blocks(block: Block) -> Iterable[Block]:
    yield block
    for node in block.nodes():
        for inner in node.blocks:
            yield from _blocks(inner)


class _Walk:
    """`facts` of tensors, `lists` of the tensors in lists and tuples whose length is known."""

    def __init__(self, graph: Graph, reading: Reading) -> None:
        self._reading = reading
        self.facts: dict[Value, TensorType] = {}
        self.lists: dict[Value, Sequence[TensorType]] = {}
        self._db = AliasDb(graph)
        self._resized = resized_memory(graph, self._db)
        for value in graph.inputs:
            self.set(value, tensor_of(value, {}))

    def set(self, value: Value, found: TensorType) -> None:
        if not isinstance(value.type, TensorType):
            return
        if self._resized and self._db.memory_of([value]) & self._resized:
            found = self._reading.resized(found)
        if found.requires_grad is not None and self._db.has_writers(value):
            found = replace(found, requires_grad=None)
        self.facts[value] = found

    def get(self, value: Value) -> TensorType:
        return tensor_of(value, self.facts)

    def is_written(self, value: Value) -> bool:
        return self._db.has_writers(value)

    def block(self, block: Block) -> None:
        for node in block.nodes():
            rule = _RULES.get(node.kind)
            if rule is not None:
                rule(self, node)
            elif node.blocks:
                self._forget(node)
            else:
                self._operator(node)

    def _operator(self, node: Node) -> None:
        for value, found in zip(node.outputs, node_facts(node, self.facts, self._reading), strict=True):
            if isinstance(found, list):
                self.lists[value] = found
                continue
            self.set(value, refined(tensor_of(value, {}), found or TENSOR, FIELDS))

    def _forget(self, node: Node) -> None:
        for block in node.blocks:
            self.block(block)


def resized_memory(graph: Graph, db: AliasDb) -> int:
    """The memory that some node may give another shape or dtype."""
    memory = 0
    for node in graph.all_nodes():
        if _may_resize(node):
            memory |= db.writes_of(node)
    return memory


def _may_resize(node: Node) -> bool:
    op = op_of(node)
    if op is None:
        return has_side_effects(node) and node.kind not in _HARMLESS
    return op.inplace_view or any(a.kwarg_only and a.alias and a.alias.is_write for a in op.schema.arguments)


_HARMLESS: Final = frozenset({"prim::CallFunction", "prim::CallMethod", "prim::SetAttr", "prim::Enter", "prim::Exit"})
"""Nodes that hand tensors on, and whose code does not reshape what it is given unless it says so."""


# -- control flow


def _if(walk: _Walk, node: Node) -> None:
    view = IfView(node)
    walk.block(view.then_block)
    walk.block(view.else_block)
    never = [_always_raises(block) for block in node.blocks]
    for value, a, b in zip(view.outputs, view.then_outputs, view.else_outputs, strict=True):
        if never == [True, False]:
            walk.set(value, walk.get(b))
        elif never == [False, True]:
            walk.set(value, walk.get(a))
        else:
            walk.set(value, common(walk.get(a), walk.get(b)))


def _always_raises(block: Block) -> bool:
    return any(node.kind == "prim::RaiseException" for node in block.nodes())


def _loop(walk: _Walk, node: Node) -> None:
    view = LoopView(node)
    carried = [walk.get(value) for value in view.carried_inputs]
    for _ in range(_ROUNDS):
        for inner, found in zip(view.body_carried_inputs, carried, strict=True):
            walk.set(inner, found)
        walk.block(view.body)
        given = [walk.get(value) for value in view.body_carried_outputs]
        merged = [common(before, after) for before, after in zip(carried, given, strict=True)]
        if merged == carried:
            break
        carried = merged
    for value, found in zip(view.outputs, carried, strict=True):
        walk.set(value, found)


# -- values that are handed on


def _same(walk: _Walk, node: Node) -> None:
    for value, given in zip(node.outputs, node.inputs, strict=False):
        walk.set(value, refined(tensor_of(value, {}), walk.get(given), FIELDS))


def _guard(walk: _Walk, node: Node) -> None:
    """A guarded value is what it is, and what the guard's type says."""
    value, given = node.outputs[0], walk.get(node.inputs[0])
    checked = tensor_of(value, {})
    found = refined(given, checked, FIELDS)
    if given.sizes is not None and checked.sizes is not None and len(given.sizes) == len(checked.sizes):
        sizes = tuple(b if a is None else a for a, b in zip(checked.sizes, given.sizes, strict=True))
        found = replace(found, sizes=sizes)
    walk.set(value, found)


def _collect(walk: _Walk, node: Node) -> None:
    walk.lists[node.output] = [walk.get(value) for value in node.inputs]


def _spread(walk: _Walk, node: Node) -> None:
    parts = walk.lists.get(node.input, ())
    if isinstance(node.input.type, ListType) and walk.is_written(node.input):
        parts = ()
    for index, value in enumerate(node.outputs):
        walk.set(value, parts[index] if len(parts) == len(node.outputs) else tensor_of(value, {}))


def _at(walk: _Walk, node: Node) -> None:
    parts = walk.lists.get(node.inputs[0], ())
    index = node.inputs[1].node.attributes.get("value")
    known = index is not None and isinstance(index.value, int) and -len(parts) <= index.value < len(parts)
    walk.set(node.output, parts[index.value] if known and index is not None else tensor_of(node.output, {}))


def _chunk(walk: _Walk, node: Node) -> None:
    """Parts are like the whole but for the size that is divided; it is known where all parts are of one size."""
    whole, dim, chunks = walk.get(node.input), node.attr("dim"), node.attr("chunks")
    sizes = [*(whole.sizes or ())]
    if -len(sizes) <= dim < len(sizes):
        size = sizes[dim]
        sizes[dim] = size // chunks if size is not None and size % chunks == 0 else None
    part = replace(whole, sizes=tuple(sizes) or whole.sizes, strides=None)
    for value in node.outputs:
        walk.set(value, refined(tensor_of(value, {}), part, FIELDS))


def _list_of_chunks(walk: _Walk, node: Node) -> None:
    """The parts of a dimension whose size is known, the last of which may be smaller."""
    whole, count, dim = walk.get(node.inputs[0]), constant_value(node.inputs[1]), constant_value(node.inputs[2])
    sizes = [*(whole.sizes or ())]
    if type(count) is not int or type(dim) is not int or count < 1 or not -len(sizes) <= dim < len(sizes):
        return
    total = sizes[dim]
    if not total:
        return
    each = -(-total // count)
    of_parts = [min(each, total - start) for start in range(0, total, each)]
    dim %= len(sizes)
    shapes = [(*sizes[:dim], size, *sizes[dim + 1 :]) for size in of_parts]
    walk.lists[node.output] = [replace(whole, sizes=shape, strides=None) for shape in shapes]


def _of_list(walk: _Walk, node: Node) -> None:
    """A tensor of a list has as many dimensions as the list's type; how long lists are, only the run tells."""
    element, rank = node.inputs[0].type, 0
    while isinstance(element, ListType):
        element, rank = element.element, rank + 1
    asked, place = constant_value(node.inputs[1]), constant_value(node.inputs[2])
    known = _OF_ELEMENTS.get(element) if asked is None else DTYPE_BY_NUMBER.get(asked) if type(asked) is int else None
    walk.set(node.output, TensorType(known, (None,) * rank, device=CPU if place is None else None))


def _number(walk: _Walk, node: Node) -> None:
    """A number as a tensor has no dimensions and the widest dtype."""
    type = node.inputs[0].type
    dtype = int64 if type == INT else float64 if type == FLOAT else None
    walk.set(node.output, TensorType(dtype, (), (), False))


_OF_ELEMENTS: Final[dict[Type, dtype]] = {INT: int64, BOOL: bool_}
"""The dtypes of tensors of such elements where none is asked for; that of floats is the default when it runs."""
_Rule = Callable[[_Walk, Node], None]
_RULES: Final[dict[str, _Rule]] = {
    "prim::If": _if,
    "prim::Loop": _loop,
    "prim::unchecked_cast": _same,
    "prim::unchecked_unwrap_optional": _same,
    "prim::Guard": _guard,
    "prim::BailOut": _guard,
    "prim::TupleConstruct": _collect,
    "prim::ListConstruct": _collect,
    "prim::TupleUnpack": _spread,
    "prim::ListUnpack": _spread,
    "prim::TupleIndex": _at,
    "prim::NumToTensor": _number,
    "aten::tensor": _of_list,
    "prim::ConstantChunk": _chunk,
    "aten::chunk": _list_of_chunks,
}


def refined_tuple(value: Value, elements: Iterable[Type]) -> Type:
    """The tuple's type with what its elements' types tell."""
    type = value.type
    assert isinstance(type, TupleType)
    return TupleType(tuple(elements), type.name, type.fields, type.defaults)
