"""A module as a tree.

In: a module object.  Out: a `ModuleNode`: slots with shapes and sizes, methods, the modules inside, totals.
"""

from __future__ import annotations

from typing import Any

from engine.aten.ivalue import Object
from engine.aten.tensor import Tensor
from engine.lang.types import ClassAttribute, ClassType
from tsrepl.session.replies import ModuleNode, Slot
from tsrepl.session.values import summary

DEEPEST = 64
"""Modules nested deeper are not shown: an archive may hold a module that holds itself."""


def module_node(name: str, module: Object, depth: int = 0) -> ModuleNode:
    """The tree of `module`, called `name`."""
    slots: list[Slot] = []
    children: list[ModuleNode] = []
    for attribute, value in zip(module.type.attributes, module.slots, strict=False):
        if not _is_module(value):
            slots.append(_slot(attribute, value))
        elif depth < DEEPEST:
            children.append(module_node(attribute.name, value, depth + 1))
    own = [slot for slot in slots if slot.kind == "parameter"]
    return ModuleNode(
        name,
        short_name(module.type),
        tuple(sorted(slots, key=_order)),
        tuple(module.type.methods),
        tuple(children),
        sum(slot.count for slot in own) + sum(child.parameters for child in children),
        sum(slot.bytes for slot in slots) + sum(child.bytes for child in children),
    )


def short_name(type: ClassType) -> str:
    """The class's own name: without `__torch__`, its modules and the numbers that keep names apart."""
    return type.name


def _slot(attribute: ClassAttribute, value: Any) -> Slot:
    name, kind, type = attribute.name, attribute.kind, str(attribute.type)
    if not isinstance(value, Tensor):
        return Slot(name, kind, type, text=summary(value))
    count = 1
    for size in value.shape:
        count *= size
    return Slot(name, kind, type, tuple(value.shape), value.dtype.name, count * value.dtype.itemsize, count)


def _order(slot: Slot) -> int:
    return ("parameter", "buffer", "attribute").index(slot.kind)


def _is_module(value: Any) -> bool:
    return isinstance(value, Object) and value.type.is_module
