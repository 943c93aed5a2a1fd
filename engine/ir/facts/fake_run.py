"""Infers an operator's results by running it on small stand-in tensors.

In: a node and what is known of its inputs.  Out: what is known of its outputs.  Stand-ins are tensors of zeros, so only
operators whose results have a shape and dtype that no element decides are asked, none that draws random numbers or
writes, and only where what they take and make stays small.  An operator that refuses its stand-ins says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values import xp
from engine.aten.values.libraries import as_strided
from engine.aten.values.tensor import Tensor, from_numpy
from engine.ir.constants import NOT_CONSTANT, tensor_type_of
from engine.ir.facts.tensors import Facts, is_complete, is_fixed_list, known_value, ranked, tensor_of
from engine.ir.graph import Node, Value
from engine.ir.ops import has_side_effects, is_nondeterministic, op_of, writes
from engine.lang.types import ListType, TensorType

_MOST_ELEMENTS: Final = 1 << 14
_MOST_MADE: Final = 1 << 20
_NO_LIMIT: Final = 1 << 62

Found = list[TensorType | list[TensorType] | None]
"""For each output: what is known of a tensor, or of each tensor of a list."""


def is_pointwise(op: Op) -> bool:
    """True if each element of the result depends on one element of each input only."""
    return op.scalar is not None or (op.functional is not None and op.functional.scalar is not None)


def pointwise_dtype(node: Node, op: Op, facts: Facts) -> Any:
    """The dtype that a pointwise operator gives, or None: it depends on dtypes and on who has no dimensions."""
    types = [tensor_of(value, facts) for value in node.inputs if isinstance(value.type, TensorType)]
    if any(type.dtype is None for type in types):
        return None
    if any(type.sizes is None for type in types) and len({type.dtype for type in types}) > 1:
        return None
    arguments = [_tiny(value, facts) for value in node.inputs]
    found = None if any(each is NOT_CONSTANT for each in arguments) else _run(node, op, arguments)
    return found[0].dtype if found and isinstance(found[0], TensorType) else None


def probe(node: Node, facts: Facts) -> Found | None:
    """Facts about the outputs if everything is known of the inputs, else None."""
    op = op_of(node)
    if op is None or not _may_be_run(node, op):
        return None
    arguments = [_stand_in(value, facts) for value in node.inputs]
    if any(argument is NOT_CONSTANT for argument in arguments) or not _is_small(arguments):
        return None
    return _run(node, op, arguments)


def _may_be_run(node: Node, op: Op) -> bool:
    """True if the operator's results have a form that no element decides, and running it is seen by nobody."""
    if op.data_dependent or node.namespace != "aten" or op.schema.is_vararg:
        return False
    return not (has_side_effects(node) or is_nondeterministic(node) or writes(node))


def probe_ranks(node: Node, facts: Facts) -> Found | None:
    """The ranks and dtypes of the outputs whatever the sizes are; None where those of the inputs are not known.

    The operator is run with several sizes, those that it refuses left out: a dimension that goes if its size is 1
    leaves the rank unknown.
    """
    op = op_of(node)
    if op is None or not _may_be_run(node, op):
        return None
    types = [tensor_of(value, facts) for value in node.inputs if isinstance(value.type, TensorType)]
    rest = [known_value(value, facts) for value in node.inputs if not isinstance(value.type, TensorType)]
    if any(each is NOT_CONSTANT for each in rest) or any(type.dtype is None or type.sizes is None for type in types):
        return None
    found = [_run(node, op, [_of_size(value, size, facts) for value in node.inputs]) for size in _SIZES]
    return [_agreed(outputs) for outputs in zip(*filter(None, found), strict=True)] or None


_SIZES: Final = (1, 2, 3)


def _of_size(value: Value, size: int, facts: Facts) -> Any:
    if not isinstance(value.type, TensorType):
        return known_value(value, facts)
    type = tensor_of(value, facts)
    return _zeros(replace(type, sizes=(size,) * len(type.sizes or ()), strides=None))


