"""From text to tokens.

In: a `Source`.  Out: a `Lexer`, a cursor over its tokens.  Tokens mark blocks: "indent" where a line begins
deeper, "newline" where a statement ends, "dedent" (after the newline) where a block does.  Inside brackets
line ends do not count.  One regular expression finds each token; text that it does not match is an error,
raised when the cursor gets there.

Note [Rows of literals]: vocabularies and tables stand in programs as lists and dicts of tens of thousands of literals.
With `rows`, what is between the brackets of such a list or dict is one token, "row", and one constant of the program.
Where literals are read as Python's, only those without a backslash are a row, as they mean the same in both languages.

With `blocks`, the body of a function is one token, "block", where it is plain: see Note [Plain blocks].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from engine.lang.deferred import deferred, pattern_of
from engine.lang.errors import ParseError
from engine.lang.interpreter_settings import MAX_TEXT_WORDS, MAX_WORDS, WORDS_VARIABLE
from engine.lang.literals import ROW_ITEM
from engine.lang.source import Source, SourceRange
from engine.lang.tokens import EXTENDED_OPERATORS, KEYWORDS, OPERATORS, Token

if TYPE_CHECKING:
    from engine.lang import plain_blocks, syntax_hints
else:
    syntax_hints = deferred("engine.lang.syntax_hints")
    plain_blocks = deferred("engine.lang.plain_blocks")

_LOOKED_AT: Final = 10_000
"""Number of tokens before a wrong one that hints consider."""
_AHEAD: Final = 4096
"""Tokens that are read at once."""
ROW: Final = 256
"""The least number of literals that are one token, where rows are."""
_SHOWN = {
    "string": "string_literal", "type_comment": "type comment", "**": "pow operator", "//": "floordiv", "<=": "le",
    ">=": "ge", "==": "eq", "!=": "ne", "->": "arrow", "...": "dots",
}  # fmt: skip
_COMMENT = r"\#(?!{type_comment})[^\n]*+"
_BLANK = r"[ \t\r\f]*+"
_PATTERN = r"""
{blank}(?:\\\r?\n{blank})*+
(?:
  (?P<pair>{pair})
| (?P<word>{word})
| (?P<number>{number})
| (?P<string>\'{{3}}[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+\'{{3}}
    |"{{3}}[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"{{3}}
    |'(?!'')[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'
    |"(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")
| (?P<lines>(?:{comment})?(?:\n{blank}(?:{comment})?)*(?:\n[ \t\f]*+|\Z))
| (?P<type_comment>\#\ type:)
| (?P<operator>{operators})
)
"""
_NUMBER = (
    r"0[xX][0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?(?:[pP][+-]?[0-9]++)?"
    r"|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?j?"
)
_PAIR = r"is\ not|not\ in"
"""As in PyTorch, without regard to the next character: `not index` begins with `not in`."""
_PYTHON_PAIR = r"(?:is[ \t]+not|not[ \t]+in)\b"
_WORD = r"[A-Za-z_][A-Za-z_0-9]*+"
_PYTHON_WORD = r"[^\x00-@\[-^`{-\x7f][^\x00-/:-@\[-^`{-\x7f]*+"
"""`[A-Za-z_\x80-\U0010ffff]`, and with digits, by what is not in them, which takes a tenth of the time to compile.
Beyond ASCII `_identifier_in` tells where the word ends."""
_PYTHON_NUMBER = (
    r"0[xX][0-9a-fA-F_]++|0[bB][01_]++|0[oO][0-7_]++"
    r"|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9][0-9_]*+)?[jJ]?"
)
_OWN_KINDS: Final = {word: word for word in (*KEYWORDS, *OPERATORS, *EXTENDED_OPERATORS)}
"""Words that are their kind."""
_SPACE = pattern_of(r"[ \t\r\f]*(?:\\\r?\n[ \t\r\f]*)*")
_INDENT = pattern_of(r"[ \t\f]*")
_DEFINITION = pattern_of(r"^[ \t\f]*(def|class)\b", re.MULTILINE)


def _compile(pair: str, word: str, number: str, operators: Iterable[str], type_comment: str) -> re.Pattern[str]:
    longest_first = sorted(operators, key=len, reverse=True)
    text = _PATTERN.format(
        blank=_BLANK,
        pair=pair,
        word=word,
        number=number,
        comment=_COMMENT.format(type_comment=type_comment),
        operators="|".join(map(re.escape, longest_first)),
    )
    return re.compile(text, re.VERBOSE | re.DOTALL)


_STRICT = partial(_compile, _PAIR, _WORD, _NUMBER, OPERATORS, r"\ type:")
_GENERATED = partial(_compile, _PAIR, _PYTHON_WORD, _NUMBER, OPERATORS, r"\ type:")
"""The names that `torch.jit.script` takes from Python are written as they are, though PyTorch cannot read them."""
_EXTENDED = partial(
    _compile, _PYTHON_PAIR, _PYTHON_WORD, _PYTHON_NUMBER, (*OPERATORS, *EXTENDED_OPERATORS), r"\ type:\s*+\("
)
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_SPACES = r"[ \t\r\f\n]*+"


def _row_of(item: str, end: str) -> str:
    return rf"{_SPACES}(?P<row>(?:{item},{_SPACES}){{{ROW - 1},}}+(?:{item})?+){_SPACES}(?={end})"


_ROWS: Final = {
    "[": _row_of(rf"{ROW_ITEM}{_SPACES}", r"\]"),
    "{": _row_of(rf"{ROW_ITEM}{_SPACES}:{_SPACES}{ROW_ITEM}{_SPACES}", r"\}"),
}
"""Between brackets: literals with commas, the least number of them or more; as the token's rule reads each of them."""
_COUNTED: Final = (
    rf"\[{_ROWS['['].replace('?P<row>', '?:')}|{{{_ROWS['{'].replace('?P<row>', '?:')}"
    r"""|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|[\w.]+|[^\w\s()\[\]{},.]+|\S"""
)
"""Words as they are counted in a long text: at most as many as there are tokens."""
_ENDS_OPERAND: Final = frozenset([")", "]", "}", "ident", "string", "number"])
"""Kinds of tokens after which a bracket holds an index, and no list."""


class Lexer:
    """A cursor over the tokens of `source`, or of its part from `begin` to `end`.

    `extended` adds Python's operators, numbers and names to the language's; `rows` makes one token of many literals
    (Note [Rows of literals]), `blocks` one of a plain body.  Every method raises
    ParseError when the text that follows is no token, or makes a statement of too many.
    """

    __slots__ = ("_at", "_coming", "_error", "_known", "_tokens", "cur", "source")

    def __init__(
        self,
        source: Source,
        *,
        extended: bool = False,
        begin: int = 0,
        end: int | None = None,
        rows: bool = False,
        blocks: bool = False,
    ) -> None:
        self.source = source
        self._coming = _tokens(source, extended, begin, end, rows=rows, blocks=blocks)
        self._tokens: list[Token] = []
        self._known = 0
        """The number of `_tokens`."""
        self._error: ParseError | None = None
        self._at = -1
        self.cur: Token
        self._advance()

    def next(self) -> Token:
        """The current token; moves past it."""
        token = self.cur
        self._advance()
        return token

    @property
    def last(self) -> Token:
        """The token before the current one; the current one at the beginning."""
        return self._tokens[max(0, self._at - 1)]

    @property
    def last_end(self) -> int:
        """The offset at which the token before the current one ends."""
        return self._tokens[self._at - 1].end if self._at else 0

    def lookahead(self) -> Token:
        """The token after the current one."""
        return self._tokens[self._at + 1] if self._has(self._at + 1) else self.cur

    def next_if(self, kind: str) -> bool:
        """True if the current token is of this kind; then moves past it."""
        if self.cur.kind != kind:
            return False
        self._advance()
        return True

    def expect(self, kind: str) -> Token:
        """The current token, which must be of this kind; moves past it."""
        if self.cur.kind != kind:
            raise self.unexpected(kind)
        token = self.cur
        self._advance()
        return token

    def closed_before(self, kind: str) -> bool:
        """True if a token of that kind follows the closing partner of the bracket here."""
        depth, at = 0, self._at
        while self._has(at + 1):
            depth += _DEPTH.get(self._tokens[at].text, 0) if self._tokens[at].kind != "string" else 0
            if depth == 0:
                return self._tokens[at + 1].kind == kind
            at += 1
        return False

    def unexpected(self, wanted: str, token: Token | None = None) -> ParseError:
        """The error that says that `wanted` should stand where the token (else the current one) stands."""
        found = token or self.cur
        before = self._tokens[max(0, self._at - _LOOKED_AT) : self._at]
        hints = syntax_hints.syntax_hints(wanted, found, [each for each in before if each.end <= found.start])
        return ParseError(f"expected {shown(wanted)} but found '{shown(found.kind)}' here", found.range, hints=hints)

    def _advance(self) -> None:
        at = self._at + 1
        if at >= self._known and not self._has(at):
            if self._error is not None:
                raise self._error
            return
        if at >= 2 * _LOOKED_AT:
            at = self._forget(at)
        self._at = at
        self.cur = self._tokens[at]

    def _has(self, at: int) -> bool:
        """True if there is a token of that number in `_tokens`, which learns more of them from the text."""
        while at >= self._known and self._error is None:
            known = self._known
            try:
                self._tokens.extend(islice(self._coming, _AHEAD))
            except ParseError as error:
                self._error = error
            self._known = len(self._tokens)
            if self._known == known:
                break
        return at < self._known

    def _forget(self, at: int) -> int:
        """Drop the tokens that nobody looks back at any more: those of a long text take more memory than its tree.
        The number that token `at` has then."""
        begin = at - _LOOKED_AT
        del self._tokens[:begin]
        self._known -= begin
        return at - begin


def definition_starts(source: Source, extended: bool) -> list[int]:
    """Offsets of the `def` and `class` that begin a line as far left as the first of them; none inside strings.

    After text that is no token they are found by the words alone.
    """
    if len(_DEFINITION.findall(source.text)) < 2:
        return []
    found: list[int] = []
    rest = len(source.text)
    try:
        tokens = _tokens(source, extended, 0, rest, rows=True)
        found.extend(token.start for token in tokens if token.kind in ("def", "class"))
    except ParseError as error:
        at = error.range.start if error.range else rest
        is_open_to_the_end = source.text.startswith(("'''", '"""'), at)
        rest = rest if is_open_to_the_end else at
    found += [match.start(1) for match in _DEFINITION.finditer(source.text, rest)]
    columns = {at: at - (source.text.rfind("\n", 0, at) + 1) for at in found}
    first = [at for at, column in columns.items() if not source.text[at - column : at].strip()]
    return [at for at in first if columns[at] == columns[first[0]]]


def shown(kind: str) -> str:
    """The name of the kind in error messages."""
    return _SHOWN.get(kind, kind)


@cache
def pattern_for(extended: bool, is_generated: bool) -> re.Pattern[str]:
    """The expression that finds each token."""
    return (_EXTENDED if extended else _GENERATED if is_generated else _STRICT)()


def _tokens(
    source: Source, extended: bool, begin: int, end: int | None, *, rows: bool, blocks: bool = False
) -> Iterator[Token]:
    text = source.text
    # words of any script are those of the language where there are none: so most texts share one expression
    pattern = pattern_for(extended, source.is_generated or text.isascii())
    match, end = pattern.match, len(text) if end is None else end
    make = partial(tuple.__new__, Token)  # which takes half as long as the call of a named tuple
    first = _INDENT.match(text, begin, end)
    assert first is not None, "the expression matches nothing at all, too"
    indents, at, tail, depth, words, before, is_head = [first[0]], begin, begin, 0, 0, "", False
    while (found := match(text, at, end)) is not None:
        group = found.lastgroup
        assert group is not None, "every alternative has a name"
        word = found[group] if group != "word" or found[group].isascii() else _identifier_in(found[group])
        if group == "word" and not word:
            break
        begin = found.start(group)
        at = begin + len(word)
        if group == "lines":
            if at == end and (depth or _is_continued(text, tail, end)):
                yield Token("eof", "", source, at, at)
                return
            if at == end:
                yield from _end_tokens(source, at, len(indents) - 1, bool(words) and depth == 0)
                return
            if depth == 0 and words:
                deep = len(indents)
                yield from _line_tokens(source, at, indents)
                words, before = 0, ""
                if (
                    is_head
                    and len(indents) > deep
                    and (stop := plain_blocks.plain_block_end(text, at - len(indents[-1]), end, pattern))
                ):
                    yield Token("block", "", source, at, stop)
                    words, tail, at = 1, stop, stop
                is_head = False
            elif depth == 0 and len(indents) == 1:
                indents = [_indent_before(text, at)]
            continue
        tail = at
        words += 1
        is_head = is_head or (blocks and words == 1 and word == "def")
        if group == "operator":
            depth = max(0, depth + _DEPTH.get(word, 0))
        kind = _OWN_KINDS.get(word) or ("ident" if group == "word" else _kind(group, word))
        if words > MAX_WORDS:
            raise _too_long("statement", MAX_WORDS, SourceRange(source, begin, at))
        yield make((kind, word, source, begin, at))
        row = (
            re.compile(_ROWS[word]).match(text, at, end)
            if rows and word in _ROWS and before not in _ENDS_OPERAND
            else None
        )
        if row is not None and (not extended or "\\" not in row["row"]):
            yield Token("row", row["row"], source, *row.span("row"))
            tail = at = row.end()
        before = kind
    raise _no_token(source, at)


def _identifier_in(word: str) -> str:
    """The longest identifier that the word begins with, "" if it begins with none."""
    if word.isidentifier():
        return word
    wrong = (at for at, char in enumerate(word) if not (f"_{char}" if at else char).isidentifier())
    return word[: next(wrong, len(word))]


def _is_continued(text: str, tail: int, end: int) -> bool:
    """True if the last line ends in a backslash after the last token."""
    return text[tail:end].lstrip(" \t").startswith("\\")


def _kind(group: str, word: str) -> str:
    """The kind of a token that is neither an operator nor a word."""
    return group if group != "pair" else "is not" if word[0] == "i" else "not in"


def _line_tokens(source: Source, at: int, indents: list[str]) -> Iterator[Token]:
    """The block tokens at the beginning of a line, at offset `at`; updates `indents`, the open blocks' indentation."""
    indent = _indent_before(source.text, at)
    begin = at - len(indent)
    if indent == indents[-1]:
        yield Token("newline", "", source, begin, at)
        return
    if indent.startswith(indents[-1]):
        indents.append(indent)
        yield Token("indent", "", source, begin, at)
        return
    if indent not in indents:
        raise _wrong_indent(indent, indents, SourceRange(source, begin, at))
    yield Token("newline", "", source, begin, at)
    while indents[-1] != indent:
        indents.pop()
        yield Token("dedent", "", source, begin, at)


def _indent_before(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : at]


def _end_tokens(source: Source, at: int, open_blocks: int, statement_begun: bool) -> Iterator[Token]:
    if statement_begun:
        yield Token("newline", "", source, at, at)
    yield from [Token("dedent", "", source, at, at)] * open_blocks
    yield Token("eof", "", source, at, at)


def _wrong_indent(indent: str, indents: list[str], range: SourceRange) -> ParseError:
    if not indents[-1].startswith(indent):
        return ParseError(
            "inconsistent use of tabs and spaces in the indentation", range, hints=("indent with spaces only",)
        )
    levels = ", ".join(str(len(level)) for level in indents)
    return ParseError(f"invalid indent level {len(indent)}", range, hints=(f"the open blocks stand at {levels}",))


def check_length(source: Source) -> None:
    """Raises ParseError for a text of too many words, counted without reading it; rows and strings are one each."""
    if len(source.text) > MAX_TEXT_WORDS:
        found = next(islice(re.finditer(_COUNTED, source.text), MAX_TEXT_WORDS, None), None)
        if found is not None:
            raise _too_long("text", MAX_TEXT_WORDS, SourceRange(source, *found.span()))


def _too_long(what: str, limit: int, range: SourceRange) -> ParseError:
    return ParseError(
        f"this {what} has more than {limit:,} words",
        range,
        hints=(f"longer ones take too long to compile; {WORDS_VARIABLE}={4 * MAX_WORDS} in the environment allows "
               "those of four times as many",),
    )  # fmt: skip


def _no_token(source: Source, at: int) -> ParseError:
    """The error for text at `at` that begins no token."""
    text = source.text
    begin = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # matches nothing at all, too
    found, range = text[begin], SourceRange(source, begin, begin + 1)
    # PyTorch names the blank before the character, if there is one in the line.
    named = text[at] if text[at] in " \t" else found
    open_string = f"this string does not end: close it with {found}"
    hints = (open_string,) if found in "'\"" else syntax_hints.character_hints(found)
    return ParseError(f"expected a valid token but found '{named}' here", range, hints=hints)
