"""The names that a stretch of statements uses.

In: trees.  Out: which names the statements read before they set them, and which they set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Final

from engine.frontend.syntax.tree import Tree, variables
from engine.lang.records import dataclass


@dataclass(slots=True)
class NameUses:
    """The names of a stretch of statements.

    `reads` may be wanted from outside, in order of their first use; `assigned` are set somewhere, `defined` on
    every path, `deleted` gone at the end, `counters` are what loops go through.
    """

    reads: dict[str, None] = field(default_factory=dict)
    assigned: dict[str, None] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    counters: set[str] = field(default_factory=set)

    def branch(self) -> NameUses:
        """Names for a branch: reads and assignments are shared, definitions from here on are the branch's own."""
        return NameUses(self.reads, self.assigned, set(self.defined), self.deleted, self.counters)


def names_of(statements: Iterable[Tree]) -> NameUses:
    """The names that the statements read and set."""
    names = NameUses()
    _run(statements, names)
    return names


def _run(statements: Iterable[Tree], names: NameUses) -> None:
    for statement in statements:
        _RULES.get(statement.kind, _read)(statement, names)


def _read(tree: Tree, names: NameUses) -> None:
    """Everything in the expression is read, but for what its comprehensions set themselves."""
    if tree.kind == "variable":
        name = tree.child(0).text
        if name not in names.defined:
            names.reads[name] = None
        return
    if tree.kind in COMPREHENSIONS:
        _read_comprehension(tree, names)
        return
    for child in tree.trees:
        _read(child, names)


def _read_comprehension(tree: Tree, names: NameUses) -> None:
    *elements, target, iterated = tree.trees
    _read(iterated, names)
    inner = names.branch()
    inner.defined |= set(variables(target))
    for element in elements:
        _read(element, inner)


def _set(target: Tree, names: NameUses) -> None:
    """The target of an assignment: a name is set, of anything else the parts are read."""
    if target.kind == "variable":
        names.assigned[target.child(0).text] = None
        names.defined.add(target.child(0).text)
        names.deleted.discard(target.child(0).text)
    elif target.kind in _UNPACKED:
        for part in target.trees:
            _set(part, names)
    else:
        _read(target, names)


def _assign(tree: Tree, names: NameUses) -> None:
    targets, *rest = tree.trees
    for part in rest[:1]:
        _read(part, names)
    _set(targets, names)


def _aug_assign(tree: Tree, names: NameUses) -> None:
    target, *rest = tree.trees
    for part in (target, *rest):
        _read(part, names)
    _set(target, names)


def _if(tree: Tree, names: NameUses) -> None:
    condition, *bodies = tree.trees
    _read(condition, names)
    after: list[set[str]] = []
    for body in bodies:
        branch = names.branch()
        _run(body.trees, branch)
        if not body.trees or body.trees[-1].kind not in _LEAVE:
            after.append(branch.defined)
    names.defined = set.intersection(*after) if after else names.defined


def _while(tree: Tree, names: NameUses) -> None:
    _read(tree.child(0), names)
    _run(tree.child(1).trees, names.branch())


def _for(tree: Tree, names: NameUses) -> None:
    targets, iterated, body = tree.trees
    _read(iterated, names)
    names.counters |= set(variables(targets))
    inner = names.branch()
    _set(targets, inner)
    _run(body.trees, inner)


def _with(tree: Tree, names: NameUses) -> None:
    items, body = tree.trees
    for item in items.trees:
        expression, *target = item.trees
        _read(expression, names)
        for part in target:
            _set(part, names)
    _run(body.trees, names)


def _delete(tree: Tree, names: NameUses) -> None:
    for target in tree.child(0).trees:
        _read(target, names)
        if target.kind == "variable":
            name = target.child(0).text
            names.defined.discard(name)
            names.assigned.pop(name, None)
            names.deleted.add(name)


_LEAVE: Final = ("raise", "return")
COMPREHENSIONS: Final = ("list_comp", "dict_comp")
_UNPACKED: Final = ("list", "tuple_literal", "starred", "option")
_RULES: Final[dict[str, Callable[[Tree, NameUses], None]]] = {
    "assign": _assign,
    "aug_assign": _aug_assign,
    "if": _if,
    "while": _while,
    "for": _for,
    "with": _with,
    "delete": _delete,
}
