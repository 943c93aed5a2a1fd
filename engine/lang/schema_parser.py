"""Parser for the text of operator schemas and of types.

In: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, or `Dict(str, int)[]`.  Out: a
`FunctionSchema` or a `Type`, which print back as the text they were read from.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from engine.lang.deferred import pattern_of
from engine.lang.errors import OperatorError, ParseError, SchemaError
from engine.lang.lexer import Lexer
from engine.lang.literals import LiteralError, number_value, string_value
from engine.lang.scalars import DTYPE_ALIASES, DTYPE_BY_NAME, MEMORY_FORMATS, STRIDED, device
from engine.lang.schema import NO_DEFAULT, Argument, FunctionSchema
from engine.lang.source import Source, SourceRange
from engine.lang.type_parser import Resolve, TypeParser
from engine.lang.types import BOOL, COMPLEX, DEVICE, FLOAT, INT, STR, ListType, OptionalType, Type

__all__ = ["TypeParser", "parse_schema", "parse_type"]

_T = TypeVar("_T")

WORD_DEFAULTS: Final[dict[str, Any]] = {
    "None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan, "cpu": "cpu", "cuda": "cuda",
    "Mean": 1, "Sum": 2, "strided": STRIDED,
    **MEMORY_FORMATS, **{name: d.number for name, d in {**DTYPE_BY_NAME, **DTYPE_ALIASES}.items()},
}  # fmt: skip
"""Words that stand for a default value."""

_NAME = pattern_of(r"(?P<name>__torch__(?:\.\w+)+|(?:\w+::)*\w+)(?:\.(?P<overload>\w+))?\s*")


def parse_type(text: str, resolve: Resolve | None = None) -> Type:
    """The type that `text` spells as graphs print it; `resolve` finds classes by name.  Raises SchemaError."""
    return _read_whole(text, lambda lexer: TypeParser(lexer, resolve).parse())


def parse_schema(text: str, resolve: Resolve | None = None) -> FunctionSchema:
    """The schema that `text` spells; `resolve` finds classes by name.  Raises SchemaError."""
    found = _put_together(text) if resolve is None else None
    return found or _read_whole(text, lambda lexer: _SchemaParser(lexer, resolve).parse())


class _SchemaParser:
    """Reads one schema."""

    def __init__(self, lexer: Lexer, resolve: Resolve | None) -> None:
        self.lexer = lexer
        self.types = TypeParser(lexer, resolve, marks=True)

    def parse(self) -> FunctionSchema:
        name, overload = self._name()
        arguments, is_vararg = self._arguments()
        self.lexer.expect("->")
        returns, is_varret = self.returns()
        return FunctionSchema(name, overload, arguments, returns, is_vararg, is_varret)

    def _name(self) -> tuple[str, str]:
        begin = self.lexer.cur.range
        while self.lexer.cur.kind not in ("(", "eof"):
            self.lexer.next()
        text = begin.source.text[begin.start : self.lexer.cur.start]
        match = _NAME.fullmatch(text)
        if match is None:
            raise ParseError(f"'{text}' is no operator name", SourceRange(begin.source, begin.start, begin.start + 1))
        return match["name"], match["overload"] or ""

    def _arguments(self) -> tuple[tuple[Argument, ...], bool]:
        arguments: list[Argument] = []
        kwarg_only = is_vararg = False
        self.lexer.expect("(")
        while self.lexer.cur.kind != ")" and not is_vararg:
            if self.lexer.next_if("*"):
                kwarg_only = True
            elif self.lexer.next_if("..."):
                is_vararg = True
            else:
                arguments.append(self.argument(kwarg_only))
            if not self.lexer.next_if(","):
                break
        self.lexer.expect(")")
        return tuple(arguments), is_vararg

    def argument(self, kwarg_only: bool) -> Argument:
        read = self.types.parse_marked()
        name = self._word("a name for the argument")
        default, written = NO_DEFAULT, ""
        if self.lexer.next_if("="):
            begin = self.lexer.cur.range
            default = self._default()
            place = SourceRange(begin.source, begin.start, self.lexer.last_end)
            default, written = _fitted(default, read.type, read.broadcast, place), place.text
        return Argument(name, read.type, default, kwarg_only, read.mark, read.broadcast, read.declared, written)

    def returns(self) -> tuple[tuple[Argument, ...], bool]:
        if self.lexer.next_if("..."):
            return (), True
        if not self.lexer.next_if("("):
            return (self._return(),), False
        returns: list[Argument] = []
        while self.lexer.cur.kind not in (")", "..."):
            returns.append(self._return())
            if not self.lexer.next_if(","):
                break
        is_varret = self.lexer.next_if("...")
        self.lexer.expect(")")
        return tuple(returns), is_varret

    def _return(self) -> Argument:
        read = self.types.parse_marked()
        name = "" if self.lexer.cur.kind in (",", ")", "newline", "eof") else self._word("a name")
        return Argument(name, read.type, alias=read.mark, broadcast=read.broadcast, declared=read.declared)

    def _word(self, wanted: str) -> str:
        """A name; the language's keywords are names like others here."""
        if not self.lexer.cur.text.isidentifier():
            raise self.lexer.unexpected(wanted)
        return self.lexer.next().text

    def _default(self) -> Any:
        if not self.lexer.next_if("["):
            return self._default_item()
        items: list[Any] = []
        while self.lexer.cur.kind != "]":
            items.append(self._default_item())
            if not self.lexer.next_if(","):
                break
        self.lexer.expect("]")
        return items

    def _default_item(self) -> Any:
        negative = self.lexer.next_if("-")
        token = self.lexer.next()
        try:
            if token.kind == "string" and not negative:
                return sys.intern(string_value(token.text))  # which calls tell by identity
            value = number_value(token.text) if token.kind == "number" else WORD_DEFAULTS[token.text]
        except LiteralError as error:
            raise ParseError(str(error), token.range) from None
        except KeyError:
            raise self.lexer.unexpected("a default value", token) from None
        if negative and not isinstance(value, (int, float, complex)):
            raise self.lexer.unexpected("a number", token)
        return -value if negative else value


