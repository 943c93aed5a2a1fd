"""`torch.jit.upgraders`: tables of changed operators for old archives, as far as scripts use them.

In: entries (the version since which an operator behaves differently, its old schema, the function with the old
behaviour).  Out: the tables.  Additions are only stored; archives are read by `engine.serialize.upgrade.upgraders`
alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from engine.ir.parser import parse_ir
from engine.lang.errors import ArgumentError, IRError
from engine.serialize.upgrade.upgraders import upgrader_graphs
from engine.torch.compiled.facade import wrap


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
    for name, text in content.items():
        try:
            parse_ir(text)
        except IRError as error:
            raise ArgumentError(f"the upgrader '{name}' is no graph: {error}") from None
    _ADDED.update(content)


def remove(content: Mapping[str, str]) -> None:
    """Remove added upgraders."""
    for name in content:
        _ADDED.pop(name, None)


def dump() -> dict[str, Any]:
    """Name -> graph of every upgrader."""
    added = {name: parse_ir(text) for name, text in _ADDED.items()}
    return {name: wrap(graph) for name, graph in {**upgrader_graphs(), **added}.items()}


def size() -> int:
    """The number of upgraders."""
    return len(dump())
