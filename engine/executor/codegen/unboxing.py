"""Operators on tensors in generated code: on bare arrays where that is known to be the same.

In: a graph specialised for its arguments.  Out: `Unboxing`: which values are arrays that no tensor wraps, and for a
node an expression over arrays.  Two kinds of node give arrays: pointwise operators whose operands are known to be all
float32 or all float64, written out as calls of numpy's functions; and every other operator that makes one new tensor,
as a call of its kernel.  Both need that no gradient is recorded.  Where the library has the operator, its function is
called instead (`fuser.library.serving`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from engine.aten.dispatch.compile import array_kernel
from engine.aten.dispatch.layouts import operands_of
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.unboxed import kind_of
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.operations import CALLEES, OPERATIONS
from engine.executor.codegen.fusion_groups import DIFFERENTIABLE_GRAPH, is_fusion_group
from engine.executor.codegen.pointwise_expressions import Name, Operand, has_pointwise_expression, pointwise_expression
from engine.executor.codegen.templates import asks
from engine.fuser.library import serving
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node, Use, Value
from engine.ir.ops import op_of
from engine.lang.types import FLOAT, INT, TensorType, Type

FLOATS: Final = (xp.FLOAT32, xp.FLOAT64)
_UNKNOWN_EFFECTS: Final = ("prim::PythonOp", "prim::fork", "aten::wait", "prim::awaitable_wait", *CALLEES)
_OF_MATRICES: Final = frozenset(f"aten::{name}" for name in "mm bmm addmm baddbmm cat stack".split())
"""Operators whose result has a dimension."""
_GIVES_MATRICES: Final = frozenset({"aten::mm", "aten::addmm"})
_OF_KNOWN_RANK: Final = {"aten::t": ((2,), "{0}.T")}
"""Operators of floats -> the ranks with which their kernels come to an expression of numpy, but for errors."""


class Facts(NamedTuple):
    """Facts about a tensor: dtype, that it has at least one dimension, and its rank."""

    dtype: xp.NumpyDtype | None = None
    has_dims: bool = False
    rank: int | None = None


_NOTHING: Final = Facts()


class Unboxing:
    """Facts of the tensors of a graph, and its nodes on arrays: none if it `records` gradients.

    `reseats`: a tensor may come to show another array, so that it has to be asked for it every time.
    """

    def __init__(self, graph: Graph, records: bool) -> None:
        self.records = records
        self.reseats = any(map(may_give_another_array, graph.all_nodes()))
        self._facts: dict[Value, Facts] = {}
        self._unboxed: set[Node] = set()
        self._parts: set[Node] = set()
        self._lists: set[Node] = set()
        self._joined: set[Value] = set()
        self._natives: dict[Node, Callable[..., Any] | None] = {}
        for value in graph.inputs:
            self._facts[value] = _facts_of(value.type)
        self._analyze(graph.block, 0)
        if not records:
            self._settle_views(graph.block)

    def facts(self, value: Value) -> Facts:
        constant = constant_value(value)
        if isinstance(constant, Tensor):
            return Facts(constant.array.dtype, constant.array.ndim > 0, constant.array.ndim)
        return self._facts.get(value, _NOTHING)

    def is_unboxed(self, node: Node) -> bool:
        """True if the node returns a bare array."""
        return node in self._unboxed

    def gives_parts(self, node: Node) -> bool:
        """True if the node returns a list of arrays, which a `prim::ListUnpack` takes apart."""
        return node in self._parts

    def gives_list(self, node: Node) -> bool:
        """True if the node makes a list of arrays for operators on arrays."""
        return node in self._lists

    def is_joined(self, value: Value) -> bool:
        """True if the value, an output of an If, is an array."""
        return value in self._joined

    def takes_array(self, use: Use) -> bool:
        """True if the use takes the bare array."""
        user = use.user
        if asks(user):
            return use.offset == 0
        if user.kind == "prim::Return":
            owner = user.block.owner if user.block is not None else None
            return owner is not None and owner.kind == "prim::If" and owner.outputs[use.offset] in self._joined
        if user in self._lists:
            return True
        if user not in self._unboxed:
            return False
        op = op_of(user)
        assert op is not None
        wanted = kind_of(op.schema.arguments[use.offset].type)
        return wanted == "tensor" or (wanted == "tensor?" and isinstance(user.inputs[use.offset].type, TensorType))

    # -- analysis

    def _settle_views(self, block: Block) -> None:
        """Views that only arrays are made of are arrays, too: no tensor has to know whose memory they show.  So are
        lists of what operators on arrays take, and what comes out of branches for them."""
        for node in reversed(list(block.nodes())):
            if node.kind == "prim::If":
                self._joined.update(value for value in node.outputs if self._is_array(value))
                for inner in node.blocks:
                    self._settle_views(inner)
            elif node.kind == "prim::Loop":
                self._settle_views(node.blocks[0])
            elif node.kind == "prim::ListConstruct":
                if self._are_taken_together(node):
                    self._lists.add(node)
            else:
                self._settle_view(node)

    def _settle_view(self, node: Node) -> None:
        op = op_of(node) if node.kind not in OPERATIONS else None
        if op is not None and op.kernel is not None and gives_parts(op) and self._are_arrays(node):
            self._unboxed.add(node)
            self._parts.add(node)
        elif op is not None and gives_one_view(op) and all(map(self.takes_array, node.output.uses)):
            self._unboxed.add(node)

    def _is_array(self, value: Value) -> bool:
        if self.reseats or not isinstance(value.type, TensorType) or not value.has_uses or _may_be_missing(value):
            return False
        return all(map(self.takes_array, value.uses))

    def _are_taken_together(self, node: Node) -> bool:
        """True if only operators on arrays use the list."""
        if self.reseats or not self._holds_tensors(node):
            return False
        return bool(node.output.uses) and all(map(self._takes_list, node.output.uses))

    def _holds_tensors(self, node: Node) -> bool:
        return bool(node.inputs) and all(isinstance(value.type, TensorType) for value in node.inputs)

    def _takes_list(self, use: Use) -> bool:
        op = op_of(use.user) if use.user in self._unboxed and use.user not in self._parts else None
        return op is not None and bool(kind_of(op.schema.arguments[use.offset].type) == "tensor[]")

    def _are_arrays(self, node: Node) -> bool:
        """True if the parts are only taken out of their list and used as arrays."""
        users = [use.user for use in node.output.uses]
        if len(users) != 1 or users[0].kind != "prim::ListUnpack" or not isinstance(node.inputs[0].type, TensorType):
            return False
        return all(map(self.takes_array, (use for value in users[0].outputs for use in value.uses)))

    def _analyze(self, block: Block, depth: int) -> None:
        for node in block.nodes():
            if node.kind == "prim::If":
                for inner in node.blocks:
                    self._analyze(inner, depth)
                self._join(node.outputs, *(inner.outputs for inner in node.blocks))
            elif node.kind == "prim::Loop":
                self._analyze_loop(node, depth)
            elif node.kind == "prim::ListUnpack":
                self._analyze_unpacking(node)
            elif is_fusion_group(node) or node.kind == DIFFERENTIABLE_GRAPH:
                self._analyze_group(node, depth)
            else:
                self._analyze_node(node)

    def _analyze_loop(self, node: Node, depth: int) -> None:
        """Carried values keep their facts if an iteration keeps them."""
        (body,) = node.blocks
        carried, initial, given = body.inputs[1:], node.inputs[2:], body.outputs[1:]
        if depth < 3:
            self._join(carried, initial)
            self._analyze(body, depth + 1)
        before = [self.facts(value) for value in carried]
        self._join(carried, initial, given)
        if depth >= 3 or before != [self.facts(value) for value in carried]:
            for value in carried:
                self._facts[value] = _NOTHING
            self._analyze(body, depth + 1)
        self._join(node.outputs, carried)

    def _analyze_group(self, node: Node, depth: int) -> None:
        inner: Graph = node.attr("Subgraph")
        self._join(inner.inputs, node.inputs)
        self._analyze(inner.block, depth)
        self._join(node.outputs, inner.outputs)

    def _join(self, targets: Iterable[Value], *sources: Iterable[Value]) -> None:
        for target, *values in zip(targets, *sources, strict=True):
            facts = [self.facts(value) for value in values]
            dtype = _one(each.dtype for each in facts)
            self._facts[target] = Facts(dtype, all(each.has_dims for each in facts), _one(each.rank for each in facts))

    def _analyze_node(self, node: Node) -> None:
        op = op_of(node)
        if op is None or node.kind in OPERATIONS:
            return
        if len(node.outputs) != 1 or not isinstance(node.output.type, TensorType):
            if not self.records and gives_several(op):
                self._unboxed.add(node)
            return
        given = [v for v in node.inputs if isinstance(v.type, TensorType)]
        tensors = [self.facts(v) for v in given]
        alike = bool(tensors) and self._common_float(given) is not None
        plain = self._dtype_of_expression(op, node) is not None
        if not self.records and makes_new_tensor(op):
            self._unboxed.add(node)
        if plain:
            dtype = xp.BOOL if op.dtype == "bool" else tensors[0].dtype
            ranks = [f.rank for f in tensors if f.rank is not None]
            rank = max(ranks) if len(ranks) == len(tensors) else None
            self._facts[node.output] = Facts(dtype, any(f.has_dims for f in tensors), rank)
        elif alike and _keeps_dtype(op, node):
            rank = 2 if op.name in _GIVES_MATRICES else tensors[0].rank if op.name == "aten::t" else None
            self._facts[node.output] = Facts(tensors[0].dtype, op.name in _OF_MATRICES or bool(rank), rank)

    def _analyze_unpacking(self, node: Node) -> None:
        """Parts of a tensor have its dtype, and those of `chunk` and `split` as many dimensions."""
        parts = node.inputs[0].node
        op = op_of(parts)
        if op is None or not gives_parts(op):
            return
        whole = self.facts(parts.inputs[0])
        for value in node.outputs:
            known = whole if parts.kind != "aten::unbind" else Facts(whole.dtype)
            self._facts[value] = known

    def _numbers_are_real(self, node: Node) -> bool:
        return all(isinstance(v.type, TensorType) or v.type in (INT, FLOAT) for v in node.inputs)

    # -- text

    def text(self, node: Node, array: Operand, value: Operand, name: Name) -> tuple[str, bool]:
        """The node as an expression over arrays, and whether it surely gives an array (numpy gives a number for what
        has no dimension)."""
        op = op_of(node)
        assert op is not None
        if (native := self._native(node)) is not None:
            return f"{name(op.name.removeprefix('aten::'), native)}({self._arguments(op, node, array, value)})", True
        if (dtype := self._dtype_of_expression(op, node)) is not None:
            return pointwise_expression(op, node, dtype, array, value, name), self.facts(node.output).has_dims
        tensors = [v for v in node.inputs if isinstance(v.type, TensorType)]
        alike = bool(tensors) and self._common_float(tensors) is not None
        ranks, form = _OF_KNOWN_RANK.get(op.qualified_name, ((), ""))
        if form and alike and not self.reseats and tuple(self.facts(v).rank for v in tensors) == ranks:
            return form.format(*map(array, tensors)), True
        if (part := _part_form(node, array, value)) is not None:
            return part, True
        return f"{name('kernel', body_of(op))}({self._arguments(op, node, array, value)})", False

    def _arguments(self, op: Op, node: Node, array: Operand, value: Operand) -> str:
        given = zip(op.schema.arguments, node.inputs, strict=True)
        return ", ".join(self._operand(kind_of(argument.type), v, array, value) for argument, v in given)

    def _native(self, node: Node) -> Callable[..., Any] | None:
        """The library's function of the node; None where there is none."""
        if node not in self._natives:
            op = op_of(node)
            assert op is not None
            is_one = makes_new_tensor(op) and not self.records
            self._natives[node] = serving.array_entry(op, _array_of(op)) if is_one else None
        return self._natives[node]

    def operands(self, node: Node) -> list[Value]:
        """The operands that decide how the result of a pointwise expression lies, the first to be asked first; none
        where that is settled: nothing has two dimensions, or a kernel sees to it."""
        op = op_of(node)
        if op is None or not self.is_unboxed(node) or self._native(node) or self._dtype_of_expression(op, node) is None:
            return []
        found = [node.inputs[op.schema.index_of(name) or 0] for name in operands_of(op)]
        return [] if all(self.has_one_order(value) for value in found) else found

    def has_one_order(self, value: Value) -> bool:
        """True if the tensor surely lies in C order, as it has one dimension at most."""
        rank = self.facts(value).rank
        return rank is not None and rank <= 1

    def _dtype_of_expression(self, op: Op, node: Node) -> xp.NumpyDtype | None:
        """The dtype of the operands of a node that is written out as calls of numpy's functions; None for others."""
        if not has_pointwise_expression(op) or not self._numbers_are_real(node):
            return None
        return self._common_float([v for v in node.inputs if isinstance(v.type, TensorType)])

    def _common_float(self, tensors: Sequence[Value]) -> xp.NumpyDtype | None:
        """The floating dtype that all have, if they have one."""
        dtype = _one(self.facts(v).dtype for v in tensors)
        return dtype if dtype in FLOATS else None

    def _operand(self, kind: str, v: Value, array: Operand, value: Operand) -> str:
        if kind == "tensor" or (kind == "tensor?" and isinstance(v.type, TensorType)):
            return array(v)
        if v.node in self._lists or constant_value(v) is None:
            return value(v)
        return _ARRAYS[kind].format(value(v))


