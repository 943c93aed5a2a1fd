"""Listings of the session and of the operator table.

In: a pattern.  Out: lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from engine.aten.dispatch import table
from engine.aten.values.submodules import is_module
from engine.lang.counts import counted
from engine.lang.errors import did_you_mean
from tsrepl.session.failures import UsageError
from tsrepl.session.modules import module_node
from tsrepl.session.replies import ModuleReply, Reply, SchemaReply, TextReply, WhoReply
from tsrepl.session.workspace import Workspace

MOST_SCHEMAS: Final = 60
FORCE: Final = "-f"
"""An argument that answers questions before they are asked."""


def who(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%who`."""
    yield WhoReply(workspace.bindings())


def modules(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%modules m [depth]`."""
    text, _, last = argument.rpartition(" ")
    name, depth = (text.strip(), int(last)) if last.isdecimal() and text else (argument, None)
    value = workspace.lookup(name)
    if not is_module(value):
        raise UsageError(f"'{name}' is no module", hints=(f"%graph {name} shows the graph of a function",))
    yield ModuleReply(name, module_node(name, value), depth)


def reset(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%reset [-f]`; doors that are dialogues ask before, unless it is `-f`."""
    if argument not in ("", FORCE):
        raise UsageError(f"%reset takes {FORCE} or nothing", hints=("write %reset",))
    count = len(workspace.bindings())
    workspace.reset()
    yield TextReply(f"forgot {counted(count, 'name')}", "done")


def ops(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%ops [pattern]`: schemas whose operator's name contains or matches the pattern."""
    if not argument:
        names = [name.partition("::")[2] for name in table.names() if name.startswith("aten::")]
        yield TextReply(f"{len(table.entries())} operators under {len(names)} names; %ops relu shows those with 'relu'")
        return
    pattern = argument if any(c in argument for c in "*?[") else f"*{argument}*"
    found = [entry.text for entry in table.entries() if _matches(entry.name, pattern)]
    if not found:
        known = [name.partition("::")[2] for name in table.names()]
        raise UsageError(f"no operator's name contains '{argument}'", hints=did_you_mean(argument, known))
    found.sort(key=lambda text: (text.startswith("_"), text))
    yield SchemaReply(argument, tuple(found[:MOST_SCHEMAS]), len(found))


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name.partition("::")[2], pattern) or fnmatchcase(name, pattern)
