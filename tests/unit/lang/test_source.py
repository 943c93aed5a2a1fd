"""Places in a text, and the excerpt that errors show."""

import pytest

from engine.lang.source import Source, SourceRange

TEXT = "def f(x):\n    y = x +\\\n        1\n    return y\n"


def place(source: Source, text: str) -> SourceRange:
    start = source.text.index(text)
    return SourceRange(source, start, start + len(text))


def test_lines_and_columns() -> None:
    source = Source(TEXT, "m.py", first_line=10)
    found = place(source, "return y")
    assert (found.line, found.column, found.text, found.filename) == (13, 4, "return y", "m.py")
    assert found.location("f") == 'File "m.py", line 13, in f'
    assert [source.line_index(offset) for offset in (0, 9, 10, len(TEXT))] == [0, 0, 1, 4]
    assert source.line_text(0) == "def f(x):"


def test_the_excerpt_shows_the_lines_around_and_underlines_the_range() -> None:
    source = Source("a\nb\nc\nd\n  eff\ng\nh\ni\nj")
    assert place(source, "ef").excerpt() == "b\nc\nd\n  eff\n  ~~ <--- HERE\ng\nh"


def test_a_range_of_several_lines_is_underlined_on_its_first() -> None:
    source = Source("f(a,\n  b)")
    assert source.whole().excerpt() == "f(a,\n~~~~ <--- HERE\n  b)"


def test_tabs_stay_under_tabs() -> None:
    source = Source("\tx = 1")
    assert place(source, "x").excerpt() == "\tx = 1\n\t~ <--- HERE"


def test_long_lines_are_cut_around_the_range() -> None:
    source = Source("a" * 1000 + "X" + "b" * 1000)
    excerpt = place(source, "X").excerpt().split("\n")
    assert all(len(line) < 200 for line in excerpt)
    assert excerpt[0][excerpt[1].index("~")] == "X"


def test_ranges_join() -> None:
    source = Source("a + b")
    assert place(source, "a").to(place(source, "b")).text == "a + b"


def test_an_empty_range_at_the_end_has_a_caret() -> None:
    source = Source("a\n")
    assert SourceRange(source, 2, 2).excerpt() == "a\n\n~ <--- HERE"


def test_generated_text_remembers_what_its_author_wrote() -> None:
    author = Source("author", "author.py")
    generated = Source("generated", original=lambda offset: author.whole() if offset < 3 else None)
    assert SourceRange(generated, 0, 2).original().filename == "author.py"
    assert SourceRange(generated, 5, 6).original().filename == "<string>"


@pytest.mark.parametrize(
    ("text", "marked", "expected"),
    [
        ('"日本語" + undefd', "undefd", " " * 11 + "~~~~~~ <--- HERE"),
        ("日本 + x", "日本", "~~~~ <--- HERE"),
        ("e\u0301 + x", "x", " " * 4 + "~ <--- HERE"),
        ("ä + x", "x", " " * 4 + "~ <--- HERE"),
    ],
)
def test_the_mark_stands_under_its_place_after_wide_characters(text: str, marked: str, expected: str) -> None:
    at = text.index(marked)
    assert SourceRange(Source(text, "t"), at, at + len(marked)).excerpt().splitlines()[1] == expected


def test_an_excerpt_may_underline_less_than_the_range() -> None:
    source = Source("x.add(y) + 1")
    range = SourceRange(source, 0, 8).underlined_to(5)
    assert range.text == "x.add(y)"
    assert range.excerpt().split("\n")[1] == "~~~~~ <--- HERE"
    assert SourceRange(source, 0, 1).to(range).underlined == 5
