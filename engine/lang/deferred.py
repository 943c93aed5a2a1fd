"""Modules that are loaded, members of classes that are written, and regular expressions that are compiled, when they
are first asked for.

In: a module's name.  Out: an object with the module's attributes.  A dialogue pays for what it uses, not for all that
there is, when it starts.  Type checkers and import contracts read the import that stands beside it:

    if TYPE_CHECKING:
        from engine.executor.plans import plan
    else:
        plan = deferred("engine.executor.plans.plan")
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any


class _Deferred:
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<deferred module {self._name!r}>"


def deferred(name: str) -> Any:
    """The attributes of that module, which is imported with the first of them."""
    return _Deferred(name)


@contextmanager
def left_out(name: str) -> Iterator[None]:
    """Import modules here that can do without that one, as where it is not installed."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


class Unwritten:
    """A member of a class that nobody has asked for yet: it puts what `write` makes in its place."""

    __slots__ = ("_name", "_owner", "_write")

    def __init__(self, owner: type, name: str, write: Callable[[], Any]) -> None:
        self._owner, self._name, self._write = owner, name, write

    def __get__(self, instance: Any, kind: type) -> Any:
        made = self._write()
        setattr(self._owner, self._name, made)
        return made.__get__(instance, kind) if hasattr(made, "__get__") else made


def unwritten(owner: type, name: str, write: Callable[[], Any]) -> Any:
    """A member of the class that `write` makes when it is first used.

    A special method is a function from the beginning: Python looks for it itself, and takes one whose descriptor raises
    for one that is missing, even if it was interrupted.
    """
    if name == "__init__" or not (name.startswith("__") and name.endswith("__")):
        return Unwritten(owner, name, write)

    def first(self: Any, /, *args: Any, **named: Any) -> Any:
        return first.written()(self, *args, **named)  # type: ignore[attr-defined]

    def written() -> Any:
        if vars(owner).get(name) is first:
            setattr(owner, name, write())
        return vars(owner)[name]

    first.__name__, first.written = name, written  # type: ignore[attr-defined]
    return first


def member(owner: type, name: str) -> Any:
    """The class's own member, written if it was not; None if it has none."""
    found = vars(owner).get(name)
    if isinstance(found, Unwritten):
        getattr(owner, name)
        return vars(owner)[name]
    written = getattr(found, "written", None)
    return found if written is None else written()


def load(*modules: Any) -> None:
    """Import deferred modules in an idle moment, before something of them is asked for."""
    for module in modules:
        import_module(module._name)


if TYPE_CHECKING:
    pattern_of = re.compile
else:

    class pattern_of:
        """The same as `re.compile`, which explains the arguments: each method is kept here once it is asked for.

        To compile an expression takes a tenth of a millisecond, and most modules that are loaded read no text.
        """

        def __init__(self, *made: Any) -> None:
            self._made = made

        def __getattr__(self, name: str) -> Any:
            found = getattr(re.compile(*self._made), name)
            setattr(self, name, found)
            return found
