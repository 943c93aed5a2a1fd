"""Names that a module lacks: what is said when one is asked for.

In: a module's name, and the name.  Out: an AttributeError that names the nearest name there is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import NoReturn

from engine.lang.errors import did_you_mean


class UnknownNameError(AttributeError):
    """There is no such name; the nearest is looked for when this is read, as importing a submodule asks first."""

    def __init__(self, name: str, module: str, known: Callable[[], Iterable[str]]) -> None:
        super().__init__(f"module '{module}' has no attribute '{name}'", name=name)
        self._known = known

    def __str__(self) -> str:
        hint = "".join(f"; {h}" for h in did_you_mean(str(self.name), self._known()))
        return f"{super().__str__()}{hint}"


def refuse_unknown_names(module: str) -> None:
    """Let a module whose names are all written in it name the nearest one when it lacks what is asked for.

    The function is put into the module, not defined in it: type checkers would take every name to exist.
    """
    namespace = vars(sys.modules[module])

    def public() -> Iterable[str]:
        return [name for name in namespace if not name.startswith("_")]

    def refuse(name: str) -> NoReturn:
        raise UnknownNameError(name, module, tuple if name.startswith("__") else public)

    namespace["__getattr__"] = refuse
