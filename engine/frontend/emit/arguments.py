"""Arguments: lists of expressions, some starred.

In: the trees of a call's arguments or of a container's elements.  Out: their values in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.frontend.emit.emitter import Emitter
from engine.frontend.matching.schema_match import Actual
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Apply, Attribute, Starred
from engine.ir.graph import Value
from engine.lang.errors import CompileError
from engine.lang.types import Type


def values_of(
    e: Emitter, trees: Sequence[Tree], *, unpack: bool = False, hints: Sequence[Type | None] = ()
) -> list[Value]:
    """The values of the expressions; with `unpack`, `*t` gives every element of `t`."""
    return [actual.value for actual in actuals_of(e, trees, unpack=unpack, hints=hints)]


def actuals_of(
    e: Emitter, trees: Sequence[Tree], *, unpack: bool = True, hints: Sequence[Type | None] = ()
) -> list[Actual]:
    """The expressions as arguments of a call, with their ranges."""
    found: list[Actual] = []
    for index, tree in enumerate(trees):
        if unpack and tree.kind == "starred":
            inner = Starred(tree).value
            parts = e.sugared(inner).as_tuple(e, None, tree.range)
            found += [Actual(part.as_value(e, inner.range), tree.range) for part in parts]
        else:
            hint = hints[index] if index < len(hints) else None
            found.append(Actual(e.expression(tree, hint), tree.range))
    return found


def keywords_of(e: Emitter, attributes: Iterable[Attribute]) -> list[Actual]:
    """The keyword arguments of a call."""
    return [Actual(e.expression(view.value), view.range, view.name) for view in attributes]


def no_keywords(view: Apply, form: str) -> None:
    """Raises CompileError where a call that takes none has keyword arguments."""
    if view.attributes:
        raise CompileError(f"{form} takes no keyword arguments", view.range, hints=("leave out the names",))
