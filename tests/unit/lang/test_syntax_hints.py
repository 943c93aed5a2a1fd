"""Hints for text that cannot be read (`tests/cases/frontend/advice.case` has more)."""

import pytest

from engine.frontend.syntax.parser import parse_program
from engine.lang.errors import ParseError
from engine.lang.source import Source
from engine.lang.syntax_hints import character_hints


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("x = = 1", "the operator is written '=', without a further '='"),
        ("return x)", "this ')' closes nothing; remove it"),
        ("return (x", "the '(' in line 2 is not closed"),
        ("y = f(x, [1, 2)", "the '[' in line 2 is closed by another kind of bracket"),
        ("print x", "print is a function: print(x)"),
        ("a b = 3", "an operator or a comma is missing between 'a' and 'b'"),
        ("else:", "there is no `if` that this `else` belongs to"),
        ("class = 1", "'class' is a word of the language and cannot be used as a name here"),
        ("return +x", "there is no unary +: leave it out"),
        ("return lambda: x", "'lambda' is not supported: write a function of its own"),
        ("y = 12abc", "'12abc' is neither a number nor a name"),
        ("y = x -", "line 2 ends too early: an expression or a name is missing behind '-'"),
    ],
)
def test_the_likeliest_hint(body: str, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(Source(f"def f(x):\n    {body}\n"))
    assert caught.value.hints == (hint,)


def test_outside_of_functions() -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(Source("x = 1\n"))
    assert caught.value.hints == ("a program is made of functions and classes: put statements into a `def`",)


@pytest.mark.parametrize(
    ("character", "hints"),
    [("$", ()), ("\0", ("remove the character U+0000",)), (";", ("write each statement on a line of its own",))],
)
def test_characters(character: str, hints: tuple[str, ...]) -> None:
    assert character_hints(character) == hints
