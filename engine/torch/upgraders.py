"""`torch.jit.upgraders`: what old archives mean by operators, as far as scripts ask.

In: entries (from which version on an operator means something else, its old schema, the function that does what it
did).  Out: the tables.  What is added is kept and shown; archives are read by
`engine.serialize.upgrade.upgraders` alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from engine.ir.parser import parse_ir
from engine.lang.errors import ArgumentError, IRError
from engine.serialize.upgrade.upgraders import upgrader_graphs
from engine.torch.facade import wrap


class Entry(NamedTuple):
    """An operator changed its meaning at that version; archives before have the old schema."""

    bumped_at_version: int
    upgrader_name: str
    old_schema: str


_ENTRIES: Final[dict[str, list[Entry]]] = defaultdict(list)
_ADDED: Final[dict[str, str]] = {}


def add_entry(op_name: str, entry: Entry) -> None:
    """Keep an entry for the operator."""
    _ENTRIES[op_name].append(entry)


def remove_entry(op_name: str) -> None:
    """Forget the entries of the operator."""
    _ENTRIES.pop(op_name, None)


def entries() -> dict[str, list[Entry]]:
    """What was added, by operator."""
    return {name: list(found) for name, found in _ENTRIES.items()}


def populate(content: Mapping[str, str]) -> None:
    """Add upgraders: name -> text of the graph.  Raises ArgumentError for what is no graph."""
    for name, text in content.items():
        try:
            parse_ir(text)
        except IRError as error:
            raise ArgumentError(f"the upgrader '{name}' is no graph: {error}") from None
    _ADDED.update(content)


def remove(content: Mapping[str, str]) -> None:
    """Forget upgraders that were added."""
    for name in content:
        _ADDED.pop(name, None)


def dump() -> dict[str, Any]:
    """Every upgrader's graph, by name."""
    added = {name: parse_ir(text) for name, text in _ADDED.items()}
    return {name: wrap(graph) for name, graph in {**upgrader_graphs(), **added}.items()}


def size() -> int:
    """How many upgraders there are."""
    return len(dump())
