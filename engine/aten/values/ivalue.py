"""The values that programs compute, as Python objects.

int, float, complex, bool, str, None, list, dict and tuple stand for themselves (programs are statically
typed, so nothing more is stored with them), tensors are `engine.aten.values.tensor.Tensor`, devices
`engine.lang.scalars.device`; a dtype is its number.  The rest is here.
"""

from __future__ import annotations

from typing import Any

from engine.lang.records import dataclass
from engine.lang.types import ANY, ClassType, EnumType, Type


class Object:
    """An instance of a script class or module: a slot for each attribute of its type."""

    __slots__ = ("__weakref__", "slots", "type")

    def __init__(self, type: ClassType, slots: list[Any] | None = None) -> None:
        self.type = type
        self.slots: list[Any] = [None] * len(type.attributes) if slots is None else slots

    def get(self, name: str) -> Any:
        """The attribute's value; raises AttributeError."""
        slot = self.type.slot(name)
        if slot is None:
            raise AttributeError(f"'{self.type.qualname}' has no attribute '{name}'")
        return self.slots[slot]

    def set(self, name: str, value: Any) -> None:
        slot = self.type.slot(name)
        if slot is None:
            raise AttributeError(f"'{self.type.qualname}' has no attribute '{name}'")
        if slot >= len(self.slots):
            self.slots += [None] * (slot + 1 - len(self.slots))
        self.slots[slot] = value

    def __repr__(self) -> str:
        return f"<{self.type.qualname} object>"


class CustomObject(Object):
    """An instance of a class that is not written in TorchScript: the state that it is pickled as.

    `content` is the object that operators build from the state at first use; `state_type` the state's type.
    """

    __slots__ = ("content", "state", "state_type")

    def __init__(self, type: ClassType, state: Any = None, state_type: Type = ANY, content: Any = None) -> None:
        super().__init__(type)
        self.state, self.state_type, self.content = state, state_type, content


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A member of an Enum."""

    type: EnumType
    name: str

    def __str__(self) -> str:
        return f"Enum<{self.type.qualname.rpartition('.')[2]}.{self.name}>"

    @property
    def value(self) -> Any:
        return dict(self.type.members)[self.name]
