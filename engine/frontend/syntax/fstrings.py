"""Splitting f-strings into text and expressions.

In: the token of an f-string, without its prefix.  Out: its pieces in order.
"""

from __future__ import annotations

from engine.lang.errors import NotSupportedError, ParseError
from engine.lang.source import SourceRange
from engine.lang.tokens import Token

_OPEN, _CLOSE = "([{", ")]}"


def split(token: Token) -> list[str | SourceRange]:
    """The literal's pieces in order: text, in the literal's quotes, and the ranges of the expressions.

    Raises NotSupportedError for a conversion or a format, ParseError for brackets that do not match.
    """
    quotes = token.text[0] * (3 if len(token.text) >= 6 and token.text[:3] == token.text[0] * 3 else 1)
    pieces: list[str | SourceRange] = []
    text, at, end = "", len(quotes), len(token.text) - len(quotes)
    while at < end:
        letter = token.text[at]
        if token.text[at : at + 2] in ("{{", "}}"):
            text, at = text + letter, at + 2
        elif letter == "{":
            close = _closing(token, at + 1, end)
            pieces += [quotes + text + quotes, _part(token, at + 1, close)]
            text, at = "", close + 1
        elif letter == "}":
            raise ParseError("a '}' in an f-string must be written '}}'", _part(token, at, at + 1))
        else:
            text, at = text + letter, at + 1
    return [*pieces, quotes + text + quotes]


def _closing(token: Token, at: int, end: int) -> int:
    """Offset of the brace that ends the expression at offset `at`."""
    depth, quote, begin = 0, "", at
    while at < end:
        letter = token.text[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _OPEN:
            depth += 1
        elif letter == "}" and depth == 0:
            return at
        elif letter in _CLOSE:
            depth -= 1
        elif depth == 0 and _formats(token.text, at):
            raise NotSupportedError(
                "an f-string takes no conversion and no format",
                _part(token, begin, at + 1),
                hints=("format the value before, or use '%' formatting",),
            )
        at += 1
    raise ParseError("a '{' in this f-string is not closed", _part(token, begin - 1, begin))


def _formats(text: str, at: int) -> bool:
    """True if a conversion `!r`, a format `:3` or a `=` begins here."""
    if text[at] == "=":
        return text[at + 1] in "}:!" and text[at - 1] not in "=!<>"
    return text[at] == ":" or (text[at] == "!" and text[at + 1] != "=")


def _part(token: Token, begin: int, end: int) -> SourceRange:
    return SourceRange(token.source, token.start + begin, token.start + end)
