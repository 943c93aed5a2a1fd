"""Graphs rewritten for arguments of known sizes, by running them once.

In: nodes, and an `Item` for each value that they take: its part in the new graph, and an example of what it will be.
Out: the same nodes in the new graph, as far as they compute with the elements of tensors.  All else is done here:
sizes, ranks and dtypes are numbers, questions about them have answers, branches are taken, lists of tensors come apart.

The examples are real results, so that the sizes of all intermediate tensors are known whatever operators are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values import libraries, xp
from engine.aten.values.tensor import Tensor
from engine.ir.composites import composite_graph
from engine.ir.constants import constant_value, set_constant, type_of
from engine.ir.graph import Graph, Node, Value
from engine.ir.ops import op_of
from engine.lang.records import dataclass
from engine.lang.scalars import CPU
from engine.lang.types import NONE, TENSOR, ListType, TensorType, Type


class NotDifferentiable(Exception):
    """No graph can be made, because of the node."""

    def __init__(self, node: Node | None, why: str) -> None:
        super().__init__(why)
        self.node = node


@dataclass(eq=False, slots=True)
class Item:
    """One thing that a graph computes with.

    `value` is its place in the graph.  It has none where it is the same in all calls, or has `parts`: a list of
    tensors, each of which has its own place.
    """

    example: Any
    value: Value | None = None
    parts: Sequence[Item] | None = None

    @property
    def is_known(self) -> bool:
        return self.value is None and self.parts is None

    @property
    def form(self) -> tuple[tuple[int, ...], Any]:
        return self.example.array.shape, self.example.array.dtype


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """An operator in a specialised graph; `source` is a node of it, `origin` the one of the original graph that it came
    from."""

    op: Op
    inputs: Sequence[Item]
    outputs: Sequence[Item]
    source: Node | None
    origin: Node | None


def holds_tensor(value: Any) -> bool:
    """True for tensors, and lists and tuples of them."""
    return isinstance(value, Tensor) or (isinstance(value, (list, tuple)) and any(map(holds_tensor, value)))


def unwritten(op: Op, arguments: list[Any]) -> list[Any]:
    """The arguments, with copies of the tensors that the operator writes to: those of a call are the program's."""
    for place in map(op.schema.index_of, op.also_writes):
        if place is not None and arguments[place] is not None:
            arguments[place] = Tensor(arguments[place].array.copy())
    return arguments


OF_FORMS: Final = frozenset(
    f"aten::{name}" for name in "size dim numel len __is__ __isnot__ is_floating_point is_complex stride".split()
) | frozenset({"prim::dtype", "prim::device", "prim::layout", "prim::unchecked_cast"})
"""Operators of tensors that do not look at elements."""


