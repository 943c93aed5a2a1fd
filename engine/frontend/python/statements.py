"""From Python's `ast` to trees: statements and blocks.

In: an `ast` statement and the `PythonSource` it came from.  Out: the same `Tree` as the text front end makes.
Docstrings are dropped; syntax that TorchScript does not have raises a NotSupportedError.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.frontend.python import ignored_blocks
from engine.frontend.python.expressions import BINARY, PythonSource, annotation, expression, expressions, refused
from engine.frontend.syntax.desugar import augmented
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import (
    Assert,
    Assign,
    Delete,
    ExprStmt,
    For,
    If,
    Raise,
    Return,
    While,
    With,
    WithItem,
)
from engine.lang.errors import NotSupportedError
from engine.lang.source import SourceRange


def statements(place: PythonSource, nodes: Sequence[ast.stmt]) -> list[Tree]:
    """The trees of the statements, docstrings left out."""
    return [statement(place, node) for node in nodes if not _is_docstring(node)]


def statement(place: PythonSource, node: ast.stmt) -> Tree:
    """The tree of a statement."""
    range = place.range(node)
    build = _BUILDERS.get(type(node))
    if build is None:
        raise refused(node, range)
    return build(place, node, range)


def annotated(place: PythonSource, node: ast.AnnAssign) -> Tree:
    """`target: annotation = value`; in a class the value may be missing."""
    value = None if node.value is None else expression(place, node.value)
    target, type = expression(place, node.target), annotation(place, node.annotation)
    return Assign.make(place.range(node), [target], value, type)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _expression(place: PythonSource, node: ast.Expr, range: SourceRange) -> Tree:
    return ExprStmt.make(range, expression(place, node.value))


def _assign(place: PythonSource, node: ast.Assign, range: SourceRange) -> Tree:
    targets, value = expressions(place, node.targets), expression(place, node.value)
    without_comment = range if node.type_comment is None else range.to(value.range)
    return Assign.make(without_comment, targets, value, None)


def _annotated(place: PythonSource, node: ast.AnnAssign, range: SourceRange) -> Tree:
    if node.value is None:
        raise NotSupportedError(
            "annotated assignments without assigned value aren't supported", range, hints=("assign a value here",)
        )
    return annotated(place, node)


def _augmented(place: PythonSource, node: ast.AugAssign, range: SourceRange) -> Tree:
    return augmented(range, expression(place, node.target), BINARY[type(node.op)], expression(place, node.value))


def _return(place: PythonSource, node: ast.Return, range: SourceRange) -> Tree:
    return Return.make(range, Tree("None", (), range) if node.value is None else expression(place, node.value))


def _raise(place: PythonSource, node: ast.Raise, range: SourceRange) -> Tree:
    if node.exc is None:
        raise NotSupportedError("raise needs an exception", range, hints=("errors cannot be caught and raised again",))
    return Raise.make(range, expression(place, node.exc))


def _assert(place: PythonSource, node: ast.Assert, range: SourceRange) -> Tree:
    return Assert.make(range, expression(place, node.test), None if node.msg is None else expression(place, node.msg))


def _delete(place: PythonSource, node: ast.Delete, range: SourceRange) -> Tree:
    return Delete.make(range, expressions(place, node.targets))


def _if(place: PythonSource, node: ast.If, range: SourceRange) -> Tree:
    condition = expression(place, node.test)
    return If.make(range, condition, statements(place, node.body), statements(place, node.orelse))


def _while(place: PythonSource, node: ast.While, range: SourceRange) -> Tree:
    _refuse_else(place, node.orelse, "while")
    return While.make(range, expression(place, node.test), statements(place, node.body))


def _for(place: PythonSource, node: ast.For, range: SourceRange) -> Tree:
    _refuse_else(place, node.orelse, "for")
    target, iterable = expression(place, node.target), expression(place, node.iter)
    return For.make(range, [target], [iterable], statements(place, node.body))


def _refuse_else(place: PythonSource, orelse: list[ast.stmt], loop: str) -> None:
    if orelse:
        raise NotSupportedError(
            f"else branches of {loop} loops aren't supported",
            place.range(orelse[0]),
            hints=("set a variable before the loop, change it before break, and test it after",),
        )


def _with(place: PythonSource, node: ast.With, range: SourceRange) -> Tree:
    variables = ignored_blocks.declared(node)
    if variables is not None:
        name = f"__ignored_{len(place.ignored)}"
        place.ignored[name] = variables, node.body
        return ignored_blocks.call_of(name, variables, range)
    return With.make(range, [_with_item(place, item) for item in node.items], statements(place, node.body))


def _with_item(place: PythonSource, item: ast.withitem) -> Tree:
    value = expression(place, item.context_expr)
    if item.optional_vars is None:
        return WithItem.make(value.range, value, None)
    target = expression(place, item.optional_vars)
    if target.kind != "variable":
        raise NotSupportedError("what stands after `as` must be a name", target.range)
    return WithItem.make(value.range.to(target.range), value, target)


def _word(place: PythonSource, node: ast.stmt, range: SourceRange) -> Tree:
    return Tree(type(node).__name__.lower(), (), range)


_BUILDERS: Final[dict[type[ast.stmt], Callable[[PythonSource, Any, SourceRange], Tree]]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.With: _with,
    ast.Pass: _word,
    ast.Break: _word,
    ast.Continue: _word,
}
