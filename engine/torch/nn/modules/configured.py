"""Modules whose constructor only takes settings.

In: a class whose annotated attributes are its settings, in the order of the constructor's arguments, with their
defaults: `alpha: float = 1.0`.  Out: the class with its constructor, `__constants__` and `extra_repr`.  Settings of
type `Tensor | None` become buffers, to programs of the type of what they are.  What is kept of what was given is what
the class's `_settled(settings)` says, if it has one.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any, TypeVar, dataclass_transform

from engine.torch.nn.modules.module import Module

M = TypeVar("M", bound=type[Module])
BUFFER = "Tensor | None"


@dataclass_transform()
def configured(cls: M) -> M:
    """Add a constructor, which raises TypeError as functions do, and the other members that the class lacks."""
    own = vars(cls)
    types = dict(own.get("__annotations__", {}))
    kind = Parameter.POSITIONAL_OR_KEYWORD
    signature = Signature([Parameter(name, kind, default=own.get(name, Parameter.empty)) for name in types])
    settled = getattr(cls, "_settled", dict)
    kept = settled({name: parameter.default for name, parameter in signature.parameters.items()})
    buffers = {name for name in kept if types[name] == BUFFER}
    constants = tuple(name for name in kept if name not in buffers)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}{signature}: {error}") from None
        given.apply_defaults()
        for name, value in settled(given.arguments).items():
            (self.register_buffer if name in buffers else self.__setattr__)(name, value)

    def extra_repr(self: Any) -> str:
        shown = {name: getattr(self, name) for name in constants}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items() if name != "inplace" or value)

    of_method = [Parameter("self", kind), *signature.parameters.values()]
    __init__.__signature__ = Signature(of_method)  # type: ignore[attr-defined]
    for name in types.keys() & own.keys():
        delattr(cls, name)
    for name in buffers:
        del cls.__annotations__[name]
    cls.__init__ = __init__  # type: ignore[method-assign]
    if cls.extra_repr is Module.extra_repr:
        cls.extra_repr = extra_repr  # type: ignore[method-assign]
    cls.__constants__ = constants  # type: ignore[attr-defined]
    return cls
