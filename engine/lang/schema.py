"""Schemas: the arguments and results of functions and operators, as data.

In: names, types, defaults, alias marks.  Out: a `FunctionSchema` that prints as the text it was read
from.  `schema_parser` reads the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

from engine.lang.records import dataclass
from engine.lang.types import ListType, OptionalType, TensorType, Type


class _NoDefault:
    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()
"""Marks an argument without default; None is a default like any other."""


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """The alias mark of one argument or result: `(a! -> b|c)`.

    `before` and `after` are the sets it belongs to before and after the call ("*" is the wildcard),
    `is_write` whether the call writes to it, `elements` the mark of what a container holds; `written` is
    the mark as its schema's text spells it, empty where there was no text.
    """

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    is_write: bool = False
    elements: tuple[AliasInfo, ...] = ()
    written: str = field(default="", compare=False)

    @property
    def is_wildcard(self) -> bool:
        return "*" in self.before or "*" in self.after

    def __str__(self) -> str:
        if self.written:
            return f"({self.written})"
        before = "|".join(sorted(self.before)) + ("!" if self.is_write else "")
        return f"({before})" if self.after == self.before else f"({before} -> {'|'.join(sorted(self.after))})"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument or result.

    `broadcast` is the N of `int[N]`: there a single number stands for a list of N.
    """

    name: str
    type: Type
    default: Any = NO_DEFAULT
    kwarg_only: bool = False
    alias: AliasInfo | None = None
    broadcast: int | None = None
    declared: str = ""
    """The type as its schema's text spells it (`ScalarType` is an `int` to programs); empty when it is `str(type)`."""
    declared_default: str = field(default="", compare=False)
    """The default as its schema's text spells it (`1` for an `int[2]`); empty where there was no text."""
    is_inferred: bool = field(default=False, compare=False)
    """True for a parameter that is a tensor because it has no annotation."""

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT

    def mismatch(self, found: str) -> str:
        """The words of the refusal of a value of another type, `found` being the text of its type."""
        wanted = f"{self.type.annotation_str} (inferred)" if self.is_inferred else self.type.annotation_str
        text = f"Expected a value of type '{wanted}' for argument '{self.name}' but instead found type '{found}'."
        if self.is_inferred:
            text += (
                f"\nInferred '{self.name}' to be of type '{self.type.annotation_str}' because it was not annotated "
                "with an explicit type."
            )
        return text

    @property
    def is_undefined_by_default(self) -> bool:
        """True for a tensor that may be left out all the same, as `m: Tensor = None` in Python allows."""
        return self.default is None and isinstance(self.type, TensorType)

    @property
    def is_write(self) -> bool:
        return self.alias is not None and self.alias.is_write


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """A signature.  `name` is qualified (`aten::add`, or a TorchScript function's own name)."""

    name: str
    overload: str = ""
    arguments: tuple[Argument, ...] = ()
    returns: tuple[Argument, ...] = ()
    is_vararg: bool = False
    is_varret: bool = False
    _index: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._index.update((argument.name, i) for i, argument in enumerate(self.arguments))

    @property
    def is_mutable(self) -> bool:
        """True if a call writes to any of its arguments, or to what a list among them holds."""
        marks = [argument.alias for argument in self.arguments if argument.alias is not None]
        return any(mark.is_write or any(each.is_write for each in mark.elements) for mark in marks)

    @property
    def qualified_name(self) -> str:
        """`aten::add.Tensor`."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def index_of(self, name: str) -> int | None:
        return self._index.get(name)

    def gap_to_method(self, wanted: FunctionSchema) -> str | None:
        """The first reason, in words, why a method with this schema cannot implement one declared with `wanted`, apart
        from `self`; None if it can."""
        mine, theirs = self.arguments[1:], wanted.arguments[1:]
        if len(mine) != len(theirs):
            return f"it takes {len(mine)} argument{'' if len(mine) == 1 else 's'}, and not {len(theirs)}"
        for m, t in zip(mine, theirs, strict=True):
            if m.name != t.name:
                return f"its argument '{m.name}' has to be called '{t.name}'"
            if not t.type.is_subtype_of(m.type):
                return f"its argument '{m.name}' is of type {m.type.annotation_str}, and not {t.type.annotation_str}"
        if len(self.returns) != len(wanted.returns):
            return f"it returns {len(self.returns)} values, and not {len(wanted.returns)}"
        for m, t in zip(self.returns, wanted.returns, strict=True):
            if not m.type.is_subtype_of(t.type):
                return f"it returns {m.type.annotation_str}, and not {t.type.annotation_str}"
        return None

    def __str__(self) -> str:
        parts: list[str] = []
        for argument in self.arguments:
            if argument.kwarg_only and "*" not in parts:
                parts.append("*")
            parts.append(_argument_text(argument))
        if self.is_vararg:
            parts.append("...")
        return f"{self.qualified_name}({', '.join(parts)}) -> {_returns_text(self.returns, self.is_varret)}"


def _type_text(argument: Argument) -> str:
    text = argument.declared or str(argument.type)
    if not argument.declared and argument.broadcast is not None:
        text = text.removesuffix("?").removesuffix("]") + f"{argument.broadcast}]" + "?" * text.endswith("?")
    return _marked(text, argument.type, argument.alias)


def _marked(text: str, type: Type, alias: AliasInfo | None) -> str:
    """The type's text with its alias mark: `Tensor(a!)`, `Tensor(a)[]`, `t[](a!)`, `Tensor(a)?`."""
    if alias is None:
        return text
    if isinstance(type, OptionalType):
        return _marked(text.removesuffix("?"), type.element, alias) + "?"
    if not isinstance(type, ListType) or not alias.elements:
        return f"{text}{alias}"
    at = text.rindex("[")
    own = alias if alias.before or alias.after else ""
    return f"{_marked(text[:at], type.element, alias.elements[0])}{text[at:]}{own}"


def _argument_text(argument: Argument) -> str:
    text = f"{_type_text(argument)} {argument.name}"
    if argument.is_undefined_by_default:
        return f"{text}=[ Tensor (undefined) ]"
    return text + (f"={argument.declared_default or default_text(argument.default)}" if argument.has_default else "")


_WHOLE: Final = 2.0**63
_ESCAPES = str.maketrans({'"': '\\"', "'": "\\'", "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\f": "\\f", "\v": "\\v"})


def default_text(value: Any) -> str:
    """The text of a default value: `2.` and 17 digits, `(1, 2.)`, `"a"`, a member of an Enum as `Enum<Color.RED>`."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, list):
        return f"[{', '.join(map(default_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(default_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {part}' for key, part in value.items())}}}"
    if isinstance(value, float):
        return f"{int(value)}." if value.is_integer() and abs(value) < _WHOLE else f"{value:.17g}"
    return str(value)


def _returns_text(returns: Sequence[Argument], is_varret: bool) -> str:
    parts = [_type_text(r) + (f" {r.name}" if r.name else "") for r in returns]
    if is_varret:
        return ", ".join([*parts, "..."])
    return parts[0] if len(parts) == 1 and parts[0][0] != "(" else f"({', '.join(parts)})"
