"""`torch.jit.upgraders`: tables of changed operators for old archives, as far as scripts use them.

In: entries (the version since which an operator behaves differently, its old schema, the function with the old
behaviour).  Out: the tables.  Additions are only stored; archives are read by `engine.serialize.upgrade.upgraders`
alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.ir.parser import parse_ir
from engine.lang.errors import ArgumentError, IRError
from engine.serialize.upgrade.upgraders import upgrader_graphs


class Entry(NamedTuple):
    """A change of an operator: the version of the change, the upgrader, and the schema in older archives."""

    bumped_at_version: int
    upgrader_name: str
    old_schema: str


_ENTRIES: Final[dict[str, list[Entry]]] = defaultdict(list)
_ADDED: Final[dict[str, str]] = {}


def add_entry(op_name: str, entry: Entry) -> None:
    """Add an entry for the operator."""
    _ENTRIES[op_name].append(entry)


def remove_entry(op_name: str) -> None:
    """Remove the entries of the operator."""
    _ENTRIES.pop(op_name, None)


def entries() -> dict[str, list[Entry]]:
    """Operator -> its added entries."""
    return {name: list(found) for name, found in _ENTRIES.items()}


def populate(content: Mapping[str, str]) -> None:
    """Add upgraders: name -> text of the graph.  Raises ArgumentError for an invalid graph."""
    graphs: dict[str, str] = {}
    for name, text in content.items():
        try:
            graphs[name] = str(parse_ir(text))
        except IRError as error:
            raise ArgumentError(f"the upgrader '{name}' is no graph: {error}") from None
    _ADDED.update(graphs)


def remove(content: Mapping[str, str]) -> None:
    """Remove added upgraders."""
    for name in content:
        _ADDED.pop(name, None)


def dump() -> dict[str, str]:
    """Name -> text of the graph of every upgrader."""
    return {**{name: str(graph) for name, graph in upgrader_graphs().items()}, **_ADDED}


def size() -> int:
    """The number of upgraders."""
    return len(dump())
