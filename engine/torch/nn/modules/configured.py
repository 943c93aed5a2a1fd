"""Modules whose constructor only takes settings.

In: a class whose annotated attributes are its settings, in the order of the constructor's arguments, with their
defaults: `alpha: float = 1.0`.  Out: the class with its constructor, `__constants__` and `extra_repr`.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any, TypeVar, dataclass_transform

from engine.torch.nn.modules.module import Module

M = TypeVar("M", bound=type[Module])


@dataclass_transform()
def configured(cls: M) -> M:
    """Give the class what it does not define itself.  The constructor raises TypeError as functions do."""
    names = tuple(vars(cls).get("__annotations__", ()))
    kind = Parameter.POSITIONAL_OR_KEYWORD
    signature = Signature([Parameter(name, kind, default=vars(cls).get(name, Parameter.empty)) for name in names])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}{signature}: {error}") from None
        given.apply_defaults()
        for name, value in given.arguments.items():
            setattr(self, name, value)

    def extra_repr(self: Any) -> str:
        shown = {name: getattr(self, name) for name in names}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items() if name != "inplace" or value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    for name in names:
        if name in vars(cls):
            delattr(cls, name)
    for made in (__init__, extra_repr):
        if made.__name__ not in vars(cls):
            setattr(cls, made.__name__, made)
    cls.__constants__ = names  # type: ignore[attr-defined]
    return cls
