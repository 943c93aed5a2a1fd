"""Runs one node when its inputs are known.

In: a node and the values of its inputs.  Out: the values of its outputs, or None when the node cannot be run
now: it fails, or only a running program can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from engine.aten.values.awaits import Await
from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.ir.constants import constant_inputs, set_constant, type_of
from engine.ir.graph import Node, Value
from engine.ir.ops import op_of
from engine.lang.types import NONE, DictType, ListType, OptionalType, TensorType, TupleType, Type, UnionType, members_of

Values = Sequence[Any]
LONGEST_FOLDED: Final = 1 << 16
"""Characters or items: longer texts and lists are made when the program runs."""
_GROWING: Final = frozenset(
    f"aten::{name}" for name in "mul ljust rjust center zfill expandtabs replace join format percentFormat".split()
)
"""Operators whose result may be longer than all that goes in."""


def evaluate(node: Node) -> list[Any] | None:
    """The outputs of a node whose inputs are all constants, else None.  A failing operator gives None, too."""
    inputs = constant_inputs(node)
    if inputs is None or _grows(node, inputs):
        return None
    outputs = _run(node, inputs)
    if outputs is None or len(outputs) != len(node.outputs) or not all(map(can_be_constant, outputs)):
        return None
    return list(outputs)


def _grows(node: Node, inputs: Values) -> bool:
    """Would the result be a text or list too long to compute while compiling?  `"a" * 10**9` is the program's to do."""
    lengths = [len(value) for value in inputs if isinstance(value, (str, list, tuple))]
    if sum(lengths) > LONGEST_FOLDED:
        return True
    if not lengths or node.kind not in _GROWING:
        return False
    counts = (abs(value) for value in inputs if type(value) is int)
    return prod(max(1, n) for n in (*lengths, *counts)) > LONGEST_FOLDED


def can_be_constant(value: Any) -> bool:
    """Objects, awaits, and tensors that need gradients, live only while a program runs."""
    if isinstance(value, Tensor):
        return not value.requires_grad
    if isinstance(value, (list, tuple)):
        return all(map(can_be_constant, value))
    if isinstance(value, dict):
        return all(map(can_be_constant, value.values()))
    return not isinstance(value, (Object, Await))


def insert_result(node: Node, declared: Value, value: Any) -> Value:
    """Put a constant with that value before the node; its type is the most that is known of `declared`."""
    constant = node.graph.create("prim::Constant", (), [result_type(value, declared.type)])
    constant.range = node.range
    set_constant(constant, value)
    return constant.insert_before(node).output


def result_type(value: Any, declared: Type) -> Type:
    """The type of a value that an output of type `declared` turned out to have."""
    if value is None:
        return declared
    if isinstance(value, (list, dict)):
        return _container_type(value, declared)
    if isinstance(value, tuple) and isinstance(declared, TupleType):
        # Only a None that is a result itself keeps the Optional type: one in a tuple is told by its value.
        parts = tuple(map(_part_type, value, declared.elements))
        return TupleType(parts, declared.name, declared.fields, declared.defaults)
    return type_of(value)


def _part_type(value: Any, declared: Type) -> Type:
    return NONE if value is None else result_type(value, declared)


def _container_type(value: Any, declared: Type) -> Type:
    """Python's lists do not tell what they may hold, so the declared type stands, less what the value rules out."""
    if not isinstance(declared, (OptionalType, UnionType)):
        return declared
    wanted = ListType if isinstance(value, list) else DictType
    fitting = [member for member in members_of(declared) if isinstance(member, wanted)]
    return fitting[0] if len(fitting) == 1 else declared


def _run(node: Node, inputs: Values) -> Values | None:
    return _RULES.get(node.kind, _run_operator)(node, inputs)


def _run_operator(node: Node, inputs: Values) -> Values | None:
    op = op_of(node)
    if op is None or op.schema.is_vararg:
        return None
    try:
        result = op.compiled.run(*inputs)
    except Exception:
        # Whatever is wrong with these values is the program's to meet when it runs.
        return None
    return [result] if len(node.outputs) == 1 else result or []


def _tuple_slice(node: Node, inputs: Values) -> Values:
    return [tuple(inputs[0][node.attr("beg") : node.attr("end")])]


def _dict(node: Node, inputs: Values) -> Values:
    return [dict(zip(inputs[::2], inputs[1::2], strict=True))]


def _unpack(node: Node, inputs: Values) -> Values:
    return list(inputs[0])


def _tensor_of_data(node: Node, inputs: Values) -> Values | None:
    """`torch.tensor([])` of a list of tensors is refused when it runs; the empty list itself does not tell."""
    element = node.inputs[0].type
    while isinstance(element, ListType):
        element = element.element
    return None if isinstance(element, TensorType) else _run_operator(node, inputs)


def _isinstance(node: Node, inputs: Values) -> Values | None:
    """Result of `isinstance` where the constant's type decides it; containers count by their declared type."""
    declared = node.inputs[0].type
    known = result_type(inputs[0], declared) if inputs[0] is not None else type_of(None)
    return [any(known.is_subtype_of(type) for type in node.attr("types"))]


_RULES: Final[dict[str, Callable[[Node, Values], Values | None]]] = {
    "prim::TupleConstruct": lambda node, inputs: [tuple(inputs)],
    "prim::ListConstruct": lambda node, inputs: [list(inputs)],
    "prim::DictConstruct": _dict,
    "prim::TupleUnpack": _unpack,
    "prim::ListUnpack": _unpack,
    "prim::TupleIndex": lambda node, inputs: [inputs[0][inputs[1]]],
    "prim::TupleSlice": _tuple_slice,
    "prim::unchecked_cast": lambda node, inputs: [inputs[0]],
    "prim::isinstance": _isinstance,
    "aten::tensor": _tensor_of_data,
}