def _part_form(node: Node, array: Operand, value: Operand) -> str | None:
    """Numpy's own way to take a part, where that is the same but for errors."""
    dim = constant_value(node.inputs[1]) if node.kind in ("aten::select", "aten::slice") else None
    if type(dim) is not int or not 0 <= dim < 8:
        return None
    if node.kind == "aten::select":
        return f"{array(node.inputs[0])}[{':, ' * dim}{value(node.inputs[2])}, ...]"
    step = constant_value(node.inputs[4])
    if type(step) is not int or step <= 0:
        return None
    start, end = map(value, node.inputs[2:4])
    return f"{array(node.inputs[0])}[{':, ' * dim}{start}:{end}{f':{step}' if step != 1 else ''}]"


def _may_be_missing(value: Value) -> bool:
    """True if the value may be undefined on another path of the program."""
    node = value.node
    if node.kind == "prim::If":
        place = node.outputs.index(value)
        return any(_may_be_missing(block.outputs[place]) for block in node.blocks)
    if not isinstance(value.type, TensorType):
        return True
    return node.kind in ("prim::Uninitialized", "prim::Loop", "prim::Constant") or "Undefined" in node.kind


_kernel = cache(array_kernel)


def body_of(op: Op) -> Callable[..., Any]:
    """The function that computes the operator from arrays."""
    return _kernel(op) if op.unboxed is None else op.unboxed(op)


