"""The names that the author gave to values of an archive's program.

In: a value of a graph.  Out: the variable that the author's text assigns it to.  The code in an archive is generated:
a variable that is assigned twice is `y`, then `y0`, and parts of expressions get names that nobody wrote.  Debug
records lead to the statement in the author's file, which tells the name.  A value without a record keeps its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from engine.ir.graph import Node, Value
from engine.lang.python_syntax import parse_python
from engine.lang.source import SourceRange


def author_name(value: Value) -> str:
    """The author's variable that the value is assigned to; "" where it is the value of no variable."""
    name = value.variable_name
    range = _range(value)
    if not name or range is None or (original := range.original()) is range:
        return name
    assigned = _assigned(original.source.text)
    if assigned is None:
        return name
    names = assigned.get(original.line - original.source.first_line, frozenset())
    return next((each for each in names if name == each or _is_numbered(name, each)), "")


def _is_numbered(name: str, stem: str) -> bool:
    return name.startswith(stem) and name.removeprefix(stem).isdecimal()


def _range(value: Value) -> SourceRange | None:
    """The place of the node that makes the value; that of the loop for what a round of it begins with."""
    node: Node | None = value.node
    if node is not None and node.kind == "prim::Param":
        node = node.block.owner if node.block is not None else None
    return node.range if node is not None else None


@lru_cache(maxsize=512)
def _assigned(text: str) -> dict[int, frozenset[str]] | None:
    """For each line of a function's text, from 0: what the innermost statement there assigns; None for other text."""
    try:
        tree = parse_python(f"if 1:\n{text}" if text[:1].isspace() else f"\n{text}")
    except SyntaxError:
        return None
    found: dict[int, frozenset[str]] = {}
    for statement in _statements(tree):
        names = frozenset(
            each.id for each in ast.walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )
        found.update(dict.fromkeys(range(statement.lineno - 2, (statement.end_lineno or statement.lineno) - 1), names))
    return found


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements inside, outer ones before inner ones."""
    for each in ast.iter_child_nodes(tree):
        if isinstance(each, ast.stmt):
            yield each
        yield from _statements(each)
