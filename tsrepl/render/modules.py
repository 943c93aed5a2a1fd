"""A module's tree, in as much detail as a page has room for.

In: a `ModuleReply`.  Out: blocks.  Modules come before their slots: a page that is too short for all shows deeper
modules rather than tensors, and neighbours of one class as one line rather than a level less.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from engine.lang.counts import byte_size, counted
from tsrepl.render.blocks import Block, Choice, Span, TreeView, line
from tsrepl.session.replies import ModuleNode, ModuleReply, SlotRow

FEW = 2
"""Neighbours of one class up to which each has a line of its own."""


class Detail(NamedTuple):
    """The levels that are shown, whether slots are, and whether neighbours of one class share a line on the last."""

    depth: int
    slots: bool = True
    grouped: bool = False


def tree(reply: ModuleReply) -> Iterator[Block]:
    """The tree to the depth that is asked for, else as much as fits."""
    deepest = _height(reply.root)
    if reply.depth is not None:
        details = [Detail(reply.depth)]
    else:
        plain = [Detail(depth, slots=False) for depth in range(deepest, 1, -1)]
        rest = [Detail(1, slots=False), Detail(1, slots=False, grouped=True)]
        shallow = [Detail(2, slots=False, grouped=True)] if deepest > 1 else []
        details = [Detail(deepest), *plain, *shallow, *rest] if deepest else [Detail(0)]
    yield Choice(tuple(tuple(_blocks(reply, detail, deepest)) for detail in details))


def _blocks(reply: ModuleReply, detail: Detail, deepest: int) -> Iterator[Block]:
    yield _tree(reply.root, detail)
    hidden = [f"to depth {detail.depth} of {deepest}"] if detail.depth < deepest else []
    hidden += ["without parameters"] if not detail.slots else []
    if hidden:
        more = reply.more or f"{reply.command} {reply.title} {deepest}"
        yield line(Span(f"shown {', '.join(hidden)}: {more} shows all", "muted"))


def _height(node: ModuleNode) -> int:
    return 1 + max(map(_height, node.children), default=-1)


def _tree(node: ModuleNode, detail: Detail) -> TreeView:
    """The module with those inside it; deeper ones are counted."""
    if node.same_as is not None:
        same = f"  the same module as {node.same_as or 'the whole'}"
        return TreeView((Span(node.name, "title"), Span(" "), Span(node.type, "type"), Span(same, "muted")))
    label = _label(node.name, node.type, [node], detail.depth == 0)
    if detail.depth == 0 and node.children:
        return TreeView(label)
    shows = detail.slots and bool(node.methods)
    methods = [TreeView((Span("methods ", "muted"), Span(", ".join(node.methods), "kind")))] if shows else []
    slots = [TreeView(_slot_label(slot)) for slot in node.slots] if detail.slots else []
    return TreeView(label, (*methods, *slots, *_children(node, detail._replace(depth=detail.depth - 1))))


def _children(node: ModuleNode, detail: Detail) -> Iterator[TreeView]:
    if not detail.grouped or detail.depth > 0:
        yield from (_tree(child, detail) for child in node.children)
        return
    for _, group in groupby(node.children, lambda child: (child.type, child.same_as is None)):
        some = list(group)
        if len(some) <= FEW or some[0].same_as is not None:
            yield from (_tree(child, detail) for child in some)
        else:
            name = f"{some[0].name} … {some[-1].name}"
            yield TreeView(_label(name, f"{some[0].type} × {len(some)}", some, True))


def _label(name: str, type: str, nodes: list[ModuleNode], is_last: bool) -> tuple[Span, ...]:
    """The line of a module, or of several; where it is the last level, with the number of modules inside."""
    size, parameters = sum(node.bytes for node in nodes), sum(node.parameters for node in nodes)
    total = f"{counted(parameters, 'parameter')}, {byte_size(size)}" if size else "no parameters"
    inner = sum(_count(node) - 1 for node in nodes) if is_last else 0
    inside = f", {counted(inner, 'module')} inside" if inner else ""
    return Span(name, "title"), Span(" "), Span(type, "type"), Span(f"  {total}{inside}", "muted")


def _count(node: ModuleNode) -> int:
    return 1 + sum(map(_count, node.children))


def _slot_label(slot: SlotRow) -> tuple[Span, ...]:
    if slot.shape is None:
        return Span(slot.name), Span(f": {slot.type}", "type"), Span(f" = {slot.text}" if slot.text else "", "constant")
    sizes = " × ".join(map(str, slot.shape)) or "scalar"
    kind = "" if slot.kind == "parameter" else f"  {slot.kind}"
    return (
        Span(slot.name),
        Span(f": {slot.dtype} ", "type"),
        Span(sizes, "constant"),
        Span(f"  {byte_size(slot.bytes)}{kind}", "muted"),
    )
