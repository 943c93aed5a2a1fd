"""Python's own parser, for threads that parse at the same time."""

from __future__ import annotations

import ast
from typing import Final

from engine.lang.locks import lock

# CPython 3.11 counts the depth of all trees that are being made in one place (gh-106905), so that two threads that
# parse at once, as where kernels are compiled in the background, may get a SystemError from each other.
_PARSING: Final = lock()


def parse_python(text: str, *, type_comments: bool = False) -> ast.Module:
    """The tree of a module.  Raises what `ast.parse` raises."""
    with _PARSING:
        return ast.parse(text, type_comments=type_comments)


def parse_python_expression(text: str) -> ast.expr:
    """The tree of an expression.  Raises what `ast.parse` raises."""
    with _PARSING:
        return ast.parse(text, mode="eval").body
