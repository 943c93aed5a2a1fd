"""`torch.jit.upgraders`: tables of changed operators for old archives, as far as scripts use them.

In: entries (the version since which an operator behaves differently, its old schema, the upgrader with the old
behaviour), and the graphs of such upgraders.  Out: the tables, which archives are read by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.ir.parser import parse_ir
from engine.lang.errors import ArgumentError, IRError
from engine.lang.schema_parser import parse_schema
from engine.serialize.upgrade.upgraders import ADDED, ADDED_GRAPHS, Added, upgrader_graphs


class Entry(NamedTuple):
    """A change of an operator: the version of the change, the upgrader, and the schema in older archives."""

    bumped_at_version: int
    upgrader_name: str
    old_schema: str


def add_entry(op_name: str, entry: Entry) -> None:
    """Add an entry for the operator.  Raises SchemaError for a schema that cannot be read."""
    added = Added(entry.bumped_at_version, entry.upgrader_name, parse_schema(entry.old_schema))
    ADDED.setdefault(op_name.removeprefix("aten::"), []).append(added)


def remove_entry(op_name: str) -> None:
    """Remove the entries of the operator."""
    ADDED.pop(op_name.removeprefix("aten::"), None)


def entries() -> dict[str, list[Entry]]:
    """Operator -> its added entries."""
    return {
        f"aten::{name}": [Entry(e.below, e.upgrader, str(e.schema)) for e in found] for name, found in ADDED.items()
    }


def populate(content: Mapping[str, str]) -> None:
    """Add upgraders: name -> text of the graph.  Raises ArgumentError for an invalid graph."""
    graphs = {}
    for name, text in content.items():
        try:
            graphs[name] = parse_ir(text)
        except IRError as error:
            raise ArgumentError(f"the upgrader '{name}' is no graph: {error}") from None
    ADDED_GRAPHS.update(graphs)


def remove(content: Mapping[str, str]) -> None:
    """Remove added upgraders."""
    for name in content:
        ADDED_GRAPHS.pop(name, None)


def dump() -> dict[str, str]:
    """Name -> text of the graph of every upgrader."""
    return {name: str(graph) for name, graph in {**upgrader_graphs(), **ADDED_GRAPHS}.items()}


def size() -> int:
    """The number of upgraders."""
    return len(dump())
