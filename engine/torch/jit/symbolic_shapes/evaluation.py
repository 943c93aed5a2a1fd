"""Shape functions of a graph's nodes in a graph of their own, worked out as far as is possible before anything runs.

In: nodes, and the sizes of what they take: whole numbers, or symbols (negative numbers) for unknown ones.  Out: for
each result of a node its sizes, as numbers and as values that have to be computed.

    shapes = ShapeGraph()
    results = shapes.add(node)        for some nodes, in order; lists of sizes, None without a shape function
    sizes = shapes.evaluated(results, sizes_of)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.aten.values.tensor import Tensor
from engine.ir.clone import inline_graph
from engine.ir.constants import NOT_CONSTANT, constant_value, insert_constant
from engine.ir.facts.tensors import is_fixed_list
from engine.ir.graph import Graph, Node, Value
from engine.ir.insert import insert_op
from engine.ir.match import constant_int
from engine.lang.types import INT, TENSOR, ListType, TensorType, TupleType, Type, unwrap_optional
from engine.passes.pipeline import run_pass, run_pipeline
from engine.torch.jit.symbolic_shapes.functions import shape_graph, sizes_type

Sizes = tuple[int, ...]
"""The sizes of one tensor; negative numbers are symbols of unknown ones."""
SizesOf = Callable[[Value], Sizes | None]
_SIMPLIFYING: Final = (
    "constant_propagation", "peephole", "constant_loop_unrolling", "remove_list_mutation",
    "lower_simple_tuples", "eliminate_exceptions", "cse", "dce",
)  # fmt: skip
_READING: Final = frozenset({"prim::Return", "aten::len", "aten::__getitem__"})
_ROUNDS: Final = 20
"""Rounds of these passes at most: each opens what the one before has made constant."""


class ShapeGraph:
    """`graph` has an input for each tensor (its sizes) and number that the nodes take from elsewhere; `sources` are
    these values of the nodes' own graph, in order.  `symbols` are the values that are sizes of inputs."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.sources: list[Value] = []
        self.symbols: dict[Value, int] = {}
        self._known: dict[Value, Value] = {}

    def add(self, node: Node) -> list[Value] | None:
        """Insert the shape function of the node; lists with the sizes of its results, or None if there is none."""
        shape = shape_graph(node)
        if shape is None or len(shape.inputs) > len(node.inputs):
            return None
        taken = zip(node.inputs, shape.inputs, strict=False)
        results = inline_graph(self.graph, shape, [self._argument(value, wanted.type) for value, wanted in taken])
        if isinstance(results[0].type, TupleType):
            parts = self.graph.create("prim::TupleUnpack", results, results[0].type.elements)
            results = list(self.graph.insert_node(parts).outputs)  # the node goes, its list with it
        if len(results) != len(node.outputs):
            return None
        self._known.update(zip(node.outputs, results, strict=True))
        return results

    def _argument(self, value: Value, wanted: Type) -> Value:
        """A value that stands for a node's argument in its shape function."""
        constant = constant_value(value)
        if isinstance(constant, Tensor):
            return self._list([insert_constant(self.graph, size) for size in constant.shape], INT)
        if constant is not NOT_CONSTANT:
            return insert_constant(self.graph, constant)
        if value.node.kind == "aten::size":
            tensor, *dims = value.node.inputs
            sizes = self._argument(tensor, TENSOR)
            return insert_op(self.graph, "aten::__getitem__", sizes, self._argument(dims[0], INT)) if dims else sizes
        wanted = unwrap_optional(wanted)
        if isinstance(wanted, ListType) and is_fixed_list(value):
            return self._list([self._argument(each, wanted.element) for each in value.node.inputs], wanted.element)
        if value not in self._known:
            self._known[value] = self.graph.add_input(type=sizes_type(value.type))
            self.sources.append(value)
        return self._known[value]

    def _list(self, elements: Sequence[Value], of: Type) -> Value:
        return self.graph.insert_node(self.graph.create("prim::ListConstruct", elements, [ListType(of)])).output

    def evaluated(self, results: Sequence[Value], sizes_of: SizesOf) -> list[list[Value] | None]:
        """The sizes of the results, those that are known as constants; None where their number is unknown.

        `sizes_of` gives the sizes of the tensors that the nodes take.  The graph has as outputs afterwards
        the unknown sizes of these tensors, and then the sizes of the results.
        """
        for result in results:
            self.graph.register_output(result)
        first = next(iter(self.graph.nodes()), None) or self.graph.return_node
        with self.graph.inserting_at(first):
            for source, value in zip(self.sources, self.graph.inputs, strict=True):
                sizes = sizes_of(source) if isinstance(source.type, TensorType) else None
                if sizes is not None:
                    self._open(value, sizes)
        for symbol in self.symbols:
            self.graph.register_output(symbol)
        self._simplify(len(results))
        lists, asked = self.graph.outputs[: len(results)], self.graph.outputs[len(results) :]
        self.symbols = dict(zip(asked, self.symbols.values(), strict=True))
        found = [_elements(output) for output in lists]
        for offset in reversed(range(len(self.graph.outputs))):
            self.graph.block.erase_output(offset)
        for value in dict.fromkeys([*self.symbols, *(each for sizes in found for each in sizes or ())]):
            self.graph.register_output(value)
        run_pipeline(("dce",), self.graph)
        return found

    def _open(self, value: Value, sizes: Sizes) -> None:
        """Let a list of these sizes take the place of an input, whose unknown sizes are still asked for."""
        elements = []
        known = {symbol: value for value, symbol in self.symbols.items()}
        for at, size in enumerate(sizes):
            if size >= 0:
                elements.append(insert_constant(self.graph, size))
            elif size in known:
                elements.append(known[size])
            else:
                known[size] = insert_op(self.graph, "aten::__getitem__", value, at)
                self.symbols[known[size]] = size
                elements.append(known[size])
        made = self._list(elements, INT)
        value.replace_all_uses_after(made.node, made)

    def _simplify(self, results: int) -> None:
        """Fold until nothing changes; the outputs behind the results are sizes."""
        before = ""
        for _ in range(_ROUNDS):
            run_pipeline(_SIMPLIFYING, self.graph)
            run_pass("peephole_list_idioms", self.graph, refine_list_len=True)
            for node in self.graph.find_all_nodes("prim::If"):
                _take_what_both_give(node)
            for symbol in self.graph.outputs[results:]:
                _compare_with_negative_numbers(symbol)
            if (text := str(self.graph)) == before:
                return
            before = text


