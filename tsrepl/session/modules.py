"""A module as a tree.

In: a module object.  Out: a `ModuleNode`: slots with shapes and sizes, methods, the modules inside, totals.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import children_of, is_module, joined
from engine.aten.values.tensor import Tensor
from engine.lang.records import dataclass
from engine.lang.types import ClassAttribute, ClassType
from tsrepl.session.replies import ModuleNode, SlotRow
from tsrepl.session.values import summary

DEEPEST = 128
"""Modules nested deeper are not shown; a pickle cannot hold them."""


def module_node(name: str, module: Object) -> ModuleNode:
    """The tree of `module`, called `name`."""
    return _Tree().node(name, "", module)


_NOISE: Final = ("_is_full_backward_hook",)
"""Attributes that all modules have and nobody looks for."""


@dataclass(slots=True, eq=False)
class _Tree:
    """One tree; `paths` is where each module was seen first, as it is shown once."""

    paths: dict[int, str] = field(default_factory=dict)
    depth: int = 0

    def node(self, name: str, path: str, module: Object) -> ModuleNode:
        known = self.paths.setdefault(id(module), path)
        if known != path:
            return ModuleNode(name, short_name(module.type), (), (), (), 0, 0, same_as=known)
        self.depth += 1
        slots = [
            _slot(attribute, value)
            for attribute, value in zip(module.type.attributes, module.slots, strict=False)
            if not is_module(value) and attribute.name not in _NOISE
        ]
        inside = children_of(module) if self.depth <= DEEPEST else ()
        children = [self.node(inner, joined(path, inner), each) for inner, each in inside]
        self.depth -= 1
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


_QUALIFIED: Final = re.compile(r"(?<![/\w])__torch__\.(?:\w+\.)*(\w+)")


def without_scopes(text: str) -> str:
    """The text with the classes in it by their own names: `Linear` for `__torch__.torch.nn.modules.linear.Linear`."""
    return _QUALIFIED.sub(r"\1", text)


def _slot(attribute: ClassAttribute, value: Any) -> SlotRow:
    name, kind, type = attribute.name, attribute.kind, without_scopes(str(attribute.type))
    if not isinstance(value, Tensor):
        return SlotRow(name, kind, type, text=summary(value))
    count = 1
    for size in value.shape:
        count *= size
    return SlotRow(name, kind, type, tuple(value.shape), value.dtype.name, count * value.dtype.itemsize, count)


def _order(slot: SlotRow) -> int:
    return ("parameter", "buffer", "attribute").index(slot.kind)
