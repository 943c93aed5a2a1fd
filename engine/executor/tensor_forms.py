"""Operators on tensors in generated code: on bare arrays where that is known to be the same.

In: a graph specialised for its arguments.  Out: `TensorForms`: which values are arrays that no tensor wraps, and for a
node an expression over arrays.  Two kinds of node give arrays: pointwise operators whose operands are known to be all
float32 or all float64, written out as calls of numpy's functions; and every other operator that makes one new tensor,
as a call of its kernel.  Both need that no gradient is recorded.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from engine.aten import xp
from engine.aten.body import array_kernel
from engine.aten.expression import array_code
from engine.aten.op import Op
from engine.aten.pointwise import FUNCTIONS, OF_FLOATS
from engine.aten.tensor import Tensor
from engine.executor.operations import CALLEES, OPERATIONS
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node, Use, Value
from engine.ir.ops import op_of
from engine.lang.schema import Argument
from engine.lang.types import FLOAT, INT, ListType, OptionalType, TensorType, Type

Name = Callable[[str, Any], str]
"""Binds an object in the environment of the generated code; the first argument says what it is."""
Operand = Callable[[Value], str]

FLOATS: Final = (xp.FLOAT32, xp.FLOAT64)
FLOAT_FORMS: Final[dict[str, str]] = {
    "sub": "subtract(x, y)", "neg": "negative(x)", "relu": "maximum(x, 0)",
    "sigmoid": "reciprocal(add(exp(negative(x)), 1))",
    "fmod": "fmod(x, y)",
}  # fmt: skip
"""What functions of `pointwise` come to for arrays of floats, in terms of numpy's."""
_RESEATING: Final = frozenset(
    f"aten::{name}_"
    for name in "unsqueeze squeeze t transpose swapaxes swapdims resize resize_as set as_strided moveaxis".split()
)
_UNKNOWN_EFFECTS: Final = ("prim::PythonOp", "prim::fork", "aten::wait", *CALLEES)
_FUNCTIONS: Final = {**FUNCTIONS, **OF_FLOATS}
KEEPS_DTYPE: Final = frozenset(
    f"aten::{name}"
    for name in "mm bmm matmul addmm baddbmm linear softmax log_softmax t transpose permute view reshape flatten "
    "squeeze unsqueeze expand expand_as select slice narrow clone contiguous detach cat stack sum mean cumsum dropout "
    "alias layer_norm batch_norm conv1d conv2d max_pool2d avg_pool2d adaptive_avg_pool2d where clamp gelu".split()
)
"""Operators of floats whose result has the dtype of their tensors when those have one dtype."""
_OF_MATRICES: Final = frozenset(f"aten::{name}" for name in "mm bmm addmm baddbmm cat stack".split())
"""Those whose result has a dimension."""
_GIVES_MATRICES: Final = frozenset({"aten::mm", "aten::addmm"})
_OF_KNOWN_RANK: Final = {"aten::mm": ((2, 2), "{0}.dot({1})"), "aten::t": ((2,), "{0}.T")}
"""Operators of floats -> the ranks with which their kernels come to an expression of numpy, but for errors."""
_PARTS: Final = frozenset(f"aten::{name}" for name in "chunk split split_with_sizes tensor_split unbind".split())
"""Operators that give a list of parts of a tensor."""


class Facts(NamedTuple):
    """What is known of a tensor: its dtype, that it has a dimension at least, and how many it has."""

    dtype: xp.NumpyDtype | None = None
    has_dims: bool = False
    rank: int | None = None


_NOTHING: Final = Facts()