def _agreed(found: Sequence[TensorType | list[TensorType] | None]) -> TensorType | None:
    """The rank and dtype that all have; None for lists, whose lengths depend on sizes."""
    types = [each for each in found if isinstance(each, TensorType)]
    if len(types) < len(found) or len({type.dtype for type in types}) > 1:
        return None
    ranks = {type.sizes and len(type.sizes) for type in types}
    return ranked(types[0]) if len(ranks) == 1 else TensorType(types[0].dtype)


def _run(node: Node, op: Op, arguments: Sequence[Any]) -> Found | None:
    try:
        result = op.compiled.run(*arguments)
    except Exception:
        # What does not fit together is the program's to meet when it runs.
        return None
    outputs = [result] if len(node.outputs) == 1 else list(result or ())
    return [_described(output) for output in outputs] if len(outputs) == len(node.outputs) else None


def _described(output: Any) -> TensorType | list[TensorType] | None:
    if isinstance(output, Tensor):
        return replace(tensor_type_of(output), requires_grad=None, device=None)
    if isinstance(output, (list, tuple)) and output and all(isinstance(each, Tensor) for each in output):
        return [replace(tensor_type_of(each), requires_grad=None, device=None) for each in output]
    return None


def _tiny(value: Value, facts: Facts) -> Any:
    """One element in as many dimensions; numbers count by their type only."""
    if isinstance(value.type, TensorType):
        type = tensor_of(value, facts)
        return _zeros(replace(type, sizes=(1,) * len(type.sizes or (0,)) if type.sizes != () else (), strides=None))
    found = known_value(value, facts)
    return _ANY_NUMBER.get(str(value.type), NOT_CONSTANT) if found is NOT_CONSTANT else found


_ANY_NUMBER: Final[dict[str, Any]] = {"int": 1, "float": 1.0, "complex": 1j, "bool": True}


def _stand_in(value: Value, facts: Facts) -> Any:
    if isinstance(value.type, TensorType):
        return _whole(tensor_of(value, facts))
    if isinstance(value.type, ListType) and isinstance(value.type.element, TensorType):
        if not is_fixed_list(value):
            return NOT_CONSTANT
        parts = [_whole(tensor_of(part, facts)) for part in value.node.inputs]
        return NOT_CONSTANT if any(part is NOT_CONSTANT for part in parts) else parts
    found = known_value(value, facts)
    return NOT_CONSTANT if isinstance(found, Tensor) else found


def _whole(type: TensorType) -> Any:
    """Zeros as the type tells them, or NOT_CONSTANT where it does not tell enough."""
    if type.dtype is None or type.sizes is None or type.strides is None or not is_complete(type.sizes):
        return NOT_CONSTANT
    extent = 1 + sum((size - 1) * step for size, step in zip(type.sizes, type.strides, strict=True) if size and step)
    return _zeros(type) if extent <= _MOST_ELEMENTS and prod(_ints(type.sizes)) <= _MOST_ELEMENTS else NOT_CONSTANT


def _zeros(type: TensorType) -> Tensor:
    assert type.dtype is not None
    sizes, dtype = tuple(_ints(type.sizes or ())), xp.numpy_dtype(type.dtype)
    if type.strides is None:
        return from_numpy(np.zeros(sizes, dtype))
    steps = tuple(step * dtype.itemsize for step in _ints(type.strides))
    extent = 1 + sum((size - 1) * step for size, step in zip(sizes, _ints(type.strides), strict=True) if size)
    return from_numpy(as_strided(np.zeros(max(extent, 1), dtype), sizes, steps))


def _ints(sizes: Iterable[int | None]) -> list[int]:
    return [size or 0 for size in sizes]


def _is_small(arguments: Sequence[Any]) -> bool:
    """May the results be made?  Numbers may be sizes: what they could make together has to be small, too."""
    made = 1
    for argument in arguments:
        numbers = argument if isinstance(argument, (list, tuple)) else [argument]
        for number in numbers:
            made *= abs(number) if isinstance(number, int) and 1 < abs(number) < _NO_LIMIT else 1
    return made <= _MOST_MADE
