"""Text of a known language, cut into spans of one role each.

In: text and the language's name.  Out: spans; joined, they are the text again, character for character.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from engine.lang.deferred import deferred
from tsrepl.render.blocks import Span
from tsrepl.render.palette import role_of

if TYPE_CHECKING:
    from pygments.lexer import Lexer

    from tsrepl.render import lexers
else:
    lexers = deferred("tsrepl.render.lexers")  # many answers have no such text

LONGEST = 400_000
"""Longer texts are shown without colours: a lexer at a few microseconds a character would hold up the prompt."""

_LEXERS: Final = {
    "ir": "IRLexer",
    "instructions": "InstructionsLexer",
    "tree": "TreeLexer",
    "llvm": "LLVMLexer",
    "asm": "AssemblyLexer",
    "python": "PythonLexer",
    "entry": "EntryLexer",
}


def highlight(text: str, language: str) -> Iterator[Span]:
    """The spans of `text`; one plain span when the language is unknown or the text very long."""
    if language not in _LEXERS or len(text) > LONGEST:
        yield Span(text)
        return
    # Unlike get_tokens, get_tokens_unprocessed keeps every newline and blank as it is.
    for _, token, value in _lexer(language).get_tokens_unprocessed(text):
        yield Span(value, role_of(token))


@cache
def _lexer(language: str) -> Lexer:
    made: Lexer = getattr(lexers, _LEXERS[language])()
    return made