class TensorForms:
    """Facts of the tensors of a graph, and its nodes on arrays.  `enabled`: no gradient is recorded for new results;
    `native`: nodes that functions of tensors do; `reseats`: a tensor may come to show another array, so that it has to
    be asked for it every time."""

    def __init__(self, graph: Graph, enabled: bool, native: Collection[Node] = ()) -> None:
        self.enabled = enabled
        self.native = native
        self.reseats = any(map(may_give_another_array, graph.all_nodes()))
        self._facts: dict[Value, Facts] = {}
        self._raw: set[Node] = set()
        self._parts: set[Node] = set()
        for value in graph.inputs:
            self._facts[value] = _facts_of(value.type)
        self._analyze(graph.block, 0)
        if enabled:
            self._settle_views(graph)

    def facts(self, value: Value) -> Facts:
        constant = constant_value(value)
        if isinstance(constant, Tensor):
            return Facts(constant.array.dtype, constant.array.ndim > 0, constant.array.ndim)
        return self._facts.get(value, _NOTHING)

    def is_raw(self, node: Node) -> bool:
        """Does the node give an array?"""
        return node in self._raw

    def gives_parts(self, node: Node) -> bool:
        """Does the node give a list of arrays, which a `prim::ListUnpack` takes apart?"""
        return node in self._parts

    def takes_array(self, use: Use) -> bool:
        """Does the use want the bare array?"""
        if use.user not in self._raw:
            return False
        op = op_of(use.user)
        assert op is not None
        return isinstance(op.schema.arguments[use.offset].type, TensorType)

    # -- analysis

    def _settle_views(self, graph: Graph) -> None:
        """Views that only arrays are made of are arrays, too: no tensor has to know whose memory they show."""
        for node in reversed(list(graph.all_nodes())):
            op = op_of(node) if node.kind not in OPERATIONS else None
            if op is not None and op.kernel is not None and node.kind in _PARTS and self._are_arrays(node):
                self._raw.add(node)
                self._parts.add(node)
            elif op is not None and gives_one_view(op) and all(map(self.takes_array, node.output.uses)):
                self._raw.add(node)

    def _are_arrays(self, node: Node) -> bool:
        """Are the parts only taken out of their list, and then only taken as arrays?"""
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
            else:
                self._analyze_node(node)

    def _analyze_loop(self, node: Node, depth: int) -> None:
        """What is carried keeps its facts if an iteration does."""
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
            return
        tensors = [self.facts(v) for v in node.inputs if isinstance(v.type, TensorType)]
        alike = bool(tensors) and tensors[0].dtype in FLOATS and all(f.dtype is tensors[0].dtype for f in tensors)
        written_out = is_written_out(op) and alike and self._numbers_are_real(node)
        stays_native = node in self.native and not (written_out and self._takes_arrays(node))
        if self.enabled and makes_new_tensor(op) and not stays_native:
            self._raw.add(node)
        if written_out:
            dtype = xp.BOOL if op.dtype == "bool" else tensors[0].dtype
            ranks = [f.rank for f in tensors if f.rank is not None]
            rank = max(ranks) if len(ranks) == len(tensors) else None
            self._facts[node.output] = Facts(dtype, any(f.has_dims for f in tensors), rank)
        elif alike and op.name in KEEPS_DTYPE:
            rank = 2 if op.name in _GIVES_MATRICES else tensors[0].rank if op.name == "aten::t" else None
            self._facts[node.output] = Facts(tensors[0].dtype, op.name in _OF_MATRICES or bool(rank), rank)

    def _takes_arrays(self, node: Node) -> bool:
        """Are several operands arrays?  To make tensors of them takes longer than numpy's function does."""
        return sum(value.node in self._raw for value in node.inputs) > 1

    def _analyze_unpacking(self, node: Node) -> None:
        """Parts of a tensor have its dtype, and those of `chunk` and `split` as many dimensions."""
        parts = node.inputs[0].node
        if parts.kind not in _PARTS or not parts.inputs:
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
        tensors = [v for v in node.inputs if isinstance(v.type, TensorType)]
        dtype = self.facts(tensors[0]).dtype if tensors else None
        alike = dtype in FLOATS and all(self.facts(v).dtype is dtype for v in tensors)
        if dtype is not None and alike and is_written_out(op) and self._numbers_are_real(node):
            return _written_out(op, node, dtype, array, value, name), self.facts(node.output).has_dims
        ranks, form = _OF_KNOWN_RANK.get(op.qualified_name, ((), ""))
        if form and alike and not self.reseats and tuple(self.facts(v).rank for v in tensors) == ranks:
            return form.format(*map(array, tensors)), True
        kernel = name("kernel", _kernel(op))
        arguments = [
            _ARRAYS[_kind(argument.type)].format(array(v) if _kind(argument.type) == "tensor" else value(v))
            for argument, v in zip(op.schema.arguments, node.inputs, strict=True)
        ]
        return f"{kernel}({', '.join(arguments)})", False


_kernel = cache(array_kernel)


def may_give_another_array(node: Node) -> bool:
    """May the node make a tensor show another array?  Writes into the array it has do not."""
    if node.kind in _UNKNOWN_EFFECTS or node.kind in _RESEATING:
        return True
    if node.kind in OPERATIONS or node.namespace == "prim":
        return False
    op = op_of(node)
    return op is None or any(argument.is_write and argument.kwarg_only for argument in op.schema.arguments)


def makes_new_tensor(op: Op) -> bool:
    """Is it one kernel on arrays that gives one tensor with memory of its own?"""
    return _gives_one_tensor(op) and op.schema.returns[0].alias is None


def gives_one_view(op: Op) -> bool:
    """Is it one kernel on arrays whose result may show the memory of an argument?"""
    return _gives_one_tensor(op) and op.schema.returns[0].alias is not None


