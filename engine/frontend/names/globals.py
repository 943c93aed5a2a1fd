"""The names that every program knows without importing them.

In: a name.  Out: the function, cast or special form that it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.classes import ExceptionClass
from engine.frontend.sugared.slices import SliceClass
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import BuiltinFunction, MethodValue, SimpleValue, SpecialForm
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import BOOL, COMPLEX, FLOAT, INT, STR, ClassType, DictType, ListType, Type


class Magic(SugaredValue):
    """A function that a class may implement by a method: `len(x)` by `x.__len__()`."""

    __slots__ = ("fallback", "method")
    kind = "function"

    def __init__(self, method: str, fallback: SugaredValue) -> None:
        self.method, self.fallback = method, fallback

    def describe(self) -> str:
        return self.method

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        target = args[0].value if args else None
        if target is None or not isinstance(target.type, ClassType):
            return self.fallback.call(b, args, kwargs, range)
        if self.method not in target.type.methods:
            text = f"'{target.type.annotation_str}' object has no attribute or method '{self.method}'"
            reason = target.type.unresolved.get(self.method)
            raise CompileError(text, range, hints=[reason or f"define {self.method} in the class"])
        return MethodValue(target, self.method).call(b, args[1:], kwargs, range)


class Cast(BuiltinFunction):
    """`int`, `float`, `bool`, …; a value that has the type already is unchanged.

    `bool` of a container or a string is False if that is empty.
    """

    __slots__ = ("type",)
    kind = "cast"

    def __init__(self, type: Type, operator: str) -> None:
        super().__init__(operator)
        self.type = type

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        if len(args) == 1 and not kwargs:
            # Mostly unused, and removed later; until then it separates two Ifs that could be merged otherwise.
            zero = b.constant(0, range)
            value = args[0].value
            if value.type.is_subtype_of(self.type):
                return SimpleValue(value)
            if self.type is BOOL and (isinstance(value.type, (ListType, DictType)) or value.type is STR):
                return SimpleValue(b.insert("aten::gt", [b.insert("aten::len", [value], range), zero], range))
        return super().call(b, args, kwargs, range)


class Print(SugaredValue):
    """`print`."""

    __slots__ = ()
    kind = "function"

    def describe(self) -> str:
        return "print"

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        if kwargs:
            hints = ("print puts a blank between its arguments, and ends the line; join text with + before",)
            raise CompileError("print doesn't accept any keyword arguments", range, hints=hints)
        b.node("prim::Print", [arg.value for arg in args], (), range)
        return Nothing()


class Nothing(SugaredValue):
    """The result of a call that returns nothing."""

    __slots__ = ()
    kind = "None"


_OPERATORS: Final = {
    "hash": "aten::hash", "id": "prim::id", "min": "prim::min", "max": "prim::max", "abs": "prim::abs",
    "all": "aten::all", "any": "aten::any", "divmod": "aten::divmod", "sum": "aten::sum", "ord": "aten::ord",
    "chr": "aten::chr", "bin": "aten::bin", "pow": "aten::pow",
    "sorted": "aten::sorted", "rangelist": "prim::rangelist",
}  # fmt: skip
_MAGIC: Final = {"len": "aten::len", "hex": "aten::hex", "oct": "aten::oct", "round": "aten::round"}
_CASTS: Final = {
    "int": (INT, "aten::Int"), "float": (FLOAT, "aten::Float"), "bool": (BOOL, "aten::Bool"), "str": (STR, "aten::str"),
    "complex": (COMPLEX, "aten::Complex"),
}  # fmt: skip
_FORMS: Final = ("isinstance", "hasattr", "getattr", "tuple", "list", "dict", "range", "zip", "enumerate")

GLOBALS: Final[dict[str, SugaredValue]] = {
    "print": Print(),
    "slice": SliceClass(),
    "AssertionError": ExceptionClass("AssertionError"),
    **{name: BuiltinFunction(operator) for name, operator in _OPERATORS.items()},
    **{name: Magic(f"__{name}__", BuiltinFunction(operator)) for name, operator in _MAGIC.items()},
    **{name: Magic(f"__{name}__", Cast(type, operator)) for name, (type, operator) in _CASTS.items()},
    **{name: SpecialForm(name) for name in _FORMS},
}
