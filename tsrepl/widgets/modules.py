"""The module tree: sizes, folding, search.

In: a `ModuleReply`.  Out: its widget.  The first levels are there at once, deeper ones are fetched as they are opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

import traitlets

from engine.lang.counts import byte_size, counted
from tsrepl.session.replies import ModuleNode, ModuleReply, SlotRow
from tsrepl.widgets.messages import Children, Find, Refused
from tsrepl.widgets.view import Answer, Handler, View, front_end

_MOST_HITS: Final = 50


class ModuleTree(View):
    """A module and those inside it; a row is known by its path."""

    _esm = traitlets.Unicode(front_end("modules")).tag(sync=True)

    HANDLERS: ClassVar[dict[type[Any], Handler]] = {
        Children: lambda view, message: view.children_of(message.path),
        Find: lambda view, message: {"hits": view.find(message.text)},
    }

    def __init__(self, reply: ModuleReply) -> None:
        self.nodes = dict(_walk("", reply.root))
        super().__init__(
            {"title": reply.title, "root": _module("", reply.root, reply.root.bytes), "rows": self.rows("")}
        )

    def children_of(self, path: str) -> Answer:
        """The answer to the question for a module's rows, which is saved with the view."""
        rows = self.rows(path)
        self.keep(**{path: rows})
        return {"rows": rows}

    def rows(self, path: str) -> list[Answer]:
        """The parameters, attributes and modules of the module at a path.  Raises Refused."""
        node = self.nodes.get(path)
        if node is None:
            raise Refused(f"there is no module {path[:80]}")
        whole = max(1, self.nodes[""].bytes)
        slots = (_slot(_joined(path, slot.name), slot, whole) for slot in node.slots)
        return [*(_module(_joined(path, each.name), each, whole) for each in node.children), *slots]

    def find(self, text: str) -> list[list[str]]:
        """Modules and slots whose path or type contains the text, as (path, type)."""
        wanted = text.lower().strip()
        rows = (each for path, node in self.nodes.items() for each in _names(path, node))
        hits = [[path, kind] for path, kind in rows if wanted and wanted in f"{path} {kind}".lower()]
        return hits[:_MOST_HITS]


def _walk(path: str, node: ModuleNode) -> Iterator[tuple[str, ModuleNode]]:
    yield path, node
    for child in node.children:
        yield from _walk(_joined(path, child.name), child)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _names(path: str, node: ModuleNode) -> Iterator[tuple[str, str]]:
    yield path, node.type
    yield from ((_joined(path, slot.name), slot.dtype or slot.type) for slot in node.slots)


def _module(path: str, node: ModuleNode, whole: int) -> Answer:
    same = f"the same module as {node.same_as or 'the whole'}" if node.same_as is not None else ""
    facts = same or f"{counted(node.parameters, 'parameter')}, {byte_size(node.bytes)}"
    return {
        "path": path, "name": node.name, "type": node.type, "facts": facts, "part": node.bytes / max(1, whole),
        "opens": bool(node.children or node.slots), "methods": [*node.methods],
    }  # fmt: skip


def _slot(path: str, slot: SlotRow, whole: int) -> Answer:
    sizes = "" if slot.shape is None else " × ".join(map(str, slot.shape)) or "scalar"
    facts = f"{sizes}, {byte_size(slot.bytes)}" if slot.shape is not None else slot.text
    kind = "" if slot.kind == "parameter" else f" {slot.kind}"
    return {
        "path": path, "name": slot.name, "type": (slot.dtype or slot.type) + kind, "facts": facts,
        "part": slot.bytes / whole, "opens": False, "methods": [],
    }  # fmt: skip
