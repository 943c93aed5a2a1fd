"""The modules inside a module, by dotted path, however they share each other.

In: a module's object.  Out: pairs of path and object, the outermost first.  A shared module has several paths, as in
state dicts.  Where the module that holds it is shared too, paths multiply, and 60 such levels would never
finish: `each_module` yields every module once, under its first path; `every_place` all paths, except
that of an entangled tree it yields each module once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.aten.values.ivalue import Object

MOST_PLACES: Final = 100_000
"""More places than this, and more than four for each module, are entangled."""
_BEYOND: Final = 1 << 62


def is_module(value: object) -> bool:
    return isinstance(value, Object) and value.type.is_module


def joined(*names: str) -> str:
    """The names, and paths, as one path; "" stands for no step."""
    return ".".join(filter(None, names))


def children_of(module: Object) -> list[tuple[str, Object]]:
    """The modules that are its attributes, by name."""
    return [
        (attribute.name, value)
        for attribute, value in zip(module.type.attributes, module.slots, strict=False)
        if is_module(value)
    ]


def each_module(module: Object, prefix: str = "") -> Iterator[tuple[str, Object]]:
    """This module and all inside, each once, under the first of its paths."""
    return _walk(module, prefix, set())


def every_place(module: Object, prefix: str = "") -> Iterator[tuple[str, Object]]:
    """This module and all inside, at every place; of what `is_entangled`, each once."""
    return _walk(module, prefix, set() if is_entangled(module) else None)


def _walk(module: Object, prefix: str, seen: set[int] | None) -> Iterator[tuple[str, Object]]:
    waiting = [(prefix, module)]
    while waiting:
        path, each = waiting.pop()
        if seen is not None:
            if id(each) in seen:
                continue
            seen.add(id(each))
        yield path, each
        waiting += ((joined(path, name), child) for name, child in reversed(children_of(each)))


def is_entangled(module: Object) -> bool:
    """True if the tree of submodules is too large to list, or a module contains itself."""
    places: dict[int, int] = {}
    opened: set[int] = set()
    waiting = [module]
    while waiting:
        each = waiting[-1]
        children = [child for _, child in children_of(each)]
        unknown = [child for child in children if id(child) not in places]
        if not unknown:
            places[id(each)] = min(1 + sum(places[id(child)] for child in children), _BEYOND)
            waiting.pop()
        elif id(each) in opened:  # a cycle: the module contains itself
            return True
        else:
            opened.add(id(each))
            waiting += unknown
    return places[id(module)] > max(MOST_PLACES, 4 * len(places))