@dataclass(slots=True)
class Specialiser:
    """Writes into `graph`; `steps` are its operators so far.  `may_share`: results may be what went in, where an
    operator changes nothing, and may lie in memory otherwise; as in formulas of gradients, whose results nobody else
    sees."""

    graph: Graph
    may_share: bool = False
    steps: list[Step] = field(default_factory=list)
    _constants: dict[Item, Value] = field(default_factory=dict)
    _unfolding: Node | None = None
    """The node that is made of those that are written now."""

    def add_input(self, example: Any, type: Type = TENSOR, name: str = "") -> Item:
        found = self.graph.add_input(name, _type(example, type))
        return Item(example, found)

    def run(self, nodes: Iterable[Node], items: dict[Value, Item]) -> None:
        """Do all of the nodes; `items` are what their inputs are, and learn their outputs."""
        for node in nodes:
            rule = _RULES.get(node.kind)
            if rule is not None:
                rule(self, node, items)
                continue
            made = self.node(node, [items[value] for value in node.inputs])
            items.update(zip(node.outputs, made, strict=True))

    def call(self, name: str, *arguments: Any) -> Item:
        """The only result of the operator with that qualified name; arguments are items, or plain values."""
        op = table.find(name)
        assert op is not None
        (made,) = self._call(op, [each if isinstance(each, Item) else Item(each) for each in arguments])
        return made

    def zeros(self, of: Item) -> Item:
        """Zeros of the item's form, where it is."""
        shape, dtype = of.form
        place = None if of.example.device == CPU else of.example.device
        return self.call("aten::zeros", [*shape], xp.FROM_NUMPY[dtype].number, None, place, None)

    def _call(self, op: Op, inputs: Sequence[Item]) -> Sequence[Item]:
        node = self.graph.create(op.name, (), [result.type for result in op.schema.returns])
        node.op = op
        return self._operator(node, op, inputs)

    # -- nodes

    def node(self, node: Node, inputs: Sequence[Item]) -> Sequence[Item]:
        op = op_of(node)
        if op is None:
            raise NotDifferentiable(node, f"{node.kind} has no derivative")
        if self.may_share and op.qualified_name in _SHORTER:
            found = _SHORTER[op.qualified_name](self, inputs)
            if found is not None:
                return [found]
        stands_in = _FORM_AT.get(op.qualified_name)
        if stands_in is not None:
            inputs = [_form_only(each) if i == stands_in else each for i, each in enumerate(inputs)]
        return self._operator(node, op, inputs)

    def _operator(self, node: Node, op: Op, inputs: Sequence[Item]) -> Sequence[Item]:
        graph = composite_graph(op) if not (op.gradient or op.recorded_as) else None
        if graph is not None:
            return self._composed(node, graph, inputs)
        result = op.run(*unwritten(op, [each.example for each in inputs]))
        results = [result] if len(node.outputs) == 1 else [*result]
        is_known = all(each.is_known for each in inputs) or op.name in OF_FORMS
        if is_known and not any(map(holds_tensor, results)):
            return [Item(each) for each in results]
        made = self.again(node, op, inputs, results)
        self.steps.append(Step(op, inputs, made, node, self._unfolding or node))
        return made

    def _composed(self, node: Node, graph: Graph, inputs: Sequence[Item]) -> Sequence[Item]:
        """The operators that it is made of, in its place."""
        items = dict(zip(graph.inputs, inputs, strict=True))
        before, self._unfolding = self._unfolding, self._unfolding or node
        try:
            self.run(graph.nodes(), items)
        finally:
            self._unfolding = before
        found = items[graph.outputs[0]]
        return [found] if len(node.outputs) == 1 else [*(found.parts or map(Item, found.example))]

    def again(self, node: Node, op: Op, inputs: Sequence[Item], results: Sequence[Any]) -> Sequence[Item]:
        """The operator on these inputs, where its results are like these."""
        copy = Node(self.graph, op.name, node.range, inlined_from=node.inlined_from)
        for argument, each in zip(op.schema.arguments, inputs, strict=True):
            copy.add_input(self.place(each, argument.type))
        copy.op = op
        for example, output in zip(results, node.outputs, strict=True):
            copy.add_output(_type(example, output.type))
        self.graph.insert_node(copy)
        return [self._outcome(each, value) for each, value in zip(results, copy.outputs, strict=True)]

    def _outcome(self, example: Any, value: Value) -> Item:
        """An output; a list of tensors comes apart at once."""
        if not isinstance(example, list) or not holds_tensor(example):
            return Item(example, value)
        types = [_type(each, TENSOR) for each in example]
        unpacked = self.graph.insert_node(self.graph.create("prim::ListUnpack", [value], types))
        parts = [Item(each, part) for each, part in zip(example, unpacked.outputs, strict=True)]
        return Item(example, None, parts)

    def place(self, item: Item, wanted: Type) -> Value:
        """A value of the graph that is the item."""
        if item.value is not None:
            return item.value
        if item.parts is not None:
            parts = [self.place(each, TENSOR) for each in item.parts]
            element = wanted if isinstance(wanted, ListType) else ListType(TENSOR)
            item.value = self.graph.insert_node(self.graph.create("prim::ListConstruct", parts, [element])).output
            return item.value
        found = self._constants.get(item)
        if found is None:
            type = NONE if item.example is None else _type(item.example, wanted)
            node = self.graph.create("prim::Constant", (), [type])
            set_constant(node, item.example)
            found = self._constants[item] = self.graph.insert_node(node).output
        return found


def _type(example: Any, otherwise: Type) -> Type:
    if isinstance(example, Tensor):
        return TensorType(example.dtype, tuple(example.shape), None, None, example.device)
    return type_of(example) if isinstance(example, (bool, int, float, complex, str)) else otherwise


# ------------------------------------------------------------------ forms


def _zeros_like(into: Specialiser, inputs: Sequence[Item]) -> Item | None:
    """Zeros of the form of the first argument, where nothing else is asked for."""
    of, *others = inputs
    return into.zeros(of) if all(each.is_known and each.example is None for each in others) else None


def _product(into: Specialiser, inputs: Sequence[Item]) -> Item | None:
    """The first factor where the other is the whole number 1, which of truth values makes numbers."""
    x, other = inputs
    is_one = other.is_known and type(other.example) is int and other.example == 1
    return x if is_one and x.example.array.dtype != xp.BOOL else None


