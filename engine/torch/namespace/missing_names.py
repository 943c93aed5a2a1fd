"""Names that a module lacks: where they are, or what is said when one is asked for.

In: a module's name, and the name.  Out: what another module has by it, or an AttributeError that names the nearest
name there is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from engine.lang.errors import did_you_mean


class UnknownNameError(AttributeError):
    """There is no such name; the nearest is looked for when this is read, as importing a submodule asks first."""

    def __init__(self, name: str, module: str, known: Callable[[], Iterable[str]]) -> None:
        super().__init__(f"module '{module}' has no attribute '{name}'", name=name)
        self._known = known

    def __str__(self) -> str:
        hint = "".join(f"; {h}" for h in did_you_mean(str(self.name), self._known()))
        return f"{super().__str__()}{hint}"


_NOWHERE: Final[Mapping[str, str]] = {}


def refuse_unknown_names(module: str, homes: Mapping[str, str] = _NOWHERE) -> None:
    """Let a module whose names are all written in it name the nearest one when it lacks what is asked for.

    `homes` are the names that are in other modules, which are imported when one of them is asked for; a module's own
    last name stands for the module.  The functions are put into the module, not defined in it: type checkers would
    take every name to exist.
    """
    namespace = vars(sys.modules[module])

    def public() -> list[str]:
        return sorted({*(name for name in namespace if not name.startswith("_")), *homes})

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise UnknownNameError(name, module, tuple if name.startswith("__") else public)
        found = import_module(home)
        value = found if home.endswith(f".{name}") else getattr(found, name)
        namespace[name] = value
        return value

    namespace["__getattr__"] = find
    if homes:
        namespace["__dir__"] = public
