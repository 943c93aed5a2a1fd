"""Tokens, blocks, and what is no token."""

import tracemalloc
from contextlib import suppress

import pytest

from engine.fuser.backend import tiering
from engine.lang.errors import ParseError
from engine.lang.lexer import Lexer, definition_starts
from engine.lang.source import Source
from engine.lang.tokens import Token
from tests.timing import within


def tokens(text: str, *, extended: bool = False) -> list[Token]:
    lexer, found = Lexer(Source(text), extended=extended), []
    while lexer.cur.kind != "eof":
        found.append(lexer.next())
    return found


def kinds(text: str, *, extended: bool = False) -> str:
    return " ".join(token.kind for token in tokens(text, extended=extended))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if x:\n  y\n  z\n", "if ident : indent ident newline ident newline dedent"),
        ("if x:\n  y\nz", "if ident : indent ident newline dedent ident newline"),
        ("if a:\n if b:\n  c\nd", "if ident : indent if ident : indent ident newline dedent dedent ident newline"),
        ("  x\n  y\n", "ident newline ident newline"),
        ("\n\n# note\n  # other\nx  # end\n\n   # deeper\ny", "ident newline ident newline"),
        ("if x:\n  y\n    # deeper comment\n# outer comment", "if ident : indent ident newline dedent"),
        ("f(a,\n      b)\nc", "ident ( ident , ident ) newline ident newline"),
        ("[\n# note\n1,\n\n2]", "[ number , number ] newline"),
        ("a + \\\n  b", "ident + ident newline"),
        ("a)\nb", "ident ) newline ident newline"),
        ("a\r\nb\r\n", "ident newline ident newline"),
        ("if x:\n\ty\n\tz", "if ident : indent ident newline ident newline dedent"),
        ("x\n   ", "ident newline"),
        ("", ""),
        ("   \n # only\n", ""),
    ],
)
def test_blocks(text: str, expected: str) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a is not b", "ident is not ident newline"),
        ("a is   not b not  in c", "ident is not ident not in ident newline"),
        ("is_not isnt note notin", "ident ident ident ident newline"),
        ("a //= b", "ident // = ident newline"),
        ("**= ** *= -> - ...", "**= ** *= -> - ... newline"),
        ("a<<=b>>c", "ident <<= ident >> ident newline"),
        ("lambda yield", "ident ident newline"),
        ("a.b.1", "ident . ident number newline"),
        ("x[..., 0]", "ident [ ... , number ] newline"),
        (
            "%x.1 : Float(2, *) = prim::Constant()",
            "% ident number : ident ( number , * ) = ident : : ident ( ) newline",
        ),
        ("r'a' f'b'", "ident string ident string newline"),
        ("x # type: int", "ident type_comment ident newline"),
    ],
)
def test_operators_and_words(text: str, expected: str) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    "number", ["0", "12", "017", "0xff", "0XFF", "0x1.8p3", "1.", ".5", "1.5", "1e5", "1.e-3", "2.5E+10", "2j", "1e3j"]
)
def test_numbers_are_one_token(number: str) -> None:
    assert [(token.kind, token.text) for token in tokens(number)[:-1]] == [("number", number)]


@pytest.mark.parametrize(
    ("text", "first"), [("1_000", "1"), ("0b11", "0"), ("0x", "0"), ("1e", "1"), ("2J", "2"), ("0.5.5", "0.5")]
)
def test_numbers_end_where_the_original_ends_them(text: str, first: str) -> None:
    assert tokens(text)[0].text == first


@pytest.mark.parametrize("number", ["1_000", "0b11", "0o17", "2J", "0xff_ff", "1_0.0_1e1_0"])
def test_extended_numbers(number: str) -> None:
    assert [token.text for token in tokens(number, extended=True)[:-1]] == [number]


@pytest.mark.parametrize(
    "string",
    ["''", '""', "'a'", "'a\\'b'", '"it\'s"', "''''''", "'''a'b''c'''", '"""a\nb"""', "'a\\\nb'", "'\\\\'", "'# no'"],
)
def test_strings_are_one_token(string: str) -> None:
    assert [(token.kind, token.text) for token in tokens(string)[:-1]] == [("string", string)]


