"""The kinds of trees, and names for their children.

In: a `Tree`.  Out: a view of it, `Apply(tree).callee`; and the other way, `Apply.make(range, callee, inputs,
attributes)` builds the tree.  A class below is one kind; its slots are the children, in order.  Operators
(`tree.BINARY_KINDS`, `tree.UNARY_KINDS`) and the words True, False, None, dots, pass, break and continue have
no view: they are their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any, ClassVar, Generic, TypeVar, overload

from engine.frontend.syntax.tree import Tree, UnreadList, list_of, option_of
from engine.lang.errors import ParseError
from engine.lang.literals import LiteralError, const_value
from engine.lang.source import SourceRange

_T = TypeVar("_T")
_V = TypeVar("_V", bound="View")

Part = Tree | Sequence[Tree] | str | bool | None
"""The arguments of `make`, one for each slot."""


class Slot(Generic[_T]):
    """One child of a kind, with the functions that read it from a tree and build it into one."""

    index = 0

    def read(self, child: Tree) -> _T:
        raise NotImplementedError

    def build(self, part: Any, range: SourceRange) -> Tree | str:
        return part  # type: ignore[no-any-return]

    @overload
    def __get__(self, view: None, owner: type) -> Slot[_T]: ...
    @overload
    def __get__(self, view: View, owner: type) -> _T: ...
    def __get__(self, view: View | None, owner: type) -> Slot[_T] | _T:
        return self if view is None else self.read(view.tree.children[self.index])  # type: ignore[arg-type]


class Child(Slot[Tree]):
    """A tree."""

    def read(self, child: Tree) -> Tree:
        return child


class Listed(Slot[_T]):
    """A `(list ...)`; `make` takes the tree, or its items."""

    def build(self, part: Tree | Sequence[Tree], range: SourceRange) -> Tree:
        return part if isinstance(part, Tree) else list_of(part, range)


class Children(Listed[tuple[Tree, ...]]):
    """A `(list ...)` of any trees."""

    def read(self, child: Tree) -> tuple[Tree, ...]:
        return child.trees


class Maybe(Slot["Tree | None"]):
    """An `(option ...)`."""

    def read(self, child: Tree) -> Tree | None:
        return child.child(0) if child.children else None

    def build(self, part: Tree | None, range: SourceRange) -> Tree:
        return option_of(part, range)


class Name(Slot[str]):
    """An `(ident name)`; `make` takes the tree, or the name alone."""

    def read(self, child: Tree) -> str:
        return child.text

    def build(self, part: Tree | str, range: SourceRange) -> Tree:
        return part if isinstance(part, Tree) else Tree("ident", (part,), range)


class Names(Listed[tuple[str, ...]]):
    """A `(list (ident name) ...)`."""

    def read(self, child: Tree) -> tuple[str, ...]:
        return tuple(ident.text for ident in child.trees)


class Leaf(Slot[str]):
    """A string."""

    def read(self, child: Tree | str) -> str:
        assert isinstance(child, str), child
        return child


class Flag(Slot[bool]):
    """`(True)` or `(False)`."""

    def read(self, child: Tree) -> bool:
        return child.kind == "True"

    def build(self, part: bool, range: SourceRange) -> Tree:
        return Tree(str(part), (), range)


class Viewed(Slot[_V]):
    """A tree of one known kind."""

    def __init__(self, view: type[_V]) -> None:
        self.view = view

    def read(self, child: Tree) -> _V:
        return self.view(child)


class ViewedList(Listed[tuple[_V, ...]]):
    """A `(list ...)` of trees of one known kind."""

    def __init__(self, view: type[_V]) -> None:
        self.view = view

    def read(self, child: Tree) -> tuple[_V, ...]:
        return tuple(map(self.view, child.trees))


class View:
    """A tree of a known kind; `range` is the tree's."""

    __slots__ = ("tree",)
    kind: ClassVar[str]
    slots: ClassVar[tuple[Slot[Any], ...]]
    _builds: ClassVar[tuple[Callable[..., Tree | str] | None, ...]]
    """The builder of each child in `make`; None for a part that is the child."""

    def __init_subclass__(cls, kind: str) -> None:
        cls.kind = kind
        cls.slots = tuple(slot for slot in vars(cls).values() if isinstance(slot, Slot))
        for index, slot in enumerate(cls.slots):
            slot.index = index
        cls._builds = tuple(None if type(slot).build is Slot.build else slot.build for slot in cls.slots)

    def __init__(self, tree: Tree) -> None:
        assert tree.kind == self.kind, f"expected ({self.kind} ...), got {tree}"
        self.tree = tree

    @property
    def range(self) -> SourceRange:
        return self.tree.range

    @classmethod
    def make(cls, range: SourceRange, *parts: Part) -> Tree:
        """A tree of this kind, from one part for each slot."""
        pairs: Any = zip(cls._builds, parts, strict=True)
        return Tree(cls.kind, tuple([part if build is None else build(part, range) for build, part in pairs]), range)