_OF_NEGATIVE_NUMBERS: Final = {
    "aten::eq": False, "aten::ne": True, "aten::lt": False, "aten::le": False, "aten::gt": True, "aten::ge": True,
}  # fmt: skip
"""Comparisons of a size, on the left, with a number below zero."""


def _compare_with_negative_numbers(size: Value) -> None:
    """No size is -1, as a view's argument may be."""
    for user, offset in list(size.uses):
        if offset == 0 and user.kind in _OF_NEGATIVE_NUMBERS and (constant_int(user.inputs[1]) or 0) < 0:
            with user.graph.inserting_at(user):
                user.output.replace_all_uses_with(insert_constant(user.graph, _OF_NEGATIVE_NUMBERS[user.kind]))


def _take_what_both_give(node: Node) -> None:
    """`c if x == c else x` is x."""
    test = node.input.node
    if test.kind != "aten::eq":
        return
    x, c = test.inputs
    for output, equal, other in zip(node.outputs, node.blocks[0].outputs, node.blocks[1].outputs, strict=True):
        if other is x and constant_value(equal) == constant_value(c) != NOT_CONSTANT:
            output.replace_all_uses_with(x)


def _elements(value: Value) -> list[Value] | None:
    """Elements of a list that is only read; None for any other value."""
    if value.node.kind == "prim::Constant":
        with value.graph.inserting_at(value.node):
            return [insert_constant(value.graph, size) for size in constant_value(value)]
    is_made_here = value.node.kind == "prim::ListConstruct"
    is_read_only = all(use.user.kind in _READING for use in value.uses)
    return list(value.node.inputs) if is_made_here and is_read_only else None