_SHORTER: Final[dict[str, Callable[[Specialiser, Sequence[Item]], Item | None]]] = {
    "aten::zeros_like": _zeros_like, "aten::mul.Scalar": _product, "aten::mul.Tensor": _product,
}  # fmt: skip
"""Operators that need no node for some arguments, and what they give then; None for all other arguments."""

_FORM_AT: Final = {"aten::_cat_backward": 1}
"""Operators that look at the form of one argument only, and its position."""


def _form_only(item: Item) -> Item:
    """Something of the item's form that is the same in all calls, and takes no memory."""
    if item.parts is not None:
        parts = [_form_only(each) for each in item.parts]
        return Item([part.example for part in parts], None, parts)
    return Item(stand_in(item.example))


def stand_in(example: Tensor) -> Tensor:
    """A tensor of the same form that takes no memory: all of its elements are in one place."""
    return Tensor(libraries.like(example.array, (0,) * example.array.ndim))


# ------------------------------------------------------------------ nodes that are no operators

Rule = Callable[[Specialiser, Node, dict[Value, Item]], None]


def _constant(into: Specialiser, node: Node, items: dict[Value, Item]) -> None:
    items[node.output] = Item(constant_value(node.output))


def _list(into: Specialiser, node: Node, items: dict[Value, Item]) -> None:
    parts = [items[value] for value in node.inputs]
    is_known = all(each.is_known for each in parts)
    if not is_known and not any(holds_tensor(each.example) for each in parts):
        raise NotDifferentiable(node, "its sizes are not known before it runs")
    items[node.output] = Item([each.example for each in parts], None, None if is_known else parts)


def _tuple(into: Specialiser, node: Node, items: dict[Value, Item]) -> None:
    parts = [items[value] for value in node.inputs]
    items[node.output] = Item(tuple([each.example for each in parts]), None, parts)


def _unpack(into: Specialiser, node: Node, items: dict[Value, Item]) -> None:
    given = items[node.input]
    parts = given.parts if given.parts is not None else [Item(each) for each in given.example]
    items.update(zip(node.outputs, parts, strict=True))


def _element(into: Specialiser, node: Node, items: dict[Value, Item]) -> None:
    given, place = (items[value] for value in node.inputs)
    if given.parts is None and not (given.is_known and place.is_known):
        raise NotDifferentiable(node, "its sizes are not known before it runs")
    items[node.output] = given.parts[place.example] if given.parts is not None else Item(given.example[place.example])


def _if(into: Specialiser, node: Node, items: dict[Value, Item]) -> None:
    condition = items[node.inputs[0]]
    if not condition.is_known:
        raise NotDifferentiable(node, "its branch is not known before it runs")
    block = node.blocks[0 if condition.example else 1]
    into.run(block.nodes(), items)
    items.update(zip(node.outputs, [items[value] for value in block.outputs], strict=True))


def _loop(into: Specialiser, node: Node, items: dict[Value, Item]) -> None:
    count, goes_on, *carried = (items[value] for value in node.inputs)
    (body,) = node.blocks
    round_ = 0
    while round_ < count.example and goes_on.example:
        if not (count.is_known and goes_on.is_known):
            raise NotDifferentiable(node, "its rounds are not known before it runs")
        items.update(zip(body.inputs, [Item(round_), *carried], strict=True))
        into.run(body.nodes(), items)
        goes_on, *carried = (items[value] for value in body.outputs)
        round_ += 1
    items.update(zip(node.outputs, carried, strict=True))


def _append(into: Specialiser, node: Node, items: dict[Value, Item]) -> None:
    """Of comprehensions: lists grow."""
    given, new = (items[value] for value in node.inputs)
    if not new.is_known:
        given.parts = [*([*map(Item, given.example)] if given.parts is None else given.parts), new]
    elif given.parts is not None:
        given.parts = [*given.parts, new]
    given.example.append(new.example)
    for output in node.outputs:
        items[output] = given


_RULES: Final[dict[str, Rule]] = {
    "prim::Constant": _constant, "prim::ListConstruct": _list, "prim::ListUnpack": _unpack,
    "prim::TupleConstruct": _tuple, "prim::TupleUnpack": _unpack,
    "aten::__getitem__": _element, "prim::If": _if, "prim::Loop": _loop, "aten::append": _append,
}  # fmt: skip
