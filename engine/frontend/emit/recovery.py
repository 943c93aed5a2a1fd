"""Going on behind a statement that does not compile, so that one look tells all mistakes of a function.

In: the statements of a function.  Out: nodes, or every error that stands for itself, together.  What a failed statement
would have set is `unknown` from there on, and what needs one of these names fails without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from engine.frontend.syntax.tree import Tree, variables
from engine.lang.errors import MAX_TOLD, CompileError, EngineError, FollowUpError, together

if TYPE_CHECKING:
    from engine.frontend.emit.emitter import Emitter

_LEAVE: Final = frozenset(["return", "raise"])
_WITH_BLOCKS: Final = frozenset(["if", "while", "for", "with"])
_DECIDE: Final = frozenset(["assert", *_WITH_BLOCKS])
"""What refines types of the names in its head."""


def compile_body(e: Emitter, trees: Sequence[Tree]) -> None:
    """Compile all statements of a function.  Raises the errors of the statements, together."""
    try:
        e.statements(trees)
    except EngineError as error:
        if not e.failures:
            raise
        raise together(e.failures) from error.__cause__
    if e.failures:
        raise together(e.failures)


def recover(e: Emitter, tree: Tree, error: CompileError) -> None:
    """Keep the error of the statement, and make ready for the next one.

    Raises the error where nothing sound can be said of what follows.
    """
    if e.stopped:
        raise error
    if all(error.message != known.message for known in e.failures):
        e.failures.append(error)
    if len(e.failures) >= MAX_TOLD or not _can_go_on(e, tree, error):
        e.stopped = True
        raise error
    e.unknown.update(_doubtful(e, tree))
    if tree.kind in _LEAVE:
        e.exits.add(e.environment.block)


def _can_go_on(e: Emitter, tree: Tree, error: CompileError) -> bool:
    """Not behind a function that failed, if it would be compiled again at its next call, nor behind a possible exit."""
    if error.frames and not e.remembers and not isinstance(error, FollowUpError):
        return False
    return tree.kind not in _WITH_BLOCKS or not any(inner.kind in _LEAVE for inner in _all(tree))


def _doubtful(e: Emitter, tree: Tree) -> Iterator[str]:
    """The names whose value, type or attributes would be others, had the statement been compiled."""
    if tree.kind in _DECIDE:
        yield from variables(tree.child(0))
    for inner in _all(tree):
        if inner.kind in ("assign", "aug_assign", "for"):
            yield from _set(e, inner.child(0))
        elif inner.kind == "with_item":
            yield from variables(inner.child(1))
        elif inner.kind == "def":
            yield inner.child(0).text
        elif inner.kind == "global":
            yield from (ident.text for ident in inner.child(0).trees)


def _set(e: Emitter, target: Tree) -> Iterator[str]:
    """The variables of a target; of an attribute in `__init__`, the object that would have it."""
    if target.kind == "variable":
        yield target.child(0).text
    elif target.kind in ("list", "tuple_literal", "list_literal", "starred"):
        for part in target.trees:
            yield from _set(e, part)
    elif target.kind == "." and e.initializes is not None:
        yield from variables(target)


def _all(tree: Tree) -> Iterator[Tree]:
    todo = [tree]
    while todo:
        inner = todo.pop()
        yield inner
        todo += inner.trees
