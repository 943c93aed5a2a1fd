"""Trees: the syntax of a program.

In: kinds, children, ranges.  Out: `Tree`, as both front ends build it and the emitter reads it.  Leaves
are strings; `(list ...)` holds any number of trees, `(option ...)` none or one.  `views` names the children
of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.lang.errors import ParseError
from engine.lang.interpreter_settings import MAX_HEIGHT
from engine.lang.source import SourceRange

BINARY_KINDS: Final = frozenset("+ - * / // % @ ** << >> & | ^ < > <= >= == != is isnot in and or".split())
UNARY_KINDS: Final = frozenset(["not", "~", "unary_minus"])


class Tree:
    """One node: its kind, its children, and its range in the text.

    What ends with a call is underlined as far as the call is.  Raises ParseError for a tree that is too high for
    recursive functions.
    """

    __slots__ = ("children", "height", "kind", "range")
    kind: str
    children: tuple[Tree | str, ...]
    range: SourceRange
    height: int

    def __init__(self, kind: str, children: tuple[Tree | str, ...], range: SourceRange) -> None:
        height, end = 0, range.end
        for child in children:
            if isinstance(child, str):
                continue
            if child.height > height:
                height = child.height
            inner = child.range
            if inner.last >= 0 and inner.end == end and range.last < 0:
                range = range.underlined_to(inner.last)
        self.kind, self.children, self.range, self.height = kind, children, range, height + 1
        if height >= MAX_HEIGHT:
            raise ParseError("nested too deeply", range, hints=("name parts of it in statements of their own",))

    def child(self, index: int) -> Tree:
        """The child at that index, which must not be a leaf."""
        child = self.children[index]
        assert isinstance(child, Tree), f"child {index} of {self} is a leaf"
        return child

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The children that are not leaves."""
        return tuple([child for child in self.children if isinstance(child, Tree)])

    @property
    def text(self) -> str:
        """The leaf that is the node's only child: an ident's name, a const's number."""
        (leaf,) = self.children
        assert isinstance(leaf, str), f"{self} is no leaf's parent"
        return leaf

    def __str__(self) -> str:
        """The s-expression: `(+ (variable (ident x)) (const 1))`."""
        parts: list[str] = []
        todo: list[Tree | str] = [self]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                parts.append(item)
                continue
            parts.append(f"({item.kind}")
            todo.append(")")
            quoted = item.kind == "string_literal"
            for child in reversed(item.children):
                todo.append(repr(child) if quoted else child)
                todo.append(" ")
        return "".join(parts)


class UnreadList(Tree):
    """The body of a function that is read when it is first looked at: known to be without mistakes, low enough for
    recursive functions, and without a docstring."""

    __slots__ = ("_read",)

    def __init__(self, range: SourceRange, read: Callable[[], Sequence[Tree]]) -> None:
        self.kind, self.range, self.height = "list", range, 1
        self._read = read

    def __getattr__(self, name: str) -> tuple[Tree, ...]:
        if name != "children":  # which has no value yet
            raise AttributeError(name)
        self.children = items = tuple(self._read())
        return items


class PythonDefault(Tree):
    """The default of a parameter that Python has evaluated: a tensor, or None for none at all."""

    __slots__ = ("value",)

    def __init__(self, range: SourceRange, value: object) -> None:
        super().__init__("undefined", (), range)
        self.value = value


class DefaultIfFits(Tree):
    """The default of an overloaded function's parameter, for those of its declared types that it is of."""

    __slots__ = ("default",)

    def __init__(self, default: Tree) -> None:
        super().__init__("undefined", (), default.range)
        self.default = default


def variables(tree: Tree) -> list[str]:
    """The names of all variables in the tree, each once, in order."""
    found: dict[str, None] = {}
    todo = [tree]
    while todo:
        node = todo.pop()
        if node.kind == "variable":
            found[node.child(0).text] = None
        todo += reversed(node.trees)
    return list(found)


def without_bracket(range: SourceRange, parts: Sequence[Tree], otherwise: int) -> SourceRange:
    """The range, underlined up to the end of its last part; there may be none."""
    return range.underlined_to(max([part.range.underlined for part in parts], default=otherwise))


def list_of(items: Sequence[Tree], default: SourceRange) -> Tree:
    """`(list ...)` of the items; `default` is its range when there are none."""
    return Tree("list", tuple(items), items[0].range.to(items[-1].range) if items else default)


def option_of(item: Tree | None, default: SourceRange) -> Tree:
    """`(option ...)` of the item or of nothing; `default` is its range in that case."""
    return Tree("option", (), default) if item is None else Tree("option", (item,), item.range)