def test_extended_adds_operators_names_and_drops_other_type_comments() -> None:
    assert kinds("a //= b; c @= d := e", extended=True) == "ident //= ident ; ident @= ident := ident newline"
    assert kinds("größe = 1", extended=True) == "ident = number newline"
    assert kinds("# type: ignore\nx = []  # type: List[int]", extended=True) == "ident = [ ] newline"
    assert kinds("# type: (int) -> int", extended=True) == "type_comment ( ident ) -> ident newline"


def test_ranges_are_exact() -> None:
    source = Source("ab = 'x y' # note\n  + 1")
    lexer = Lexer(source)
    assert [lexer.next().range.text for _ in range(3)] == ["ab", "=", "'x y'"]
    assert (lexer.cur.kind, lexer.cur.range.line, lexer.cur.range.text) == ("indent", 2, "  ")


def test_a_part_of_the_source() -> None:
    source = Source("skip (a + b) skip")
    lexer = Lexer(source, begin=6, end=11)
    assert [lexer.next().text for _ in range(4)] == ["a", "+", "b", ""]
    assert lexer.cur.kind == "eof"


def test_cursor() -> None:
    lexer = Lexer(Source("a = b"))
    assert (lexer.cur.text, lexer.lookahead().kind, lexer.last_end) == ("a", "=", 0)
    assert not lexer.next_if("=")
    assert lexer.expect("ident").text == "a"
    assert lexer.next_if("=")
    assert (lexer.last.kind, lexer.last_end) == ("=", 3)
    with pytest.raises(ParseError, match="expected number but found 'ident' here"):
        lexer.expect("number")
    lexer.next(), lexer.next()
    assert lexer.next().kind == lexer.next().kind == "eof"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a\nb $ c", 2, 2, "expected a valid token but found ' '"),
        ("x = 'abc\n", 1, 4, "this string does not end"),
        ("x = '''abc\n\n", 1, 4, "this string does not end"),
        ("x = 'a\\", 1, 4, "this string does not end"),
        ("if x:\n   y\n  z", 3, 0, "invalid indent level 2"),
        ("if x:\n\ty\n        z", 3, 0, "inconsistent use of tabs and spaces"),
        ("    x\ny", 2, 0, "invalid indent level 0"),
        ("a \0 b", 1, 2, "expected a valid token"),
        ("é", 1, 0, "expected a valid token but found 'é'"),
        ("a ; b", 1, 2, "expected a valid token but found ' '"),
        ("a \\ b", 1, 2, "expected a valid token"),
    ],
)
def test_errors_name_their_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ParseError, match=message.replace("$", r"\$")) as caught:
        tokens(text)
    assert caught.value.range is not None
    assert (caught.value.line, caught.value.range.column) == (line, column)


def test_an_error_comes_when_the_cursor_gets_there() -> None:
    lexer = Lexer(Source("a b $"))
    assert lexer.next().text == "a"
    with pytest.raises(ParseError):
        lexer.next()


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "\\\n" * 100_000, "#\n" * 100_000, "'''" * 30_001, "a" * 300_000, " " * 300_000 + "$"]
)
def test_time_is_linear(text: str) -> None:
    with within(5), suppress(ParseError):
        tokens(text)


def test_a_long_program_is_fast() -> None:
    body = "    x = foo(a + 1, b['k'], c=2.5)  # note\n    if x is not None:\n        y = [1, 2, 3]\n"
    text = "def f(a, b):\n" + body * 700
    with within(1):
        assert len(tokens(text)) > 20_000


def test_a_long_text_is_read_as_far_as_it_is_asked_for() -> None:
    lexer = Lexer(Source("x" + " + 1" * 100_000))
    tiering.wait()  # what other tests have compiled in the background would count
    tracemalloc.start()
    for _ in range(50_001):
        lexer.next()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lexer.last.text == "1"
    assert peak < 8 << 20  # the tokens of the whole text take more than four times as much


def test_definitions_are_found_in_text_that_is_no_program() -> None:
    text = "def f():\n    return ?\ndef g():\n    pass\n"
    assert definition_starts(Source(text), False) == [0, text.index("def g")]
