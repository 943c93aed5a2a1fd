"""Objects of classes that are not written in TorchScript: their state as data.

In: the state that a pickle has for such an object.  Out: the object, with the state and the type of that, which it is
saved with again.  Classes that are built in check their state; of others nothing is known but what the pickle tells:
the type of a list stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from engine.aten.values.ivalue import CustomObject, EnumValue, Object
from engine.aten.values.quantizer import is_quantized, present
from engine.aten.values.tensor import Tensor
from engine.ir.constants import type_of
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.records import dataclass
from engine.lang.types import ANY, BOOL, FLOAT, INT, TENSOR, ListType, TupleType, Type
from engine.serialize.pickling.read import PickleGlobal, PickleRefusal
from engine.serialize.pickling.value_types import misfit

if TYPE_CHECKING:
    from engine.aten import prepacked
    from engine.aten.quantized import packed
else:
    packed = deferred("engine.aten.quantized.packed")
    prepacked = deferred("engine.aten.prepacked")

ReadType = Callable[[str], Type]
"""Reads an annotation of the archive; raises EngineError."""
_LISTS: Final = {"build_intlist": INT, "build_doublelist": FLOAT, "build_boollist": BOOL, "build_tensorlist": TENSOR}
_MODULE: Final = "torch.jit._pickle"
_PLAIN: Final = (int, float, complex, str, type(None), scalars.device, Object, EnumValue)
MOST_PARTS: Final = 10_000
"""A tuple whose type would have more parts is taken for anything: tuples of tuples get big from little text."""


@dataclass(slots=True, eq=False)
class StateTypes:
    """Types that a pickle states for its lists and dicts; recorded once an object may need them."""

    _noted: dict[int, tuple[Any, Type | str]] = field(default_factory=dict)
    _is_on: bool = False
    _asked: int = 0

    def begin(self, names: dict[tuple[str, str], Any]) -> None:
        """From now on, the builders of lists note what they make; `names` are what global names stand for."""
        if self._is_on:
            return
        self._is_on = True
        for name, element in _LISTS.items():
            names[_MODULE, name] = self._noting(names[_MODULE, name], ListType(element))
        names[_MODULE, "restore_type_tag"] = self._noting(names[_MODULE, "restore_type_tag"], None)

    def _noting(self, builder: PickleGlobal, type: Type | None) -> PickleGlobal:
        build = builder.call
        assert build is not None

        def call(*args: Any) -> Any:
            value = build(*args)
            self._noted[id(value)] = (value, type if type is not None else args[1])
            return value

        return PickleGlobal(builder.name, call)

    def type_of(self, value: Any, read_type: ReadType | None) -> Type:
        """The type of a state.  Raises EngineError for a tag that is no type."""
        _, noted = self._noted.get(id(value), (None, None))
        if isinstance(noted, str):
            return read_type(noted) if read_type is not None else ANY
        if noted is not None:
            return noted
        self._asked += 1
        if type(value) is tuple and self._asked < MOST_PARTS:
            return TupleType(tuple(self.type_of(each, read_type) for each in value))
        if isinstance(value, Tensor):
            return TENSOR
        return type_of(value) if isinstance(value, _PLAIN) else ANY


def fill_custom(instance: CustomObject, state: Any, types: StateTypes, read_type: ReadType | None) -> None:
    """Give the object its state.  Raises PickleRefusal, OperatorError for one that its class cannot have."""
    known = packed.CLASSES.get(instance.type) or prepacked.CLASSES.get(instance.type)
    if known is None:
        instance.state, instance.state_type = state, types.type_of(state, read_type)
        return
    wrong = misfit(state, known.state_type)
    if wrong is not None:
        raise PickleRefusal(f"the state of a '{instance.type.qualname}': {wrong}")
    instance.state, instance.state_type = state, known.state_type
    instance.content = known.read(state)


def notice_quantized(value: Any) -> None:
    """Operators have to look for quantized tensors from when a program can reach one."""
    todo, met = [value], set[int]()
    while todo:
        part = todo.pop()
        if id(part) in met:
            continue
        met.add(id(part))
        if isinstance(part, Tensor):
            if is_quantized(part.array):
                present()
        elif isinstance(part, dict):
            todo += part.values()
        elif isinstance(part, (list, tuple)):
            todo += part
