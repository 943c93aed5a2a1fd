"""The record `traced_inputs.pkl`: the arguments that methods of a module were traced with, as far as their types go.

In: a module, whose traced methods know their examples; or the record.  Out: the value to pickle, whose tensors have
sizes and no elements; or the types by the methods' names.  Only types are taken from such a record: PyTorch writes the
tensors' memory as records without bytes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.values.ivalue import Object
from engine.aten.values.libraries import as_strided
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import TO_NUMPY
from engine.ir.graph import Value
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.errors import ArchiveError, OperatorError
from engine.lang.types import ANY, STR, DictType, ListType, TensorType, TupleType, Type
from engine.passes.pipeline import run_pass
from engine.serialize.pickling.entries import TensorEntry
from engine.serialize.pickling.values import Foreign, TensorParts, describe_pickle

NAME: Final = "traced_inputs"
RECORD: Final = f"{NAME}.pkl"
TYPE: Final = DictType(STR, ListType(ANY))
_TAG: Final = "torch.jit._pickle.restore_type_tag"


def examples_of(module: Object) -> dict[str, list[Any]]:
    """Name -> stand-ins for the example's arguments, of each method that was traced."""
    methods = (each for each in module.type.methods.values() if isinstance(each, Function))
    return {each.name: [_stand_in(type) for type in each.examples] for each in methods if each.examples}


def _stand_in(type: Type) -> Any:
    """A value of that type, as far as it tells sizes; None for others."""
    if isinstance(type, TupleType):
        return tuple(map(_stand_in, type.elements))
    if not isinstance(type, TensorType) or type.dtype is None or type.sizes is None or None in type.sizes:
        return None
    dtype, sizes = TO_NUMPY[type.dtype], [size or 0 for size in type.sizes]
    steps = [step or 0 for step in type.strides or ()]
    if len(steps) != len(sizes) or not all(sizes):
        return Tensor(np.empty(sizes, dtype))
    reach = sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    memory = np.empty(reach + 1, dtype)
    return Tensor(as_strided(memory, sizes, [step * dtype.itemsize for step in steps]))


def restore_shapes(module: Object, record: bytes) -> None:
    """Write into the graphs of the module's methods what the record tells of their inputs, and what follows from it.

    Raises ArchiveError for a record that is damaged, or does not fit the methods.
    """
    found = _untagged(describe_pickle(record, RECORD).value)
    if not isinstance(found, dict):
        raise _damaged("it is no dict")
    for name, arguments in found.items():
        function = module.type.methods.get(name)
        if not isinstance(function, Function) or not isinstance(arguments, list):
            raise _damaged(f"the module has no method {name!r:.60}")
        inputs = function.graph.inputs[1:]
        if len(inputs) != len(arguments):
            raise _damaged(f"'{name}' takes {len(inputs)} arguments, and was traced with {len(arguments)}")
        for value, argument in zip(inputs, arguments, strict=True):
            value.set_type(_narrowed(value, argument))
        function.examples = tuple(value.type for value in inputs)
        run_pass("propagate_input_shapes", function.graph)


def _narrowed(value: Value, argument: Any) -> Type:
    found = _type_of(argument)
    return found if found is not None and found.is_subtype_of(value.type) else value.type


def _type_of(value: Any) -> Type | None:
    """The type of a described value; None where nothing is known of it that its declaration does not say."""
    if isinstance(value, TensorEntry):
        if value.dtype not in scalars.DTYPES:
            return None
        return TensorType(value.dtype, value.shape, value.stride, False, _device(value.storage.location))
    if isinstance(value, tuple):
        parts = [_type_of(each) for each in value]
        return TupleType(tuple(each for each in parts if each)) if all(parts) else None
    return None


def _device(location: str) -> scalars.device:
    try:
        return scalars.device(location)
    except OperatorError as error:
        raise _damaged(f"a tensor lies on {location!r:.40}: {error.message}") from None


def _untagged(value: Any) -> Any:
    """The value with its lists and dicts in the place of what types them."""
    if isinstance(value, Foreign) and value.name == _TAG and len(value.arguments) == 2:
        return _untagged(value.arguments[0])
    if isinstance(value, dict):
        return {name: _untagged(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, TensorParts):
        return type(value)(map(_untagged, value))
    return value


def _damaged(reason: str) -> ArchiveError:
    return ArchiveError(f"the examples of traces are refused: {reason}", record=RECORD)
