"""Desugaring: Python's syntax that trees express in another form; both parsers use it.

In: the parts.  Out: f-strings as calls of `format`, `a //= b` as `a = a // b`, `a < b < c` as
`a < b and b < c`, a method under `@property` as the property of its class.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Apply, Assign, AugAssign, Def, Property, Select, StringLiteral
from engine.lang.errors import NotSupportedError
from engine.lang.source import SourceRange

_WITHOUT_IN_PLACE = ("//", "@")


def formatted(pieces: Sequence[str | Tree], range: SourceRange) -> Tree:
    """The literal that the pieces make: text alone, or a call of `format` that fills in the expressions."""
    values = [piece for piece in pieces if isinstance(piece, Tree)]
    text = StringLiteral.make(range, "".join("{}" if isinstance(piece, Tree) else piece for piece in pieces))
    return Apply.make(range, Select.make(range, text, "format"), values, []) if values else text


def augmented(range: SourceRange, target: Tree, operator: str, value: Tree) -> Tree:
    """`target operator= value`.  Raises NotSupportedError where the operator has no such form."""
    if operator not in _WITHOUT_IN_PLACE:
        return AugAssign.make(range, target, operator, value)
    if target.kind != "variable":
        raise NotSupportedError(
            f"'{operator}=' takes a variable on its left",
            target.range,
            hints=(f"write {target.range.text} = {target.range.text} {operator} ...",),
        )
    return Assign.make(range, [target], Tree(operator, (target, value), range), None)


def comparison(operators: Sequence[str], operands: Sequence[Tree]) -> Tree:
    """`operands[0] operators[0] operands[1] operators[1] ...`: every neighbour compared, joined by `and`."""
    result: Tree | None = None
    for operator, left, right in zip(operators, operands[:-1], operands[1:], strict=True):
        range = left.range.to(right.range)
        tree = compared(operator, left, right, range)
        result = tree if result is None else Tree("and", (result, tree), result.range.to(range))
    assert result is not None, "a comparison has an operator"
    return result


def compared(operator: str, left: Tree, right: Tree, range: SourceRange) -> Tree:
    """One comparison; the operator is a token's kind."""
    if operator == "not in":
        return Tree("not", (Tree("in", (left, right), range),), range)
    return Tree("isnot" if operator == "is not" else operator, (left, right), range)


def add_property(properties: dict[str, Tree], decorators: Sequence[Tree], method: Tree) -> bool:
    """Add the method to the properties if its decorators make it a getter or setter; True if so.

    The two are named `__x_getter` and `__x_setter` there.
    """
    name = Def(method).name
    if any(str(decorator) == "(variable (ident property))" for decorator in decorators):
        properties[name] = Property.make(method.range, name, _renamed(method, f"__{name}_getter"), None)
        return True
    setter = f"(. (variable (ident {name})) (ident setter))"
    if name not in properties or not any(str(decorator) == setter for decorator in decorators):
        return False
    getter = Property(properties[name]).getter.tree
    properties[name] = Property.make(getter.range, name, getter, _renamed(method, f"__{name}_setter"))
    return True


def _renamed(method: Tree, name: str) -> Tree:
    ident, *rest = method.trees
    return Tree("def", (Tree("ident", (name,), ident.range), *rest), method.range)
