"""Tokens: the words of a program's text, its keywords and its operators.

Out: `Token`, which the lexer makes, and parsers and hints read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.lang.source import Source, SourceRange

KEYWORDS: Final = frozenset({
    "def", "class", "if", "elif", "else", "while", "for", "in", "return", "is", "not", "and", "or", "True",
    "False", "None", "global", "pass", "break", "continue", "assert", "raise", "del", "import", "with", "as",
})  # fmt: skip
OPERATORS: Final = (
    "...", "**=", "<<=", ">>=", "//", "**", "<<", ">>", "<=", ">=", "==", "!=", "->", "+=", "-=", "*=", "/=",
    "%=", "|=", "&=", "^=", "+", "-", "*", "/", "%", "@", "(", ")", "[", "]", ":", ",", "=", "{", "}", ">", "<",
    ".", "?", "!", "&", "^", "|", "~",
)  # fmt: skip
EXTENDED_OPERATORS: Final = ("//=", "@=", ":=", ";")
"""Operators of Python for which PyTorch's lexer has no token."""


class Token(NamedTuple):
    """One word of a text.

    `kind` is "ident", "number", "string", "row", "block", "type_comment", "newline", "indent", "dedent" or "eof";
    keywords and operators are their own kinds, "is not" and "not in" among them.
    """

    kind: str
    text: str
    source: Source
    start: int
    end: int

    @property
    def range(self) -> SourceRange:
        return SourceRange(self.source, self.start, self.end)