# --- expressions ---


class Var(View, kind="variable"):
    name = Name()


class Const(View, kind="const"):
    """A number; `text` is Python's `repr` of it (a minus in front included)."""

    text = Leaf()

    @property
    def value(self) -> int | float | complex:
        """The number.  Raises ParseError when it is an integer of more than 64 bits, or `--1`."""
        try:
            return const_value(self.text)
        except LiteralError as error:
            raise ParseError(str(error), self.range) from None


class StringLiteral(View, kind="string_literal"):
    text = Leaf()


class Select(View, kind="."):
    """`value.name`."""

    value = Child()
    name = Name()


class Attribute(View, kind="attribute"):
    """`name=value` in a call."""

    name = Name()
    value = Child()


class Apply(View, kind="apply"):
    """`callee(inputs, attributes)`."""

    callee = Child()
    inputs = Children()
    attributes = ViewedList(Attribute)


class Starred(View, kind="starred"):
    value = Child()


class SliceExpr(View, kind="slice_expr"):
    """`start:end:step` in a subscript."""

    start = Maybe()
    end = Maybe()
    step = Maybe()


class Subscript(View, kind="subscript"):
    """`value[subscripts]`."""

    value = Child()
    subscripts = Children()


class ListLiteral(View, kind="list_literal"):
    inputs = Children()


class TupleLiteral(View, kind="tuple_literal"):
    inputs = Children()


class DictLiteral(View, kind="dict_literal"):
    keys = Children()
    values = Children()


class ListRow(View, kind="list_row"):
    """A list of many plain literals, whose `text` `row_values` reads: see Note [Rows of literals]."""

    text = Leaf()


class DictRow(View, kind="dict_row"):
    """A dict of many plain literals."""

    text = Leaf()


class ListComp(View, kind="list_comp"):
    """`[element for target in iterable]`."""

    element = Child()
    target = Child()
    iterable = Child()


class DictComp(View, kind="dict_comp"):
    """`{key: value for target in iterable}`."""

    key = Child()
    value = Child()
    target = Child()
    iterable = Child()


class TernaryIf(View, kind="if_expr"):
    """`true_value if condition else false_value`."""

    condition = Child()
    true_value = Child()
    false_value = Child()


# --- statements ---


class ExprStmt(View, kind="expression_statement"):
    expression = Child()


class Assign(View, kind="assign"):
    """`targets[0] = targets[1] = value`, or `targets[0]: annotation = value`."""

    targets = Children()
    value = Maybe()
    annotation = Maybe()


class AugAssign(View, kind="aug_assign"):
    """`target operator= value`; `operator` is "+", "**", ..."""

    target = Child()
    operator = Leaf()
    value = Child()


class Return(View, kind="return"):
    """`return value`; without a value it is `(None)`."""

    value = Child()


class Raise(View, kind="raise"):
    value = Child()


class Assert(View, kind="assert"):
    condition = Child()
    message = Maybe()


class Delete(View, kind="delete"):
    targets = Children()


class Global(View, kind="global"):
    names = Names()


class If(View, kind="if"):
    """An `elif` is an `if` alone in `false_branch`."""

    condition = Child()
    true_branch = Children()
    false_branch = Children()


class While(View, kind="while"):
    condition = Child()
    body = Children()


class For(View, kind="for"):
    targets = Children()
    iterables = Children()
    body = Children()


class WithItem(View, kind="with_item"):
    """`value as target`."""

    value = Child()
    target = Maybe()


class With(View, kind="with"):
    items = ViewedList(WithItem)
    body = Children()


# --- definitions ---


class Param(View, kind="param"):
    name = Name()
    annotation = Maybe()
    default = Maybe()
    kwarg_only = Flag()


class Decl(View, kind="decl"):
    params = ViewedList(Param)
    returns = Maybe()


class Def(View, kind="def"):
    name = Name()
    decl = Viewed(Decl)
    body = Children()

    @property
    def docstring(self) -> str:
        """The text that the body begins with, without its indentation; "" where it begins with something else."""
        if isinstance(self.tree.children[Def.body.index], UnreadList):
            return ""
        first = self.body[0] if self.body else None
        if first is None or first.kind != ExprStmt.kind or ExprStmt(first).expression.kind != StringLiteral.kind:
            return ""
        return cleandoc(StringLiteral(ExprStmt(first).expression).text)


class Property(View, kind="property"):
    name = Name()
    getter = Viewed(Def)
    setter = Maybe()


class ClassDef(View, kind="class_def"):
    """`body` holds the methods, assignments and annotated attributes, in order."""

    name = Name()
    superclass = Maybe()
    body = Children()
    properties = ViewedList(Property)