def _array_of(op: Op) -> Callable[..., Any]:
    """The same, made when it is first called, with an array where numpy gives a number."""
    return _shared_array_of(op) if op.unboxed is None else _new_array_of(op)


def _new_array_of(op: Op) -> Callable[..., Any]:
    made: list[Callable[..., Any]] = []

    def run(*args: Any) -> Any:
        if not made:
            made.append(body_of(op))
        return np.asarray(made[0](*args))

    return run


_shared_array_of = cache(_new_array_of)


def may_give_another_array(node: Node) -> bool:
    """May the node make a tensor show another array?  Writes into the array it has do not."""
    if node.kind in _UNKNOWN_EFFECTS:
        return True
    if node.kind in OPERATIONS or node.namespace == "prim":
        return False
    op = op_of(node)
    return op is None or op.inplace_view or any(a.is_write and a.kwarg_only for a in op.schema.arguments)


def _keeps_dtype(op: Op, node: Node) -> bool:
    """True if the result has the dtype of the tensors, which all have one floating dtype."""
    asked = (constant_value(v) for a, v in zip(op.schema.arguments, node.inputs, strict=True) if a.name == "dtype")
    return op.dtype in ("same", "floats", "agreed", "sum") and all(dtype is None for dtype in asked)


def makes_new_tensor(op: Op) -> bool:
    """True if the operator is one function of arrays that returns one tensor with memory of its own."""
    return _gives_tensors(op, (1,)) and op.gives_new


