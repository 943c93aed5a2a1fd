"""From tokens to the trees of expressions: top-down operator precedence ("Pratt") parsing.

In: a lexer.  Out: a `Tree` for the expression that begins at its cursor.  Each operator has a precedence;
`parse(precedence)` reads the operators that bind tighter than that.

Note [Two grammars]: TorchScript's own text grammar gives `and` and `or` one precedence, lets `~` bind as
loosely as `not`, and makes `for` an operator (hence `[a if b else c for x in y]` is a conditional whose last
part is a comprehension).  Archives and `CompilationUnit` use that grammar.  `extended` adds the forms that only
Python has (f-strings, `+x`, Python's number and string literals, comprehensions in their own brackets); a form that
both have keeps its meaning in TorchScript's text: `1 < x < 5` is `(1 < x) < 5` (there are `cautions` for these).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.frontend.syntax.desugar import compared, formatted
from engine.frontend.syntax.tree import Tree, without_bracket
from engine.frontend.syntax.views import (
    Apply,
    Attribute,
    Const,
    DictComp,
    DictLiteral,
    DictRow,
    ListComp,
    ListLiteral,
    ListRow,
    Select,
    SliceExpr,
    Starred,
    Subscript,
    TernaryIf,
    TupleLiteral,
    Var,
)
from engine.lang.deferred import deferred
from engine.lang.errors import NotSupportedError, ParseError
from engine.lang.interpreter_settings import MAX_NESTING
from engine.lang.lexer import Lexer
from engine.lang.literals import LiteralError, number_value, python_value, string_value
from engine.lang.source import SourceRange
from engine.lang.tokens import Token

if TYPE_CHECKING:
    from engine.frontend.syntax import fstrings
else:
    fstrings = deferred("engine.frontend.syntax.fstrings")


class Grammar(NamedTuple):
    """The precedences of operators, before one operand and between two."""

    unary: dict[str, int]
    binary: dict[str, int]


_COMPARISONS: Final = ("in", "not in", "is", "is not", "<", ">", "<=", ">=", "==", "!=")
_LEVELS: Final[tuple[tuple[str, ...], ...]] = (
    ("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "/", "//", "%", "@"), ("**",),
)  # fmt: skip


def _binary(*lowest: tuple[str, ...]) -> dict[str, int]:
    return {kind: level for level, kinds in enumerate((*lowest, *_LEVELS), 1) for kind in kinds}


_TEXT = _binary(("if", "for"), ("and", "or"), (), _COMPARISONS)
_CELL = _binary(("if",), ("and", "or"), (), _COMPARISONS)
TEXT_GRAMMAR: Final = Grammar({"not": 3, "~": 3, "-": _TEXT["*"], "*": _TEXT["*"]}, _TEXT)
EXTENDED_GRAMMAR: Final = Grammar({"not": 3, "~": 3, "-": _CELL["*"], "+": _CELL["*"], "*": _CELL["|"] - 1}, _CELL)
_RIGHT_ASSOCIATIVE: Final = ("**", "if")
_POSTFIX: Final = frozenset([".", "(", "[", "number"])
_ENDS_TUPLE: Final = frozenset([")", "]", "}", "=", ":", "newline", "eof", ";"])
_WORDS: Final = {"True": "True", "False": "False", "None": "None", "...": "dots"}
_STRING_PREFIXES: Final = frozenset(["r", "u", "f", "b", "rf", "fr", "rb", "br"])


class Expressions:
    """Reads expressions from the lexer."""

    def __init__(self, lexer: Lexer, *, extended: bool = False) -> None:
        self.lexer = lexer
        self.extended = extended
        self.grammar = EXTENDED_GRAMMAR if extended else TEXT_GRAMMAR
        self._nesting = 0
        self._bare: Tree | None = None
        """The last comprehension that was read without its brackets."""

    def enter(self) -> None:
        """Go one bracket, operator or block deeper; `leave` undoes it."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise ParseError("nested too deeply", self.lexer.cur.range)

    def leave(self) -> None:
        self._nesting -= 1

    def since(self, start: int) -> SourceRange:
        """From offset `start` to the end of the last token read."""
        return SourceRange(self.lexer.source, start, self.lexer.last_end)

    def parse(self, precedence: int = 0) -> Tree:
        """The expression at the cursor, as far as its operators bind tighter than `precedence`."""
        self.enter()
        lexer, binary = self.lexer, self.grammar.binary
        start = lexer.cur.start
        left = self._operand(start)
        while (level := binary.get(lexer.cur.kind, 0)) > precedence:
            operator = lexer.next().kind
            left = self._infix(operator, left, start, level - 1 if operator in _RIGHT_ASSOCIATIVE else level)
        self._nesting -= 1
        return left

    def parse_tuple(self) -> Tree:
        """An expression, or several with commas: a tuple that needs no brackets."""
        start = self.lexer.cur.start
        first = self.parse()
        if self.lexer.cur.kind != ",":
            return first
        items = [first, *self._after_comma()]
        return TupleLiteral.make(without_bracket(self.since(start), items, -1), items)

    def _after_comma(self) -> list[Tree]:
        """The items of a tuple after its first."""
        items: list[Tree] = []
        while self.lexer.next_if(",") and self.lexer.cur.kind not in _ENDS_TUPLE:
            items.append(self.parse())
        return items

    def parse_target(self) -> Tree:
        """The target of a loop, which ends before `in`."""
        return self.parse(self.grammar.binary["in"])

    # --- operators ---

    def _operand(self, start: int) -> Tree:
        level = self.grammar.unary.get(self.lexer.cur.kind)
        if level is None:
            return self._postfix(self._base(), start)
        operator = self.lexer.next().kind
        operand = self.parse(level)
        range = self.since(start)
        if operator == "+":
            return operand
        if operator == "*":
            return Starred.make(range, operand)
        if operator == "-":
            return self._negated(operand, range)
        return Tree(operator, (operand,), range)

    def _negated(self, operand: Tree, range: SourceRange) -> Tree:
        """`-x`; the sign of a literal becomes part of it."""
        if operand.kind != "const" or (self.extended and operand.text[0] == "-"):
            return Tree("unary_minus", (operand,), range)
        return Const.make(range, "-" + operand.text)

    def _infix(self, operator: str, left: Tree, start: int, level: int) -> Tree:
        if operator == "if":
            return self._ternary(left, start, level)
        if operator == "for":
            return self._comprehension(left, start)
        if operator not in _COMPARISONS:
            return Tree(operator, (left, self.parse(level)), self.since(start))
        return compared(operator, left, self.parse(level), self.since(start))

    def _ternary(self, true_value: Tree, start: int, level: int) -> Tree:
        condition = self.parse(self.grammar.binary["if"] if self.extended else 0)
        self.lexer.expect("else")
        false_value = self.parse(level)
        return TernaryIf.make(self.since(start), condition, true_value, false_value)

    def _comprehension(self, element: Tree, start: int) -> Tree:
        """The rest of `element for target in iterable` after the `for`."""
        target = self.parse_tuple_target() if self.extended else self.parse_target()
        self.lexer.expect("in")
        iterable = self.parse(self.grammar.binary["if"] if self.extended else 0)
        if self.extended and self.lexer.cur.kind in ("if", "for"):
            raise NotSupportedError(
                "comprehensions have one `for` and no `if`", self.lexer.cur.range, hints=("write a loop instead",)
            )
        return ListComp.make(self.since(start), element, target, iterable)

    def parse_tuple_target(self) -> Tree:
        """`i, j` before `in`."""
        start = self.lexer.cur.start
        items = [self.parse_target()]
        if self.lexer.cur.kind != ",":
            return items[0]
        while self.lexer.next_if(","):
            if self.lexer.cur.kind == "in":
                break
            items.append(self.parse_target())
        return TupleLiteral.make(without_bracket(self.since(start), items, -1), items)

    # --- operands ---

    def _postfix(self, value: Tree, start: int) -> Tree:
        """The value with the `.name`, `(...)` and `[...]` that follow it."""
        while True:
            kind = self.lexer.cur.kind
            if kind not in _POSTFIX:
                return value
            if kind == ".":
                self.lexer.next()
                name = self.ident()
                value = Select.make(self.since(start), value, name)
            elif kind == "(":
                bracket = self.lexer.cur.end
                inputs, attributes = self._arguments()
                range = without_bracket(self.since(start), [*inputs, *attributes], bracket)
                value = Apply.make(range, value, inputs, attributes)
            elif kind == "[":
                subscripts = self._subscripts()
                value = Subscript.make(self.since(start), value, subscripts)
            elif kind == "number" and self._is_part():
                token = self.lexer.next()
                value = Select.make(self.since(start), value, token.text[1:])
            else:
                return value

    def _is_part(self) -> bool:
        """True before the number in `m.layers.0`, as paths to modules are written."""
        token = self.lexer.cur
        text = token.text
        before = token.source.text[token.start - 1 : token.start]
        return self.extended and text[:1] == "." and text[1:].isdecimal() and (before.isalnum() or before in ("_", "]"))

    def ident(self) -> Tree:
        """A name, as `(ident name)`."""
        token = self.lexer.expect("ident")
        return Tree("ident", (token.text,), token.range)

    def _base(self) -> Tree:
        token = self.lexer.cur
        read = _BASES.get(token.kind)
        if read is not None:
            return read(self)
        if self.extended and self._prefixed():
            return self._strings()
        if token.text == "Ellipsis":
            self.lexer.next()
            return Tree("dots", (), token.range)
        name = self.ident()
        return Var.make(name.range, name)

    def _word(self) -> Tree:
        token = self.lexer.next()
        return Tree(_WORDS[token.kind], (), token.range)

    def _number(self) -> Tree:
        token = self.lexer.next()
        python = self.extended and not token.text.isdigit()
        value = self._value(python_value if python else number_value, token)
        return Const.make(token.range, repr(value))

    def _strings(self) -> Tree:
        """One string literal, or several in a row, which are one."""
        start = self.lexer.cur.start
        pieces: list[str | Tree] = []
        while self.lexer.cur.kind == "string" or (self.extended and self._prefixed()):
            pieces += self._string_pieces()
        return formatted(pieces, self.since(start))

    def _prefixed(self) -> bool:
        """True if the current token is the prefix of the string after it."""
        prefix, following = self.lexer.cur, self.lexer.lookahead()
        touches = following.kind == "string" and following.start == prefix.end
        return touches and prefix.text.lower() in _STRING_PREFIXES

    def _string_pieces(self) -> list[str | Tree]:
        """The text of one literal; of an f-string the expressions in it, too."""
        letters = self.lexer.next().text.lower() if self.lexer.cur.kind == "ident" else ""
        token = self.lexer.next()
        if "b" in letters:
            raise NotSupportedError("bytes literals are not supported", token.range, hints=("use a str",))
        if "f" in letters:
            pieces = fstrings.split(token)
        else:
            pieces = [token.text]
        prefix = "r" if "r" in letters else ""
        return [
            self._decoded(token._replace(text=prefix + piece)) if isinstance(piece, str) else self._nested(piece)
            for piece in pieces
        ]

    def _nested(self, range: SourceRange) -> Tree:
        """The expression in the range, which lies inside an f-string."""
        inner = Expressions(Lexer(range.source, extended=True, begin=range.start, end=range.end), extended=True)
        inner._nesting = self._nesting
        tree = inner.parse_tuple()
        inner.lexer.next_if("newline")
        inner.lexer.expect("eof")
        return tree

    def _decoded(self, token: Token) -> str:
        archived = partial(string_value, archived=token.source.is_generated)
        return str(self._value(python_value if self.extended else archived, token))

    def _value(self, decode: Callable[[str], object], token: Token) -> object:
        try:
            return decode(token.text)
        except LiteralError as error:
            raise ParseError(str(error), token.range) from None

    # --- brackets ---

    def _paren(self) -> Tree:
        start = self.lexer.next().start
        if self.lexer.next_if(")"):
            return TupleLiteral.make(self.since(start), [])
        first = self._element()
        if self.lexer.cur.kind != ",":
            self.lexer.expect(")")
            return first
        items = [first, *self._after_comma()]
        self.lexer.expect(")")
        return TupleLiteral.make(without_bracket(self.since(start), items, -1), items)

    def _list(self) -> Tree:
        start = self.lexer.next().start
        if self.lexer.cur.kind == "row":
            return ListRow.make(*self._row(start, "]"))
        items = self.items("]", self._element)
        range = self.since(start)
        if not any(map(self._is_comprehension, items)):
            return ListLiteral.make(without_bracket(range, items, -1), items)
        if len(items) > 1:
            raise ParseError(
                "expected a single list comprehension within '[' , ']'",
                range,
                hints=("a comprehension stands alone in its brackets",),
            )
        return Tree("list_comp", items[0].children, range)

    def _element(self) -> Tree:
        """An element of a list or call, or the comprehension that makes them all."""
        start = self.lexer.cur.start
        element = self.parse()
        if not self.extended or not self.lexer.next_if("for"):
            return element
        self._bare = self._comprehension(element, start)
        return self._bare

    def _is_comprehension(self, item: Tree) -> bool:
        """True if the brackets around the item belong to it: text reads `[[i for i in x]]` as `[i for i in x]`."""
        return item is self._bare if self.extended else item.kind == "list_comp"

    def _dict(self) -> Tree:
        start = self.lexer.next().start
        if self.lexer.cur.kind == "row":
            return DictRow.make(*self._row(start, "}"))
        keys: list[Tree] = []
        values: list[Tree] = []
        while self.lexer.cur.kind != "}" or (keys and not self.extended):
            keys.append(self.parse())
            self.lexer.expect(":")
            values.append(self._element())
            if not self.lexer.next_if(","):
                break
        self.lexer.expect("}")
        if len(values) == 1 and self._is_comprehension(values[0]):
            parts = ListComp(values[0])
            return DictComp.make(self.since(start), keys[0], parts.element, parts.target, parts.iterable)
        return DictLiteral.make(without_bracket(self.since(start), values, -1), keys, values)

    def _row(self, start: int, end: str) -> tuple[SourceRange, str]:
        """The range of a list or dict of many literals, and the text of these."""
        row = self.lexer.next()
        self.lexer.expect(end)
        return self.since(start).underlined_to(row.end), row.text

    def _arguments(self) -> tuple[list[Tree], list[Tree]]:
        """The arguments in the brackets of a call: values, and `name=value`s."""
        self.lexer.next()
        inputs: list[Tree] = []
        attributes: list[Tree] = []
        while self.lexer.cur.kind != ")":
            if self.lexer.cur.kind == "ident" and self.lexer.lookahead().kind == "=":
                attributes.append(self._attribute())
            else:
                inputs.append(self._element())
            if not self.lexer.next_if(","):
                break
        self.lexer.expect(")")
        return inputs, attributes

    def _attribute(self) -> Tree:
        name = self.ident()
        self.lexer.next()
        value = self.parse()
        return Attribute.make(self.since(name.range.start), name, value)

    def _subscripts(self) -> list[Tree]:
        bracket = self.lexer.next()
        items = self.items("]", self._subscript)
        if not items:
            raise ParseError(
                "an index is missing between '[' and ']'",
                self.since(bracket.start),
                hints=("write x[i], or x[:] for all",),
            )
        return items

    def _subscript(self) -> Tree:
        """An index, or a slice `start:end:step` any part of which may be missing."""
        start = self.lexer.cur.start
        first = None if self.lexer.cur.kind == ":" else self.parse()
        if first is not None and self.lexer.cur.kind != ":":
            return first
        parts = [first]
        while len(parts) < 3 and self.lexer.next_if(":"):
            parts.append(None if self.lexer.cur.kind in (":", ",", "]") else self.parse())
        return SliceExpr.make(self.since(start), *parts, *[None] * (3 - len(parts)))

    def items(self, end: str, item: Callable[[], Tree]) -> list[Tree]:
        """Items with commas up to the closing bracket; a comma may stand before that."""
        items: list[Tree] = []
        while self.lexer.cur.kind != end:
            items.append(item())
            if not self.lexer.next_if(","):
                break
        self.lexer.expect(end)
        return items


_BASES: Final[dict[str, Callable[[Expressions], Tree]]] = {
    **dict.fromkeys(_WORDS, Expressions._word),
    "number": Expressions._number,
    "string": Expressions._strings,
    "(": Expressions._paren,
    "[": Expressions._list,
    "{": Expressions._dict,
}