def _gives_one_tensor(op: Op) -> bool:
    schema = op.schema
    if (op.scalar is None and op.kernel is None) or schema.is_vararg or len(schema.returns) != 1:
        return False
    if not isinstance(schema.returns[0].type, TensorType):
        return False
    return all(not a.is_write and _kind(a.type) is not None for a in schema.arguments)


def is_written_out(op: Op) -> bool:
    """Is it a pointwise operator whose expression holds as it stands for arrays of one dtype of floats?"""
    return (
        op.scalar is not None
        and ":" not in str(op.dtype)
        and isinstance(op.schema.arguments[0].type, TensorType)
        and all(_kind(a.type) in ("tensor", "") for a in op.schema.arguments)
    )


def _facts_of(type: Type) -> Facts:
    if not isinstance(type, TensorType) or type.dtype is None:
        return _NOTHING
    return Facts(xp.TO_NUMPY[type.dtype], bool(type.sizes), None if type.sizes is None else len(type.sizes))


def _one(values: Iterable[Any]) -> Any:
    """What they all are, or None."""
    first, *others = values
    return first if all(each is first or each == first for each in others) else None


_ARRAYS: Final = {
    "": "{0}", "tensor": "{0}", "tensor?": "(None if {0} is None else {0}.array)", "tensor[]": "[t.array for t in {0}]",
}  # fmt: skip


def _kind(type: Type) -> Any:
    """tensor, tensor? or tensor[]; empty for what holds no tensor; None for what holds them otherwise."""
    if isinstance(type, TensorType):
        return "tensor"
    if isinstance(type, (OptionalType, ListType)) and isinstance(type.element, TensorType):
        return "tensor?" if isinstance(type, OptionalType) else "tensor[]"
    return None if any(_kind(part) != "" for part in type.contained()) else ""


# -- written out


def _written_out(op: Op, node: Node, dtype: xp.NumpyDtype, array: Operand, value: Operand, name: Name) -> str:
    assert op.scalar is not None
    known: dict[str, Any] = {}
    texts: dict[str, str] = {}
    arrays: list[str] = []
    for argument, v in zip(op.schema.arguments, node.inputs, strict=True):
        constant = constant_value(v)
        if isinstance(v.type, TensorType):
            arrays.append(argument.name)
            texts[argument.name] = array(v)
        elif type(constant) in (int, float) and constant == constant and abs(constant) != np.inf:
            known[argument.name] = 1 if _is_unit(argument, constant) else constant
        else:
            texts[argument.name] = value(v)
    tree = ast.parse(array_code(op.scalar, arrays, known), mode="eval")
    return ast.unparse(_Numpy(dtype, texts, name).visit(tree))


def _is_unit(argument: Argument, constant: float) -> bool:
    return argument.kwarg_only and argument.default == 1 and constant == 1


class _Numpy(ast.NodeTransformer):
    """Puts numpy's functions, the operands and constant arrays into an expression."""

    def __init__(self, dtype: xp.NumpyDtype, texts: dict[str, str], name: Name) -> None:
        self.dtype, self.texts, self.name = dtype, texts, name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        text = self.texts.get(node.id)
        operand: ast.AST = node if text is None else ast.parse(text, mode="eval").body
        return operand

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name)
        arguments: list[Any] = [self.visit(argument) for argument in node.args]
        form = FLOAT_FORMS.get(node.func.id)
        if form is None:
            return self._call(_FUNCTIONS[node.func.id], arguments)
        expanded: ast.AST = self._expand(ast.parse(form, mode="eval").body, dict(zip("xy", arguments, strict=False)))
        return expanded

    def _expand(self, form: Any, arguments: dict[str, Any]) -> Any:
        if isinstance(form, ast.Name):
            return arguments[form.id]
        if isinstance(form, ast.Constant):
            return form
        return self._call(getattr(np, form.func.id), [self._expand(part, arguments) for part in form.args])

    def _call(self, function: Any, arguments: list[Any]) -> ast.Call:
        if isinstance(function, np.ufunc):
            arguments = [self._constant(each) if _is_number(each) else each for each in arguments]
        bound = self.name(getattr(function, "__name__", "function"), function)
        return ast.Call(ast.Name(bound, ast.Load()), arguments, [])

    def _constant(self, number: Any) -> ast.AST:
        """The number as an array of the dtype, which numpy takes without a detour, if that is just the same."""
        value = ast.literal_eval(number)
        with np.errstate(over="ignore"):
            held = np.array(value, self.dtype)
        exact = type(value) is float or held.item() == value
        constant: ast.AST = ast.Name(self.name("constant", held), ast.Load()) if exact else number
        return constant


def _is_number(node: Any) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
