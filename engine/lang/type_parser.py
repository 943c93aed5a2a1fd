"""Parser for types as graphs and schemas print them.

In: `Float(2, *, strides=[3, 1])`, `Dict(str, int)[]`, `Tensor(a!)?`, as tokens.  Out: a `Type`, which prints back
as the text it was read from; in schemas its alias mark, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from engine.lang import custom_classes, types
from engine.lang.errors import OperatorError, ParseError, did_you_mean
from engine.lang.lexer import Lexer
from engine.lang.literals import LiteralError, number_value
from engine.lang.records import dataclass
from engine.lang.scalars import DTYPE_BY_IR_NAME, device
from engine.lang.schema import AliasInfo
from engine.lang.tokens import Token
from engine.lang.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    VarType,
    union_of,
)

MAX_DEPTH = 64
"""The maximal nesting of types."""

SIMPLE_TYPES: Final[dict[str, Type]] = {
    str(type): type
    for type in (
        types.TENSOR, types.INT, types.FLOAT, types.COMPLEX, types.BOOL, types.STR, types.NONE, types.NUMBER,
        types.DEVICE, types.GENERATOR, types.STREAM, types.STORAGE, types.CAPSULE, types.ANY, types.ANY_LIST,
        types.ANY_TUPLE, types.ANY_ENUM, types.ANY_CLASS,
    )
}  # fmt: skip
SPELLINGS: Final[dict[str, Type]] = {
    "number": NUMBER, "None": NONE, "list": types.ANY_LIST, "tuple": types.ANY_TUPLE,
    "ScalarType": INT, "Layout": INT, "MemoryFormat": INT, "QScheme": INT, "SymInt": INT, "SymFloat": FLOAT,
    "SymBool": BOOL, "Dimname": STR, "Function": SimpleType("Function"),
}  # fmt: skip
"""Other names of types in schemas, most of which say what an `int` means."""

_EMPTY: Final = AliasInfo()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MarkedType:
    """A type as a schema writes it: with an alias mark, the N of `int[N]`, and the names for `int`.

    `declared` is the spelling without the mark; empty when it is `str(type)`.
    """

    type: Type
    mark: AliasInfo | None
    broadcast: int | None
    declared: str


Resolve = Callable[[str], Type | None]
"""Finds the class, enum or interface of a qualified name."""


@dataclass(slots=True)
class TypeParser:
    """Reads types from a lexer, which it shares with other parsers.

    `resolve` finds the classes of qualified names; an unknown name becomes a new class, the same one each
    time.  With `marks`, `Tensor(a!)` is an alias mark and no shape.
    """

    lexer: Lexer
    resolve: Resolve | None = None
    marks: bool = False
    _classes: dict[str, Type] | None = None
    _depth: int = 0

    def parse(self) -> Type:
        """The next type; raises ParseError."""
        return self.parse_marked().type

    def parse_marked(self) -> MarkedType:
        """The next type, with its mark and spelling in a schema."""
        begin = self.lexer.cur
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ParseError("this type is nested too deeply", begin.range)
        type = self._base()
        written = begin.range.source.text[begin.range.start : self.lexer.last_end]
        mark, broadcast = self._mark(), None
        while self.lexer.cur.kind in ("[", "?"):
            if self.lexer.next_if("?"):
                type = type if isinstance(type, OptionalType) else OptionalType(type)
                written += "?"
                continue
            self.lexer.next()
            broadcast = self._integer() if self.lexer.cur.kind == "number" else None
            self.lexer.expect("]")
            type, mark = ListType(type), _container_mark(mark, self._mark())
            written += "[]" if broadcast is None else f"[{broadcast}]"
        self._depth -= 1
        return MarkedType(type, mark, broadcast, "" if written == str(type) else written)

    def _base(self) -> Type:
        """A type without what may follow it: `[]`, `?`, a mark."""
        if self.lexer.next_if("("):
            return TupleType(tuple(self._list(self.parse, ")")))
        token = self.lexer.next()
        composite = _COMPOSITE.get(token.text)
        if composite is not None and self.lexer.cur.kind in ("(", "<", "["):
            return composite(self, token)
        if token.text == "Tensor" or token.text.removesuffix("Tensor") in DTYPE_BY_IR_NAME:
            return self._tensor(token.text)
        known = SIMPLE_TYPES.get(token.text) or SPELLINGS.get(token.text)
        if known is not None:
            return known
        if token.kind != "ident":
            raise self.lexer.unexpected("a type", token)
        if self.lexer.cur.kind == ".":
            return self._named(self._qualified_name(token))
        if token.text[0].islower():
            return VarType(token.text)
        raise self._unknown(token)

    def _unknown(self, token: Token) -> ParseError:
        known = [*SIMPLE_TYPES, *SPELLINGS, *_COMPOSITE, *DTYPE_BY_IR_NAME]
        return ParseError(f"unknown type specifier '{token.text}'", token.range, hints=did_you_mean(token.text, known))

    def _tensor(self, name: str) -> Type:
        """`Float(2, 3)`; `FloatTensor` and `Tensor` tell no rank, and `Float()` is without dimensions."""
        dtype = DTYPE_BY_IR_NAME.get(name.removesuffix("Tensor"))
        if self.marks or not self.lexer.next_if("("):
            return TENSOR if dtype is None else TensorType(dtype)
        sizes: list[int | None] = []
        facts: dict[str, Any] = {}
        for fact in self._list(self._tensor_fact, ")"):
            if isinstance(fact, tuple):
                facts[fact[0]] = fact[1]
            else:
                sizes.append(fact)
        known = sizes or name in DTYPE_BY_IR_NAME or not facts or facts.get("strides") == ()
        if any(size is not None and size < 0 for size in sizes):
            told = tuple(size for size in sizes if size is not None)
            facts["symbols"] = told if len(told) == len(sizes) else None
            sizes = [None if size is None or size < 0 else size for size in sizes]
        return TensorType(dtype, tuple(sizes) if known else None, **facts)

    def _tensor_fact(self) -> int | tuple[str, Any] | None:
        """One size (None for `*`, the negative number of a symbol for `SS(-2)`), or a named fact."""
        if self.lexer.cur.kind != "ident":
            return self._size()
        token = self.lexer.next()
        if token.text == "SS":
            self.lexer.expect("(")
            symbol = self._integer()
            self.lexer.expect(")")
            return symbol
        self.lexer.expect("=")
        if token.text == "strides":
            self.lexer.expect("[")
            return "strides", tuple(self._list(self._size, "]"))
        if token.text == "requires_grad":
            return "requires_grad", bool(self._integer())
        if token.text == "device":
            return "device", self._device()
        raise self.lexer.unexpected("strides, requires_grad or device", token)

    def _size(self) -> int | None:
        return None if self.lexer.next_if("*") else self._integer()

    def _device(self) -> device:
        token = self.lexer.expect("ident")
        try:
            return device(token.text, self._integer() if self.lexer.next_if(":") else None)
        except OperatorError as error:
            raise ParseError(error.message, token.range, hints=error.hints) from None

    def _integer(self) -> int:
        negative = self.lexer.next_if("-")
        token = self.lexer.expect("number")
        try:
            value = number_value(token.text)
        except LiteralError as error:
            raise ParseError(str(error), token.range) from None
        if not isinstance(value, int):
            raise self.lexer.unexpected("an integer", token)
        return -value if negative else value

    def _dict(self, token: Token) -> Type:
        return DictType(*self._parts(token, 2))

    def _future(self, token: Token) -> Type:
        """`Future[int]` as the type of a graph's value, `Future(int)` inside other types and in schemas."""
        if not self.lexer.next_if("["):
            return FutureType(*self._parts(token, 1))
        element = self.parse()
        self.lexer.expect("]")
        return FutureType(element)

    def _await(self, token: Token) -> Type:
        return AwaitType(*self._parts(token, 1))

    def _optional(self, token: Token) -> Type:
        return OptionalType(self._parts(token, 1)[0])

    def _list_type(self, token: Token) -> Type:
        return ListType(*self._parts(token, 1))

    def _union(self, token: Token) -> Type:
        self.lexer.expect("(")
        members = self._list(self.parse, ")")
        if not members:
            raise ParseError("a Union has members", token.range)
        return union_of(members)

    def _named_tuple(self, token: Token) -> Type:
        self.lexer.expect("(")
        fields = self._list(self._field, ")")
        return TupleType(tuple(type for _, type in fields), fields=tuple(name for name, _ in fields))

    def _field(self) -> tuple[str, Type]:
        name = self.lexer.expect("ident").text
        self.lexer.expect(":")
        type = self.parse()
        if self.lexer.next_if("="):
            self._skip_default()
        return name, type

    def _skip_default(self) -> None:
        """Skip the default of a field, which is no part of the type."""
        depth = 0
        while depth or self.lexer.cur.kind not in (",", ")", "eof"):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(self.lexer.next().kind, 0)

    def _enum(self, token: Token) -> Type:
        name = self._bracketed_name()
        return self._resolved(name, lambda: EnumType(name, ANY, ()))

    def _interface(self, token: Token) -> Type:
        name = self._bracketed_name()
        return self._resolved(name, lambda: InterfaceType(name))

    def _bracketed_name(self) -> str:
        self.lexer.expect("<")
        name = self._qualified_name(self.lexer.expect("ident"))
        self.lexer.expect(">")
        return name

    def _qualified_name(self, first: Token) -> str:
        parts = [first.text]
        while self.lexer.next_if("."):
            parts.append(self.lexer.expect("ident").text)
        return ".".join(parts)

    def _named(self, name: str) -> Type:
        return self._resolved(name, lambda: custom_classes.find(name) or ClassType(name))

    def _resolved(self, name: str, make: Callable[[], Type]) -> Type:
        found = self.resolve(name) if self.resolve is not None else None
        if found is not None:
            return found
        if self._classes is None:
            self._classes = {}
        if name not in self._classes:
            self._classes[name] = make()
        return self._classes[name]

    def _parts(self, token: Token, count: int) -> list[Type]:
        self.lexer.expect("(")
        parts = self._list(self.parse, ")")
        if len(parts) != count:
            raise ParseError(f"{token.text} is made of {count} type(s), not {len(parts)}", token.range)
        return parts

    def _list(self, item: Callable[[], _T], end: str) -> list[_T]:
        items: list[_T] = []
        while self.lexer.cur.kind != end:
            items.append(item())
            if not self.lexer.next_if(","):
                break
        self.lexer.expect(end)
        return items

    def _mark(self) -> AliasInfo | None:
        """The mark `(a! -> b|c)`, if marks are read and the next token begins one."""
        if not self.marks or not self.lexer.next_if("("):
            return None
        begin = self.lexer.cur.range
        before, is_write = self._alias_sets()
        after = self._alias_sets()[0] if self.lexer.next_if("->") else before
        written = begin.source.text[begin.start : self.lexer.last_end]
        self.lexer.expect(")")
        return AliasInfo(before, after, is_write, written=written)

    def _alias_sets(self) -> tuple[frozenset[str], bool]:
        sets, is_write = [], False
        while True:
            sets.append("*" if self.lexer.next_if("*") else self.lexer.expect("ident").text)
            is_write |= self.lexer.next_if("!")
            if not self.lexer.next_if("|"):
                return frozenset(sets), is_write


_COMPOSITE: Final[dict[str, Callable[[TypeParser, Token], Type]]] = {
    "Dict": TypeParser._dict,
    "Future": TypeParser._future,
    "Await": TypeParser._await,
    "Optional": TypeParser._optional,
    "List": TypeParser._list_type,
    "Union": TypeParser._union,
    "NamedTuple": TypeParser._named_tuple,
    "Enum": TypeParser._enum,
    "InterfaceType": TypeParser._interface,
}


def _container_mark(elements: AliasInfo | None, outer: AliasInfo | None) -> AliasInfo | None:
    """The mark of a list: its own, and that of its elements."""
    if elements is None:
        return outer
    own = outer or _EMPTY
    return replace(own, elements=(elements,))
