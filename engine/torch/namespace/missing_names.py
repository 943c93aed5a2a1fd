"""Names that a module does not define: lazy imports from other modules, and errors for unknown ones.

In: a module's name, and the name.  Out: the object that another module defines, or an AttributeError with the nearest
known name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from engine.lang.errors import did_you_mean


class UnknownNameError(AttributeError):
    """An unknown name; the nearest known one is computed when the message is read, since imports try names first."""

    def __init__(self, name: str, module: str, known: Callable[[], Iterable[str]]) -> None:
        super().__init__(f"module '{module}' has no attribute '{name}'", name=name)
        self._known = known

    def __str__(self) -> str:
        hint = "".join(f"; {h}" for h in did_you_mean(str(self.name), self._known()))
        return f"{super().__str__()}{hint}"


_NOWHERE: Final[Mapping[str, str]] = {}


def refuse_unknown_names(
    module: str, homes: Mapping[str, str] = _NOWHERE, refused: Mapping[str, str] = _NOWHERE
) -> None:
    """Give a module a `__getattr__` that raises UnknownNameError, and that imports names on first use.

    `homes` maps names to the modules that define them; the last part of a module's own name stands for the module, and
    `module:other` for a name that is `other` there.  `refused` maps names to the words with which their use is refused.
    The functions are added at run time instead of being defined in the module, since type checkers would then accept
    any name.
    """
    namespace = vars(sys.modules[module])

    def public() -> list[str]:
        own = (name for name in namespace if not name.startswith("_"))
        return sorted({*own, *(name for name in (*homes, *refused) if not name.startswith("__"))})

    def find(name: str) -> Any:
        value = _found(name, module, homes, refused)
        if value is None:
            raise UnknownNameError(name, module, tuple if name.startswith("__") else public)
        namespace[name] = value
        return value

    namespace["__getattr__"] = find
    if homes or refused:
        namespace["__dir__"] = public


def _found(name: str, module: str, homes: Mapping[str, str], refused: Mapping[str, str]) -> Any:
    """The object that the name stands for, in the tables or as a module of its own; None for an unknown name."""
    if name in homes:
        home, _, other = homes[name].partition(":")
        found = import_module(home)
        return found if not other and home.endswith(f".{name}") else getattr(found, other or name)
    if name in refused:
        public = module.removeprefix("engine.")
        return import_module("engine.torch.namespace.refused_names").refused(f"{public}.{name}", refused[name])
    if name.startswith("__"):
        return None
    return import_module("engine.torch.other_modules").find(f"{module}.{name}")