_FITS: Final[dict[Type, tuple[type, ...]]] = {
    INT: (int,), FLOAT: (int, float), COMPLEX: (int, float, complex), STR: (str,), BOOL: (bool,), DEVICE: (str,),
}  # fmt: skip
_CONVERT: Final[dict[Type, Callable[[Any], Any]]] = {FLOAT: float, COMPLEX: complex, DEVICE: device}


def _fitted(value: Any, type: Type, broadcast: int | None, place: SourceRange) -> Any:
    """The default value as one of the argument's type: `1` is `1.0` for a float, `[1, 1]` for an `int[2]`."""
    if isinstance(type, OptionalType):
        return None if value is None else _fitted(value, type.element, broadcast, place)
    if isinstance(type, ListType):
        if not isinstance(value, list) and broadcast is None:
            raise ParseError(f"this default is no {type}", place)
        items = value if isinstance(value, list) else [value] * (broadcast or 0)
        return [_fitted(item, type.element, None, place) for item in items]
    fits = _FITS.get(type, (object,))
    if isinstance(value, list) or not isinstance(value, fits) or (isinstance(value, bool) and bool not in fits):
        raise ParseError(f"this default is no {type}", place)
    try:
        return _CONVERT[type](value) if type in _CONVERT else value
    except OperatorError as error:
        raise ParseError(error.message, place, hints=error.hints) from None


# ------------------------------------------------------------------ schemas put together

_PARTS: Final = pattern_of(r"((?:\w+::)*\w+)(?:\.(\w+))?\((.*)\) -> (.+)")


def _put_together(text: str) -> FunctionSchema | None:
    """The schema, of arguments that are read once each, as most stand in many schemas; None for uncommon texts."""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None
    name, overload, between, returns = parts.groups()
    pieces = _pieces(between)
    is_vararg = pieces[-1:] == ["..."]
    named_from = pieces.index("*") if "*" in pieces else len(pieces)
    try:
        arguments = tuple(
            _argument_of(piece, i > named_from)
            for i, piece in enumerate(pieces[: len(pieces) - is_vararg])
            if i != named_from
        )
        return FunctionSchema(name, overload or "", arguments, *_returns_of(returns, is_vararg))
    except SchemaError:
        return None


def _pieces(text: str) -> list[str]:
    """The parts of a list of arguments: it is cut at the commas that are in no brackets."""
    pieces: list[str] = []
    is_open = False
    for part in text.split(", ") if text else ():
        pieces[-1:] = [f"{pieces[-1]}, {part}"] if is_open else [*pieces[-1:], part]
        is_open = any(pieces[-1].count(a) != pieces[-1].count(b) for a, b in ("()", "[]"))
    return pieces


@cache
def _argument_of(text: str, kwarg_only: bool) -> Argument:
    return _read_whole(text, lambda lexer: _SchemaParser(lexer, None).argument(kwarg_only))


@cache
def _returns_of(text: str, is_vararg: bool) -> tuple[tuple[Argument, ...], bool, bool]:
    returns, is_varret = _read_whole(text, lambda lexer: _SchemaParser(lexer, None).returns())
    return returns, is_vararg, is_varret


def _read_whole(text: str, read: Callable[[Lexer], _T]) -> _T:
    """The result of `read`, which must read the whole text."""
    try:
        lexer = Lexer(Source(text))
        found = read(lexer)
        lexer.next_if("newline")
        lexer.expect("eof")
    except ParseError as error:
        raise SchemaError(error.message, error.range, hints=error.hints) from None
    return found
