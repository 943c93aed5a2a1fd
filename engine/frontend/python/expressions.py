"""From Python's `ast` to trees: expressions.

In: an `ast` expression and the `PythonSource` it came from.  Out: the same `Tree` as the text front end makes.
Syntax that TorchScript does not have raises a NotSupportedError that says what to do instead.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final

from engine.frontend.syntax.desugar import comparison, formatted
from engine.frontend.syntax.tree import Tree, without_bracket
from engine.frontend.syntax.views import (
    Apply,
    Attribute,
    Const,
    DictComp,
    DictLiteral,
    ListComp,
    ListLiteral,
    Select,
    SliceExpr,
    Starred,
    StringLiteral,
    Subscript,
    TernaryIf,
    TupleLiteral,
    Var,
)
from engine.lang.errors import NotSupportedError, ParseError
from engine.lang.literals import INT_LIMIT
from engine.lang.python_syntax import parse_python_expression
from engine.lang.records import dataclass
from engine.lang.source import Source, SourceRange

BINARY: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_UNARY: Final[dict[type[ast.unaryop], str]] = {ast.Not: "not", ast.Invert: "~", ast.USub: "unary_minus"}
_COMPARE: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_RESERVED: Final = "__jit"

UNSUPPORTED: Final[dict[str, tuple[str, str]]] = {
    "Lambda": ("lambdas", "write a function of its own"),
    "Set": ("sets", "use a dict whose values are not looked at"),
    "SetComp": ("sets", "use a dict whose values are not looked at"),
    "Await": ("await expressions", "use torch.jit.wait"),
    "Yield": ("generators", "collect the values in a list and return it"),
    "YieldFrom": ("generators", "collect the values in a list and return it"),
    "NamedExpr": ("assignment expressions", "assign in a statement before"),
    "FunctionDef": ("function definitions", "define the function outside, and pass it what it needs"),
    "AsyncFunctionDef": ("async function definitions", "call a function with torch.jit.fork"),
    "ClassDef": ("class definitions", "define the class outside"),
    "Try": ("try blocks", "check before, errors cannot be caught"),
    "TryStar": ("try blocks", "check before, errors cannot be caught"),
    "Import": ("import statements", "import outside of the function"),
    "ImportFrom": ("import statements", "import outside of the function"),
    "Global": ("global variables", "pass the value as an argument and return the new one"),
    "Nonlocal": ("nonlocal variables", "pass the value as an argument and return the new one"),
    "Match": ("match statements", "use if and elif"),
    "AsyncFor": ("async loops", "use torch.jit.wait in a plain loop"),
    "AsyncWith": ("async with statements", "use a plain with"),
    "TypeAlias": ("type aliases", "define the alias outside of the function"),
}
"""Class of `ast` -> syntax that TorchScript does not have: its name, and what to do instead."""


@dataclass(frozen=True, slots=True)
class PythonSource:
    """A source, and the ranges of `ast` nodes in it; `skipped` lines were put before it to parse it.

    `ignored` are the blocks that stay in Python, by the name of the function that each becomes.
    """

    source: Source
    skipped: int = 0
    ignored: dict[str, tuple[dict[str, str], list[ast.stmt]]] = field(default_factory=dict, compare=False)

    def offset(self, line: int, column: int) -> int:
        """The offset of a position that `ast` has as a line and a column in bytes.

        Positions inside f-strings are wrong before Python 3.12; they count as the nearest that exists.
        """
        index = min(max(0, line - 1 - self.skipped), len(self.source.line_starts()) - 1)
        start, end = self.source.line_span(index)
        if not self.source.text.isascii():
            column = len(self.source.text[start:end].encode(errors="surrogatepass")[:column].decode(errors="ignore"))
        return min(start + column, end)

    def range(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> SourceRange:
        """The text of the node."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        start = self.offset(node.lineno, node.col_offset)
        return SourceRange(self.source, start, max(start, self.offset(end_line, end_column)))


def refused(node: ast.AST, range: SourceRange, reason: str = "") -> NotSupportedError:
    """The error for syntax that TorchScript does not have."""
    name = type(node).__name__
    what, instead = UNSUPPORTED.get(name, (name, ""))
    return NotSupportedError(f"{what} aren't supported{reason}", range, hints=(instead,) if instead else ())