def gives_one_view(op: Op) -> bool:
    """True if the operator is one function of arrays whose result may be a view of an argument."""
    return _gives_tensors(op, (1,)) and not op.gives_new


def gives_parts(op: Op) -> bool:
    """True if the result is a list of views of the first argument."""
    arguments, returns = op.schema.arguments, op.schema.returns
    is_of_tensor = bool(arguments) and isinstance(arguments[0].type, TensorType)
    return is_of_tensor and not op.gives_new and len(returns) == 1 and kind_of(returns[0].type) == "tensor[]"


def gives_several(op: Op) -> bool:
    """True if the operator is one function of arrays that returns several tensors with memory of their own."""
    return _gives_tensors(op, range(2, 10)) and op.gives_new


def _gives_tensors(op: Op, counts: Container[int]) -> bool:
    schema = op.schema
    is_function = op.scalar is not None or op.kernel is not None or op.unboxed is not None
    if not is_function or schema.is_vararg or len(schema.returns) not in counts:
        return False
    if not all(isinstance(each.type, TensorType) for each in schema.returns):
        return False
    return all(not a.is_write and kind_of(a.type) is not None for a in schema.arguments)


def _facts_of(type: Type) -> Facts:
    if not isinstance(type, TensorType) or type.dtype not in xp.TO_NUMPY:  # None, or one that is not computed with
        return _NOTHING
    return Facts(xp.TO_NUMPY[type.dtype], bool(type.sizes), None if type.sizes is None else len(type.sizes))


def _one(values: Iterable[Any]) -> Any:
    """The common value of all, or None."""
    first, *others = values
    return first if all(each is first or each == first for each in others) else None


_ARRAYS: Final = {
    "": "{0}", "tensor": "{0}", "tensor?": "(None if {0} is None else {0}.array)", "tensor[]": "[t.array for t in {0}]",
}  # fmt: skip
