"""Hints for syntax errors.

In: the tokens up to the one that does not fit, and the kind that is wanted there.  Out: the most likely hint.  The
error's message names kinds of tokens, as PyTorch does; hints speak of lines, brackets and words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.lang.tokens import Token

Wrong = tuple[str, Token, Sequence[Token]]
"""The kind of token that is wanted, the token that is there, and the tokens before it."""

_CLOSES: Final = {")": "(", "]": "[", "}": "{"}
_ENDS: Final = frozenset(["newline", "indent", "dedent", "eof"])
_LITERALS: Final = frozenset(["number", "string"])


_HEAD: Final = 30
"""The most tokens between a word and the token that it explains."""
_FOREIGN: Final = {
    ("+", "+"): "there is no ++: write `x += 1`",
    ("&", "&"): "write `and`",
    ("|", "|"): "write `or`",
    ("<", ">"): "write !=",
    ("", "+"): "there is no unary +: leave it out",
    ("", "!"): "write `not x`, or `x != y`",
    ("", "?"): "write `a if test else b`",
    ("=", ">"): "write >=",
}
"""Operators of other languages: the token before (if adjacent) and the one that does not fit -> the hint."""


_CHARACTERS: Final = {
    ";": "write each statement on a line of its own",
    "`": "strings stand in ' or \"",
    "\\": "a line goes on where the backslash is its last character",
    **dict.fromkeys("\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb", "use the plain quotes ' and \""),
    **dict.fromkeys("\u2212\u2013\u2014", "use the plain minus -"),
    "\u00d7": "multiply with *",
    "\u2264": "write <=",
    "\u2265": "write >=",
    "\u2260": "write !=",
    "\u00a0": "this is no plain blank (U+00A0): replace it by one",
    "\ufeff": "this is an invisible mark (U+FEFF): remove it",
}
"""Character that begins no token -> the hint."""


def syntax_hints(wanted: str, found: Token, before: Sequence[Token]) -> tuple[str, ...]:
    """Hints for a `found` token in the place of `wanted`."""
    wrong = (wanted, found, before)
    return tuple(next(([hint] for rule in _RULES if (hint := rule(wrong)) is not None), []))


def character_hints(character: str) -> tuple[str, ...]:
    """Hints for a character that begins no token."""
    if character in _CHARACTERS:
        return (_CHARACTERS[character],)
    return () if character.isprintable() else (f"remove the character U+{ord(character):04X}",)


def _open_bracket(wrong: Wrong) -> str | None:
    wanted, found, before = wrong
    if wanted not in _CLOSES or (found.kind not in _ENDS and found.range.line == _last_line(before)):
        return None
    bracket = _unclosed(before)
    return bracket and f"the '{bracket.text}' in line {bracket.range.line} is not closed"


def _beginning_of_name(wrong: Wrong) -> str | None:
    """`not index` is read as `not in` and `dex`."""
    found = wrong[1]
    if found.kind != "not in":
        return None
    rest = found.range.source.text[found.range.end :]
    length = next((at for at, character in enumerate(rest) if not (character.isalnum() or character == "_")), len(rest))
    return f"'not in' is read as one word here: write `not (in{rest[:length]})`" if length else None


def _closing_bracket(wrong: Wrong) -> str | None:
    _, found, before = wrong
    if found.kind not in _CLOSES:
        return None
    bracket = _unclosed(before)
    if bracket is None:
        return f"this '{found.kind}' closes nothing; remove it"
    if bracket.kind == _CLOSES[found.kind]:
        return None
    return f"the '{bracket.text}' in line {bracket.range.line} is closed by another kind of bracket"


def _colon(wrong: Wrong) -> str | None:
    wanted, found, before = wrong
    if wanted != ":":
        return None
    if found.kind == "=":
        return "to compare, write =="
    if found.kind in _ENDS:
        return f"put a ':' at the end of line {_last_line(before)}"
    return f"put a ':' before '{found.text}'" if found.kind in ("ident", *_LITERALS) else None


def _block(wrong: Wrong) -> str | None:
    wanted, found, before = wrong
    begins = wanted == "indent" or (found.kind == "newline" and before[-1:] and before[-1].kind == ":")
    return f"indent what belongs to line {_last_line(before)}" if begins and before else None


def _deeper(wrong: Wrong) -> str | None:
    wanted, found, before = wrong
    if wanted != "newline" or found.kind != "indent":
        return None
    return f"line {found.range.line} is indented deeper than the statement before it, in line {_last_line(before)}"


def _early_end(wrong: Wrong) -> str | None:
    wanted, found, before = wrong
    if found.kind not in _ENDS or not before or before[-1].kind in _ENDS:
        return None
    missing = "an expression or a name" if wanted == "ident" else f"'{wanted}'"
    return f"line {_last_line(before)} ends too early: {missing} is missing behind '{before[-1].text}'"


def _else_without_if(wrong: Wrong) -> str | None:
    word = wrong[1].kind
    return f"there is no `if` that this `{word}` belongs to" if word in ("else", "elif") else None


def _prefix(wrong: Wrong) -> str | None:
    """`f'..'`: the grammar sees a name and a string."""
    _, found, before = wrong
    if found.kind != "string" or not before or before[-1].kind != "ident" or not _touch(before[-1], found):
        return None
    if before[-1].text.lower() == "f":
        return "this grammar has no f-strings: write '{}'.format(x)"
    return f"strings have no prefix '{before[-1].text}' here"


def _digits(wrong: Wrong) -> str | None:
    _, found, before = wrong
    if found.kind != "ident" or not before or before[-1].kind != "number" or not _touch(before[-1], found):
        return None
    if found.text.startswith("_"):
        return f"write the number without _: {before[-1].text}{found.text.replace('_', '')}"
    return f"'{before[-1].text}{found.text}' is neither a number nor a name"


def _floor_division(wrong: Wrong) -> str | None:
    """`a //= b`, where the grammar has no such token."""
    _, found, before = wrong
    if found.kind != "=" or not before or before[-1].kind != "//" or not _touch(before[-1], found):
        return None
    return "there is no //= here: write `a = a // b`"


def _print(wrong: Wrong) -> str | None:
    wanted, _, before = wrong
    is_print = wanted == "newline" and bool(before) and before[-1].text == "print"
    return "print is a function: print(x)" if is_print else None


def _of_other_languages(wrong: Wrong) -> str | None:
    _, found, before = wrong
    touched = before[-1].kind if before and _touch(before[-1], found) else ""
    return _FOREIGN.get((touched, found.kind)) or _FOREIGN.get(("", found.kind))


def _definition(wrong: Wrong) -> str | None:
    is_outside = wrong[0] == "def"
    return "a program is made of functions and classes: put statements into a `def`" if is_outside else None


def _loop(wrong: Wrong) -> str | None:
    return "a loop is written `for x in items:`" if wrong[0] == "in" else None


def _varargs(wrong: Wrong) -> str | None:
    wanted, found, before = wrong
    is_star = found.kind == "**" or (wanted == ")" and before[-1:] and before[-1].kind == "*")
    if not is_star or not any(token.kind == "def" for token in before[-_HEAD:]):
        return None
    return "functions take a fixed number of arguments: make it one List, Tuple or Dict"


def _ternary(wrong: Wrong) -> str | None:
    if wrong[0] == "else" and wrong[1].kind in _CLOSES and any(token.kind == "for" for token in wrong[2][-_HEAD:]):
        return "a comprehension takes no `if`: write a loop"
    return "a conditional expression has both ways: `a if test else b`" if wrong[0] == "else" else None


def _walrus(wrong: Wrong) -> str | None:
    return "assign in a statement of its own, before" if wrong[1].kind == ":=" else None


def _assignment(wrong: Wrong) -> str | None:
    wanted, found, before = wrong
    if found.kind != "=":
        return None
    if before and before[-1].kind in ("=", "==", "<", ">", "!"):
        return f"the operator is written '{before[-1].text}', without a further '='"
    return "to compare, write ==" if wanted in _CLOSES or wanted == "else" else None


def _keyword(wrong: Wrong) -> str | None:
    wanted, found, _ = wrong
    is_word = wanted == "ident" and found.text.isidentifier() and found.kind == found.text
    return f"'{found.text}' is a word of the language and cannot be used as a name here" if is_word else None


def _side_by_side(wrong: Wrong) -> str | None:
    wanted, found, before = wrong
    if not before or found.kind not in ("ident", *_LITERALS) or before[-1].kind not in ("ident", *_LITERALS):
        return None
    if wanted not in ("newline", *_CLOSES):
        return None
    return f"an operator or a comma is missing between '{before[-1].text}' and '{found.text}'"


_RULES: Final[tuple[Callable[[Wrong], str | None], ...]] = (
    _definition, _loop, _beginning_of_name, _varargs, _ternary, _of_other_languages, _open_bracket, _closing_bracket,
    _colon, _block, _deeper, _early_end, _else_without_if, _prefix, _digits, _floor_division, _print, _walrus,
    _assignment, _keyword, _side_by_side,
)  # fmt: skip
"""The rules; the first that has a hint gives it."""


def _unclosed(before: Sequence[Token]) -> Token | None:
    """The innermost bracket that is still open."""
    closed = 0
    for token in reversed(before):
        if token.kind in _CLOSES:
            closed += 1
        elif token.kind in _CLOSES.values():
            if not closed:
                return token
            closed -= 1
        elif token.kind in _ENDS:
            return None
    return None


def _last_line(before: Sequence[Token]) -> int:
    """The line of the last token that is not just the end of a line or block."""
    return next((token.range.line for token in reversed(before) if token.kind not in _ENDS), 1)


def _touch(first: Token, second: Token) -> bool:
    return first.range.end == second.range.start
