"""Deferred regions: runs of nodes whose operators are recorded for gradients together, when one is asked for.

In: a graph, and which of its nodes could run on arrays.  Out: `DeferredRegions`: for each node that may be recorded
later how its history is made, and which nodes lie in one region.  A region is a run of such nodes in one block; it
ends before a node that needs their results as tensors, may write to memory, or branches.

Ways to make the history of a node (see `aten.autograd.deferred`): `attach`: the operator's own node, with values that
were computed before; `several`: the same for operators with several results; `rerun`: the operator runs again, on
tensors; `none`: nothing can be differentiated; and those of single operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from engine.aten.autograd.formula import Read
from engine.aten.autograd.record import Recipe, recipe_of
from engine.aten.autograd.specialised_recording import attacher, can_attach
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.unboxed import entry, tensor_in
from engine.aten.values import promotion, xp
from engine.executor.bytecode.operations import OPERATIONS
from engine.executor.codegen.templates import asks
from engine.ir import order
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import op_of

ATTACH: Final = "attach"
SEVERAL: Final = "several"
RERUN: Final = "rerun"
NONE: Final = "none"
CONVOLUTION: Final = "convolution"
FIRST: Final = "first"
DROPOUT: Final = "dropout"
_BY_VALUE: Final = (RERUN, CONVOLUTION, FIRST, DROPOUT)
"""Ways that read the values of all tensors."""


_RECORDED_AS: Final = {"convolution": CONVOLUTION, "mul.Tensor": DROPOUT}
"""Operators whose history stands for that of others; of any other one, its first result."""


class Way(NamedTuple):
    """The way the autograd history of a node is made later, and by which operator."""

    kind: str
    op: Op


def way_of(node: Node) -> Way | None:
    """None where the node has to be recorded when it runs."""
    op = op_of(node)
    if op is None or node.kind in OPERATIONS or not _keeps_floats(op, node):
        return None
    if op.recorded_as:
        return Way(_RECORDED_AS.get(op.recorded_as, FIRST), entry(op.recorded_as))
    if op.unboxed is not None:
        return Way(RERUN, op) if op.recomputed and _is_certain(node) else None
    recipe = recipe_of(op)
    if not any(tensor_in(a.type) for a in op.schema.arguments) or op.dtype == "bool":
        return Way(NONE, op)
    if not recipe.is_plain or not recipe.is_known:
        return None
    return Way(ATTACH if can_attach(op) else SEVERAL, op)


def _rank_of(number: int) -> int:
    """The rank of the dtype of that number; integers that stand for numbers are no floats."""
    found = xp.BY_NUMBER.get(number)
    return 0 if found is None else promotion.rank(found)


def _keeps_floats(op: Op, node: Node) -> bool:
    """True if the result is floating point whenever the tensors it depends on are."""
    for argument, value in zip(op.schema.arguments, node.inputs, strict=False):
        if argument.name == "dtype":
            number = constant_value(value)
            if number is NOT_CONSTANT or (number is not None and _rank_of(number) < 2):
                return False
    return not op.name.endswith(("::type_as", "to.other", "view.dtype")) and op.qualified_name != "aten::to.other"


def _is_certain(node: Node) -> bool:
    """True if the node draws no random numbers."""
    if node.kind != "aten::scaled_dot_product_attention":
        return True
    return constant_value(node.inputs[4]) in (0, 0.0)


_ATTACHERS: Final[dict[Op, Callable[..., object] | None]] = {}


def attacher_of(op: Op) -> Callable[..., object] | None:
    if op not in _ATTACHERS:
        _ATTACHERS[op] = attacher(op)
    return _ATTACHERS[op]


class DeferredRegions:
    """`number` says in which region a node lies, `ways` how its history is made; `ends` are nodes before which a
    region ends."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.number: dict[Node, int] = {}
        self.ends: set[Node] = set()
        ways = ((node, way_of(node)) for node in graph.all_nodes())
        self.ways: dict[Node, Way] = {node: way for node, way in ways if way is not None}
        self._pure: dict[Node, bool] = {}
        self._count = 0

    def settle(self, joins: Callable[[Node], bool]) -> None:
        """Find the regions of the nodes that run on arrays, or pass them on."""
        self.number.clear()
        self.ends.clear()
        self._settle(self.graph.block, joins)

    def _settle(self, block: Block, joins: Callable[[Node], bool]) -> None:
        self._count += 1
        for node in block.nodes():
            if joins(node):
                self.number[node] = self._count
            elif not self._leaves_region_alone(node):
                self.ends.add(node)
                for inner in node.blocks:
                    self._settle(inner, joins)
                self._count += 1

    def _leaves_region_alone(self, node: Node) -> bool:
        """True if the node neither reads nor writes the region's tensors."""
        if not self._is_pure(node):
            return False
        within = [node, *(inner for block in node.blocks for inner in order.walk(block))]
        return all(asks(inner) or not any(map(self._is_inside, inner.inputs)) for inner in within)

    def _is_inside(self, value: Value) -> bool:
        return self.number.get(value.node) == self._count and tensor_in(value.type)

    def _is_pure(self, node: Node) -> bool:
        """True if the node writes to no tensor and returns none from its branches."""
        known = self._pure.get(node)
        if known is None:
            known = self._pure[node] = self._writes_nothing(node)
        return known

    def _writes_nothing(self, node: Node) -> bool:
        if node.blocks:
            inner = (each for block in node.blocks for each in block.nodes())
            is_branch = node.kind in ("prim::If", "prim::Loop")
            gives_tensors = any(tensor_in(value.type) for value in node.outputs)
            return is_branch and not gives_tensors and all(n not in self.ways and self._is_pure(n) for n in inner)
        if node.kind in WRITES_NOTHING:
            return True
        op = op_of(node) if node.kind not in OPERATIONS else None
        if op is None or op.side_effects or any(a.is_write for a in op.schema.arguments):
            return False
        return not node.kind.endswith(("::wait", "set_grad_enabled", "requires_grad_"))

    def reads(self, value: Value) -> bool:
        """True if the history of some node reads the value's elements, not just its shape and dtype."""
        way = self.ways.get(value.node)
        if way is not None and way.kind in (ATTACH, SEVERAL):
            place = value.node.outputs.index(value)
            if any(r.is_result and r.by_value and r.place == place for r in _reads(recipe_of(way.op))):
                return True
        return any(self._reads_input(use.user, use.offset) for use in value.uses)

    def _reads_input(self, user: Node, offset: int) -> bool:
        if user.kind == "prim::ListConstruct":
            return any(self._reads_input(use.user, use.offset) for use in user.output.uses)
        way = self.ways.get(user)
        if way is None:
            return False
        if way.kind in _BY_VALUE:
            return True
        return any(not r.is_result and r.by_value and r.place == offset for r in _reads(recipe_of(way.op)))

    def depends(self, node: Node) -> list[Value]:
        """The tensors, or lists of them, that the node's results depend on differentiably."""
        way = self.ways[node]
        tensors = [value for value in node.inputs if tensor_in(value.type)]
        if way.kind in (ATTACH, SEVERAL, CONVOLUTION, FIRST):
            formulas = recipe_of(way.op).formulas
            return [value for i, value in enumerate(node.inputs) if i in formulas and tensor_in(value.type)]
        return [] if way.kind == NONE else tensors


def _reads(recipe: Recipe) -> list[Read]:
    return [read for formula in recipe.formulas.values() for read in formula.reads]


WRITES_NOTHING: Final = frozenset(
    f"prim::{kind}"
    for kind in "Constant GetAttr RaiseException ListConstruct TupleConstruct TupleUnpack TupleIndex ListUnpack "
    "unchecked_cast unchecked_unwrap_optional isinstance Uninitialized".split()
) | {"aten::__is__", "aten::__isnot__"}
"""Kinds of nodes without an operator that write to no tensor."""
