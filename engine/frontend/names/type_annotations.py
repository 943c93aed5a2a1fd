"""Types as programs annotate them.

In: the tree of `List[int]`, `Optional[Tensor]`, `__torch__.Point`.  Out: a `Type`.  Names that the language
does not know are looked up by the resolver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from engine.frontend.names.resolve import Resolver
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Select, StringLiteral, Subscript, TupleLiteral, Var
from engine.lang.deferred import deferred, pattern_of
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import (
    ANY,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    NUMBER,
    STORAGE,
    STR,
    STREAM,
    TENSOR,
    AwaitType,
    DictType,
    FutureType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    union_of,
)  # fmt: skip

if TYPE_CHECKING:
    from engine.frontend.diagnostics import hints
else:
    hints = deferred("engine.frontend.diagnostics.hints")

_NAMES: Final[dict[str, Type]] = {
    "Tensor": TENSOR, "int": INT, "float": FLOAT, "complex": COMPLEX, "bool": BOOL, "str": STR, "Device": DEVICE,
    "number": NUMBER, "Generator": GENERATOR, "Stream": STREAM, "Storage": STORAGE, "None": NONE, "NoneType": NONE,
    "Any": ANY, "list": ANY_LIST, "tuple": ANY_TUPLE, "AnyEnumType": ANY_ENUM, "Scalar": NUMBER,
}  # fmt: skip
_DOTTED: Final[dict[str, Type]] = {
    "torch.Tensor": TENSOR, "torch.device": DEVICE, "torch.dtype": INT, "torch.layout": INT,
    "torch.memory_format": INT, "torch.Generator": GENERATOR, "torch.types.Number": NUMBER,
    "torch.nn.Parameter": TENSOR, "typing.Any": ANY, "torch.classes": ANY, "torch.jit._Await": AwaitType(ANY),
    **{f"torch.{name}Tensor": TENSOR for name in "Bool Byte Char Double Float Half BFloat16 Int Long Short".split()},
}  # fmt: skip
_SPELLED: Final = {
    "list_literal": "list-literal", "tuple_literal": "tuple-literal", "dict_literal": "dict-literal", "if_expr": "if",
    "list_comp": "list comprehension", "dict_comp": "dict comprehension", "slice_expr": "slice expr",
    "unary_minus": "unary minus", "isnot": "is not", "==": "eq", "!=": "ne", "<=": "le", ">=": "ge",
    "**": "pow operator", "//": "floordiv",
}  # fmt: skip
"""Kind of tree -> its name in error messages."""
_BROADCASTING: Final = pattern_of(r"BroadcastingList([1-6])")
_SIZES: Final = pattern_of(r"_size_([1-6])_t")
"""The names of `torch.nn.common_types` for `BroadcastingList2[int]` and the like."""


class TypeReader:
    """Reads annotations; `resolver` knows classes, named tuples and enums."""

    __slots__ = ("resolver",)

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver

    def read(self, tree: Tree) -> Type:
        """The type that the tree spells.  Raises CompileError when it is none."""
        if tree.kind == "variable":
            return self._named(Var(tree).name, tree)
        if tree.kind == "None":
            return NONE
        if tree.kind == "string_literal":
            return self._named(StringLiteral(tree).text, tree)
        if tree.kind == "|":
            return union_of([self.read(part) for part in tree.trees])
        if tree.kind == "subscript":
            return self._subscripted(Subscript(tree))
        name = dotted_name(tree)
        if name is None:
            raise CompileError(
                f"Expression of type {_SPELLED.get(tree.kind, tree.kind)} cannot be used in a type expression",
                tree.range,
                hints=("write a type's name, such as int, Tensor or List[int]",),
            )
        return self._named(name, tree)

    def read_broadcasting(self, tree: Tree) -> tuple[Type, int] | None:
        """`BroadcastingList2[int]`: a list for which one number may stand, and its length; else None."""
        inner = tree
        if inner.kind == "subscript" and dotted_name(Subscript(inner).value) == "Optional":
            inner = Subscript(inner).subscripts[0]
        is_generic = inner.kind == "subscript"
        name = dotted_name(Subscript(inner).value if is_generic else inner)
        match = (_BROADCASTING if is_generic else _SIZES).fullmatch(name or "")
        return (self.read(tree), int(match[1])) if match else None

    def _named(self, name: str, tree: Tree) -> Type:
        known = _NAMES.get(name) or _DOTTED.get(name.removeprefix("engine."))
        if known is not None:
            return known
        if _SIZES.fullmatch(name):
            return ListType(INT)
        found = self.resolver.resolve_type(name, tree.range)
        if found is not None:
            return found
        if (bare := name.rpartition(".")[2]) in _EXAMPLES:
            raise no_contained_type(bare, tree.range)
        known_names = [*_NAMES, *_GENERIC, *_DOTTED, *self.resolver.names()]
        raise CompileError(f"Unknown type name '{name}'", tree.range, hints=hints.type_hints(name, known_names))

    def _subscripted(self, view: Subscript) -> Type:
        generic = dotted_name(view.value)
        if generic is None:
            raise CompileError(
                "Subscripted type must be a type identifier", view.value.range, hints=("write List[int] or the like",)
            )
        name = generic.rpartition(".")[2]
        if name.startswith("BroadcastingList"):
            if not _BROADCASTING.fullmatch(name):
                raise CompileError(
                    f"the length of a BroadcastingList must be a positive integer: {name}",
                    view.range,
                    hints=("write BroadcastingList2[int], or any length up to 6",),
                )
            name = "List"
        wanted = _GENERIC.get(name)
        if wanted is None:
            text = f"Unknown type constructor {view.value.range.text}"
            raise CompileError(text, view.range, hints=hints.type_hints(name, _GENERIC))
        trees = view.subscripts
        if len(trees) == 1 and trees[0].kind == "tuple_literal":
            if name == "Tuple" and trees[0].range.text.startswith("(") and TupleLiteral(trees[0]).inputs:
                raise CompileError(
                    "Tuple literal in Tuple type annotation must not have any elements",
                    trees[0].range,
                    hints=("write Tuple[int, str] without parentheses",),
                )
            trees = TupleLiteral(trees[0]).inputs
        if wanted and len(trees) != wanted:
            number = "one element type" if wanted == 1 else f"{wanted} element types"
            text = f"{name} expected exactly {number} but found {len(trees)}"
            raise CompileError(text, view.range, hints=(f"write {name}[{'str, int' if wanted == 2 else 'int'}]",))
        return _make(name, [self.read(tree) for tree in trees], view)


_GENERIC: Final = {
    "List": 1, "list": 1, "Optional": 1, "Future": 1, "Await": 1, "Dict": 2, "dict": 2, "Tuple": 0, "tuple": 0,
    "Union": 0,
}  # fmt: skip
"""Type constructors and how many types they take; 0 is any number."""


def _make(name: str, parts: Sequence[Type], view: Subscript) -> Type:
    if name in ("List", "list"):
        return ListType(parts[0])
    if name in ("Dict", "dict"):
        if parts[0] not in (STR, INT, FLOAT, COMPLEX, BOOL, TENSOR):
            raise CompileError(
                f"Cannot create dict for key type '{parts[0]}', only int, float, complex, Tensor, "
                "device and string keys are supported",
                view.range,
                hints=("use str(key)",),
            )
        return DictType(parts[0], parts[1])
    if name in ("Tuple", "tuple"):
        return TupleType(tuple(parts))
    if name in ("Future", "Await"):
        return (FutureType if name == "Future" else AwaitType)(parts[0])
    if name == "Union":
        return union_of(parts)
    if name == "Optional" and parts[0] is not NONE:
        return parts[0] if isinstance(parts[0], OptionalType) else OptionalType(parts[0])
    return parts[0]


def dotted_name(tree: Tree) -> str | None:
    """`a.b.c` as text; None when the tree is anything else."""
    name = ""
    while tree.kind == ".":
        view = Select(tree)
        name, tree = f".{view.name}{name}", view.value
    return f"{Var(tree).name}{name}" if tree.kind == "variable" else None


_EXAMPLES: Final = {
    "List": "List[int]", "Dict": "Dict[int, int]", "Tuple": "Tuple[int]", "Optional": "Optional[int]",
    "Future": "Future[int]",
}  # fmt: skip


def no_contained_type(name: str, range: SourceRange | None) -> CompileError:
    """The error for a `List`, `Dict`, `Tuple` or `Optional` that does not say of what."""
    what, add = ("contained types", "contained type") if name == "Dict" else ("a contained type", "a contained type")
    return CompileError(
        f"Attempted to use {name} without {what}. Please add {add}, e.g. {_EXAMPLES[name]}",
        range,
        hints=hints.type_hints(name, ()),
    )