def expression(place: PythonSource, node: ast.expr) -> Tree:
    """The tree of an expression."""
    range = place.range(node)
    build = _BUILDERS.get(type(node))
    if build is None:
        raise refused(node, range)
    return build(place, node, range)


def expressions(place: PythonSource, nodes: Sequence[ast.expr]) -> list[Tree]:
    return [expression(place, node) for node in nodes]


def annotation(place: PythonSource, node: ast.expr | None) -> Tree | None:
    """The tree of an annotation; one in quotes is the expression in them."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None if node is None else expression(place, node)
    range = place.range(node)
    try:
        inside = parse_python_expression(node.value.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ParseError("this annotation is no type", range) from None
    return _within(expression(PythonSource(Source(node.value.strip())), inside), range)


def _within(tree: Tree, range: SourceRange) -> Tree:
    """The tree with `range` as its range, and as that of all its parts."""
    children = tuple(_within(child, range) if isinstance(child, Tree) else child for child in tree.children)
    return Tree(tree.kind, children, range)


def literal(value: object, range: SourceRange) -> Tree | None:
    """The tree of a Python value that the language can write down, None for any other."""
    if value is None or isinstance(value, bool):
        return Tree(str(value), (), range)
    if value is ...:
        return Tree("dots", (), range)
    if type(value) is int and abs(value) > INT_LIMIT:
        raise ParseError("Integral constant out of range (must fit in a signed 64 bit integer)", range)
    if type(value) in (int, float, complex):
        return Const.make(range, repr(value))
    if type(value) is str:
        return StringLiteral.make(range, value)
    if type(value) not in (list, tuple):
        return None
    assert isinstance(value, (list, tuple))
    items = [literal(item, range) for item in value]
    known = [item for item in items if item is not None]
    view = ListLiteral if isinstance(value, list) else TupleLiteral
    return view.make(range, known) if len(known) == len(items) else None


def _constant(place: PythonSource, node: ast.Constant, range: SourceRange) -> Tree:
    if isinstance(node.value, str):
        range = range.underlined_to(range.end - 1)  # less its closing quote
    tree = literal(node.value, range)
    if tree is None:
        raise NotSupportedError(f"{type(node.value).__name__} literals aren't supported", range, hints=("use a str",))
    return tree


def _name(place: PythonSource, node: ast.Name, range: SourceRange) -> Tree:
    if node.id.startswith(_RESERVED):
        raise NotSupportedError(f"names that start with {_RESERVED} are reserved", range, hints=("choose another",))
    return Tree("dots", (), range) if node.id == "Ellipsis" else Var.make(range, node.id)


def _attribute(place: PythonSource, node: ast.Attribute, range: SourceRange) -> Tree:
    name = SourceRange(range.source, range.end - len(node.attr), range.end)
    return Select.make(range, expression(place, node.value), Tree("ident", (node.attr,), name))


def _call(place: PythonSource, node: ast.Call, range: SourceRange) -> Tree:
    callee, inputs = expression(place, node.func), expressions(place, node.args)
    attributes = [_keyword(place, keyword) for keyword in node.keywords]
    range = without_bracket(range, [callee, *inputs, *attributes], range.end)
    return Apply.make(range, callee, inputs, attributes)


def _keyword(place: PythonSource, node: ast.keyword) -> Tree:
    range = place.range(node)
    if node.arg is None:
        raise NotSupportedError("keyword-arg expansion is not supported", range, hints=("write the arguments out",))
    name = SourceRange(range.source, range.start, range.start + len(node.arg))
    return Attribute.make(range, Tree("ident", (node.arg,), name), expression(place, node.value))


def _binary(place: PythonSource, node: ast.BinOp, range: SourceRange) -> Tree:
    return Tree(BINARY[type(node.op)], (expression(place, node.left), expression(place, node.right)), range)


def _unary(place: PythonSource, node: ast.UnaryOp, range: SourceRange) -> Tree:
    operand = expression(place, node.operand)
    return operand if isinstance(node.op, ast.UAdd) else Tree(_UNARY[type(node.op)], (operand,), range)


def _and_or(place: PythonSource, node: ast.BoolOp, range: SourceRange) -> Tree:
    kind = "and" if isinstance(node.op, ast.And) else "or"
    tree, *rest = expressions(place, node.values)
    for operand in rest:
        tree = Tree(kind, (tree, operand), SourceRange(range.source, range.start, operand.range.end))
    return tree


def _compare(place: PythonSource, node: ast.Compare, range: SourceRange) -> Tree:
    return comparison([_COMPARE[type(op)] for op in node.ops], expressions(place, [node.left, *node.comparators]))


def _conditional(place: PythonSource, node: ast.IfExp, range: SourceRange) -> Tree:
    return TernaryIf.make(range, *expressions(place, [node.test, node.body, node.orelse]))


def _starred(place: PythonSource, node: ast.Starred, range: SourceRange) -> Tree:
    return Starred.make(range, expression(place, node.value))


def _list(place: PythonSource, node: ast.List, range: SourceRange) -> Tree:
    items = expressions(place, node.elts)
    return ListLiteral.make(without_bracket(range, items, range.end), items)


def _tuple(place: PythonSource, node: ast.Tuple, range: SourceRange) -> Tree:
    items = expressions(place, node.elts)
    return TupleLiteral.make(without_bracket(range, items, range.end), items)


def _dict(place: PythonSource, node: ast.Dict, range: SourceRange) -> Tree:
    keys = [key for key in node.keys if key is not None]
    if len(keys) < len(node.keys):
        raise NotSupportedError(
            "Dict expansion (e.g. `{**dict}`) is not supported", range, hints=("call update on a copy",)
        )
    values = expressions(place, node.values)
    return DictLiteral.make(without_bracket(range, values, range.end), expressions(place, keys), values)


def _list_comp(place: PythonSource, node: ast.ListComp, range: SourceRange) -> Tree:
    target, iterable = _generator(place, node.generators, range)
    return ListComp.make(range, expression(place, node.elt), target, iterable)


def _generator_expression(place: PythonSource, node: ast.GeneratorExp, range: SourceRange) -> Tree:
    """A generator expression is a list, too.  Its range includes the brackets of the call around it."""
    target, iterable = _generator(place, node.generators, range)
    element = expression(place, node.elt)
    return ListComp.make(element.range.to(iterable.range), element, target, iterable)


def _dict_comp(place: PythonSource, node: ast.DictComp, range: SourceRange) -> Tree:
    target, iterable = _generator(place, node.generators, range)
    return DictComp.make(range, *expressions(place, [node.key, node.value]), target, iterable)


def _generator(place: PythonSource, generators: list[ast.comprehension], range: SourceRange) -> tuple[Tree, Tree]:
    """The target and the iterable of the one `for` that a comprehension may have."""
    first = generators[0]
    if len(generators) > 1 or first.is_async:
        hints = ("append to a list in loops instead",)
        raise NotSupportedError("Only a single generator is currently supported", range, hints=hints)
    if first.ifs:
        hints = ("append to a list in a loop with an `if` instead",)
        raise NotSupportedError("Comprehension ifs are not supported yet", range, hints=hints)
    return expression(place, first.target), expression(place, first.iter)


def _f_string(place: PythonSource, node: ast.JoinedStr, range: SourceRange) -> Tree:
    return formatted([_piece(place, piece, range) for piece in node.values], range)


def _piece(place: PythonSource, node: ast.expr, range: SourceRange) -> str | Tree:
    """A part of an f-string: text or an expression, whose position Python has only since 3.12."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue), node
    if node.conversion != -1 or node.format_spec is not None:
        raise NotSupportedError(
            "an f-string takes no conversion and no format",
            range,
            hints=("format the value before, or use '%' formatting",),
        )
    return _within(expression(place, node.value), range)


def _subscript(place: PythonSource, node: ast.Subscript, range: SourceRange) -> Tree:
    inside = node.slice
    parts = inside.elts if isinstance(inside, ast.Tuple) and inside.elts else [inside]
    subscripts = expressions(place, parts)
    within = without_bracket(range, subscripts, range.end)
    return Subscript.make(within.underlined_to(within.underlined + 1), expression(place, node.value), subscripts)


def _slice(place: PythonSource, node: ast.Slice, range: SourceRange) -> Tree:
    bounds = (node.lower, node.upper, node.step)
    return SliceExpr.make(range, *(None if bound is None else expression(place, bound) for bound in bounds))


_BUILDERS: Final[dict[type[ast.expr], Callable[[PythonSource, Any, SourceRange], Tree]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _and_or,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Starred: _starred,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Dict: _dict,
    ast.ListComp: _list_comp,
    ast.GeneratorExp: _generator_expression,
    ast.DictComp: _dict_comp,
    ast.JoinedStr: _f_string,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
}
