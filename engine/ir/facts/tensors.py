"""Facts about tensors known without running a program, and the meet of two facts.

In: values, and what is known of tensors so far.  Out: `TensorType`s, which hold None where nothing is known, and what
is known of numbers: the constants, and the sizes that a program asks of tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from engine.aten.kernels.shapes import Sizes, normalized_index
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.ir.ops import schema_of
from engine.lang.types import TENSOR, TensorType

Facts = Mapping[Value, TensorType]
FIELDS: Final = ("dtype", "sizes", "strides", "requires_grad", "device")


def common(a: TensorType, b: TensorType) -> TensorType:
    """The fact that holds for both."""
    kept: dict[str, Any] = {name: getattr(a, name) if getattr(a, name) == getattr(b, name) else None for name in FIELDS}
    kept["sizes"] = common_sizes(a.sizes, b.sizes)
    return TensorType(**kept)


def common_sizes(a: Sizes | None, b: Sizes | None) -> Sizes | None:
    """The sizes that both have, None for those that differ; None when not even the ranks agree."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def refined(type: TensorType, facts: TensorType, fields: Iterable[str]) -> TensorType:
    """The type with those of the facts that are known."""
    return replace(type, **{name: getattr(facts, name) for name in fields if getattr(facts, name) is not None})


def ranked(type: TensorType) -> TensorType:
    """The type with unknown sizes in the same number of dimensions."""
    return replace(type, sizes=None if type.sizes is None else (None,) * len(type.sizes), strides=None)


def is_complete(sizes: Sizes | None) -> bool:
    """True if every size is known."""
    return sizes is not None and None not in sizes


def contiguous_strides(sizes: Sizes) -> tuple[int, ...]:
    """The strides, counted in elements, of a tensor of complete sizes that is laid out row by row."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size or 1, 1)
    return tuple(reversed(strides))


def is_contiguous(type: TensorType) -> bool:
    """True if the tensor is known to be contiguous."""
    if type.sizes is None or type.strides is None or not is_complete(type.sizes):
        return False
    wanted = contiguous_strides(type.sizes)
    return all(size == 1 or mine == given for size, mine, given in zip(type.sizes, wanted, type.strides, strict=True))


class Known:
    """The arguments of one node, by the names that its schema gives them, as far as they are known."""

    def __init__(self, node: Node, facts: Facts) -> None:
        self.node, self.facts = node, facts
        schema = schema_of(node)
        names = [argument.name for argument in schema.arguments] if schema is not None else []
        self._inputs = dict(zip(names, node.inputs, strict=False))

    def __contains__(self, name: str) -> bool:
        return name in self._inputs

    def tensor(self, name: str) -> TensorType:
        """The fact about a tensor."""
        return tensor_of(self._inputs[name], self.facts) if name in self._inputs else TENSOR

    def sizes(self, name: str) -> Sizes | None:
        return self.tensor(name).sizes

    def tensors(self) -> list[TensorType]:
        """The facts about every tensor input of the node."""
        return [tensor_of(value, self.facts) for value in self.node.inputs if isinstance(value.type, TensorType)]

    def elements(self, name: str) -> list[TensorType] | None:
        """The facts about the tensors of a list, or None if their number is unknown."""
        if name not in self._inputs or not is_fixed_list(self._inputs[name]):
            return None
        return [tensor_of(value, self.facts) for value in self._inputs[name].node.inputs]

    def value(self, name: str) -> Any:
        """The value of an argument; NOT_CONSTANT when it is not known."""
        return known_value(self._inputs[name], self.facts) if name in self._inputs else NOT_CONSTANT

    def flag(self, name: str) -> bool | None:
        """The value of a bool, None when it is not known; False if there is no such argument."""
        found = self.value(name) if name in self else False
        return found if isinstance(found, bool) else None

    def integer(self, name: str) -> int | None:
        found = self.value(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def integers(self, name: str) -> list[int | None] | None:
        """The numbers of a list, None for those that are not known; None when it is not known how many there are."""
        if name not in self._inputs:
            return None
        made = self._inputs[name].node
        if is_fixed_list(self._inputs[name]):
            return [_integer(known_value(value, self.facts)) for value in made.inputs]
        found = known_value(self._inputs[name], self.facts)
        return list(found) if isinstance(found, (list, tuple)) else sizes_asked(made, self.facts)


def tensor_of(value: Value, facts: Facts) -> TensorType:
    """The fact about a tensor; an empty fact for other values."""
    found = facts.get(value, value.type)
    return found if isinstance(found, TensorType) else TENSOR


def is_fixed_list(value: Value) -> bool:
    """True if the value is a list made in the graph that only operators read, without writing to it or keeping it."""
    return value.node.kind == "prim::ListConstruct" and all(_only_looks(user, at) for user, at in value.uses)


def _only_looks(user: Node, offset: int) -> bool:
    if user.kind == "prim::ListUnpack":
        return True
    schema = schema_of(user) if user.namespace == "aten" else None
    return schema is not None and offset < len(schema.arguments) and schema.arguments[offset].alias is None


def known_value(value: Value, facts: Facts) -> Any:
    """The value of what is no tensor: a constant, a list of such, a size that is known; else NOT_CONSTANT."""
    node = value.node
    if node.kind == "prim::TupleConstruct" or is_fixed_list(value):
        parts = [known_value(part, facts) for part in node.inputs]
        return NOT_CONSTANT if any(part is NOT_CONSTANT for part in parts) else parts
    if node.kind == "aten::dim":
        sizes = tensor_of(node.inputs[0], facts).sizes
        return NOT_CONSTANT if sizes is None else len(sizes)
    if node.kind == "aten::size" and len(node.inputs) == 2:
        return _size_asked(node, facts)
    found = sizes_asked(node, facts)
    if found is not None:
        return NOT_CONSTANT if None in found else found
    return constant_value(value)


def sizes_asked(node: Node, facts: Facts) -> list[int | None] | None:
    """The sizes that `aten::size(x)` gives, as far as they are known."""
    if node.kind != "aten::size" or len(node.inputs) != 1:
        return None
    sizes = tensor_of(node.inputs[0], facts).sizes
    return None if sizes is None else list(sizes)


def _size_asked(node: Node, facts: Facts) -> Any:
    sizes, index = tensor_of(node.inputs[0], facts).sizes, _integer(constant_value(node.inputs[1]))
    at = None if sizes is None or index is None else normalized_index(index, len(sizes))
    size = None if at is None or sizes is None else sizes[at]
    return NOT_CONSTANT if size is None else size


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
