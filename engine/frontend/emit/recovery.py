"""Going on after a statement that does not compile, so that one compilation reports all mistakes of a function.

In: statements that failed, with their errors.  Out: a `Recovery`: the errors so far, and the names that a failed
statement would have set.  These are `unknown` from there on, and errors that only follow from them are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from engine.frontend.syntax.tree import Tree, variables
from engine.lang.errors import MAX_TOLD, CompileError, EngineError, FollowUpError
from engine.lang.records import dataclass

LEAVE: Final = frozenset(["return", "raise"])
"""Statements that leave the function."""
_WITH_BLOCKS: Final = frozenset(["if", "while", "for", "with"])
_DECIDE: Final = frozenset(["assert", *_WITH_BLOCKS])
"""Statements that refine the types of the names in their head."""


@dataclass(eq=False, slots=True)
class Recovery:
    """The errors of one function so far, and the names that the statements which failed would have set.

    `remembers` is true if a function that failed is not compiled again at its next call.
    """

    remembers: bool = False
    errors: list[EngineError] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    stopped: bool = False

    def keep(self, tree: Tree, error: CompileError, *, in_init: bool) -> None:
        """Keep the error of the statement, and prepare for the next one; `in_init`: it is one of an `__init__`.

        Raises the error where nothing sound can be reported of what follows.
        """
        if self.stopped:
            raise error
        if all(error.message != known.message for known in self.errors):
            self.errors.append(error)
        if len(self.errors) >= MAX_TOLD or not self._can_go_on(tree, error):
            self.stopped = True
            raise error
        self.unknown.update(_doubtful(tree, in_init))

    def _can_go_on(self, tree: Tree, error: CompileError) -> bool:
        """False after a function that would be compiled again at its next call, and after a possible exit."""
        if error.frames and not self.remembers and not isinstance(error, FollowUpError):
            return False
        return tree.kind not in _WITH_BLOCKS or not any(inner.kind in LEAVE for inner in _all(tree))


def _doubtful(tree: Tree, in_init: bool) -> Iterator[str]:
    """The names whose value, type or attributes would be others, had the statement been compiled."""
    if tree.kind in _DECIDE:
        yield from variables(tree.child(0))
    for inner in _all(tree):
        if inner.kind in ("assign", "aug_assign", "for"):
            yield from _set(inner.child(0), in_init)
        elif inner.kind == "with_item":
            yield from variables(inner.child(1))
        elif inner.kind == "def":
            yield inner.child(0).text
        elif inner.kind == "global":
            yield from (ident.text for ident in inner.child(0).trees)


def _set(target: Tree, in_init: bool) -> Iterator[str]:
    """The variables of a target; of an attribute in `__init__`, the object that would have it."""
    if target.kind == "variable":
        yield target.child(0).text
    elif target.kind in ("list", "tuple_literal", "list_literal", "starred"):
        for part in target.trees:
            yield from _set(part, in_init)
    elif target.kind == "." and in_init:
        yield from variables(target)


def _all(tree: Tree) -> Iterator[Tree]:
    todo = [tree]
    while todo:
        inner = todo.pop()
        yield inner
        todo += inner.trees
