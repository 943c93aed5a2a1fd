"""Replies on terminals of fixed widths, as plain text; and what colours may and may not change."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from tsrepl.render.blocks import TableBlock
from tsrepl.render.layout import blocks_of
from tsrepl.render.palette import rich_theme
from tsrepl.render.terminal import new_console, print_reply, to_rich, to_text
from tsrepl.session.replies import (
    ErrorReply,
    GraphReply,
    HelpReply,
    HelpTopic,
    ModuleNode,
    ModuleReply,
    Reply,
    ReportReply,
    Section,
    ValueReply,
)

CASES = Path(__file__).parents[3] / "cases" / "render"


def sections(path: Path) -> dict[str, str]:
    parts = re.split(r"^=== (.+)\n", path.read_text(encoding="utf-8"), flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("width", [40, 80])
def test_golden(width: int, replies: dict[str, Reply], request: pytest.FixtureRequest) -> None:
    path = CASES / f"width_{width}.case"
    shown = {name: to_text(reply, width) + "\n" for name, reply in replies.items()}
    if request.config.getoption("--update-cases", default=False):
        path.write_text("".join(f"=== {name}\n{text}" for name, text in shown.items()), encoding="utf-8")
    assert sections(path) == shown


@pytest.mark.parametrize("width", [20, 40, 80])
def test_nothing_is_wider_than_the_page(width: int, name: str, reply: Reply) -> None:
    assert max((len(line) for line in to_text(reply, width).splitlines()), default=0) <= width


_NAME = re.compile(r"[A-Za-z_]{3,}(?!…)")


def test_names_and_titles_of_columns_stay_whole(name: str, reply: Reply) -> None:
    titles = {
        column.title.strip() for block in blocks_of(reply) if isinstance(block, TableBlock) for column in block.columns
    }
    whole = {*_NAME.findall(to_text(reply)), *titles}
    assert {word for width in range(40, 130, 6) for word in _NAME.findall(to_text(reply, width))} - whole == set()


COLUMNS = ("", "for", ">guards", ">failures", "because")
ROWS = (("1", "(x: Float(*, *), n: int)", "12", "0", "it is called with other sizes than before"),
        ("2", "", "3", "1", "first call"))  # fmt: skip


def test_a_table_has_columns_where_these_break_no_word_and_else_its_rows_are_paragraphs() -> None:
    reply = ReportReply("", (Section("", COLUMNS, ROWS),))
    texts = [to_text(reply, width) for width in range(20, 110)]
    words = {
        word for cell in (*COLUMNS[2:], *(cell for row in ROWS for cell in row)) for word in cell.strip(">").split()
    }
    assert [{*text.split()} - {"for"} for text in texts] == [words] * len(texts)
    are_tables = [text.split()[0] == "for" for text in texts]
    assert sorted(are_tables) == are_tables
    assert {*are_tables} == {False, True}
    assert len(texts[-1].splitlines()) == 3


def test_a_paragraph_stays_where_it_begins() -> None:
    reply = ReportReply("", (Section("", note="one two three four five six seven"),))
    assert to_text(reply, 20).splitlines() == ["  one two three four", "  five six seven"]


def test_unlimited_width_breaks_no_line(replies: dict[str, Reply]) -> None:
    graph = replies["graph"]
    assert isinstance(graph, GraphReply)
    assert to_text(graph) == graph.text


def test_colours_change_no_character(name: str, reply: Reply) -> None:
    stream = io.StringIO()
    Console(file=stream, width=80, force_terminal=True, color_system="truecolor", theme=rich_theme("dark")).print(
        to_rich(reply, 80), end=""
    )
    plain = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())
    assert [line.rstrip() for line in plain.splitlines()] == to_text(reply, 80).splitlines()


def test_a_pipe_gets_plain_lines(replies: dict[str, Reply]) -> None:
    stream = io.StringIO()
    print_reply(replies["graph"], Console(file=stream, width=20))
    assert stream.getvalue() == to_text(replies["graph"])


def test_markup_in_values_is_text() -> None:
    assert to_text(ValueReply("[bold]x[/]", "str", "'[bold]x[/]'")) == "'[bold]x[/]'\n"


def test_a_value_that_says_nothing_shows_nothing(replies: dict[str, Reply]) -> None:
    stream = io.StringIO()
    print_reply(replies["nothing"], Console(file=stream, force_terminal=True))
    assert stream.getvalue() == ""


def test_a_tree_of_modules_fits_a_page_unless_more_is_asked_for() -> None:
    def tree(name: str, depth: int) -> ModuleNode:
        children = tuple(tree(str(i), depth - 1) for i in range(6)) if depth else ()
        return ModuleNode(name, "Block", (), ("forward",), children, 6**depth, 4 * 6**depth)

    text = to_text(ModuleReply("m", tree("m", 3)), 80)
    assert len(text.split("\n")) <= 45
    assert "0 … 5 Block × 6  36 parameters, 144 B, 36 modules inside" in text
    assert text.rstrip().endswith("shown to depth 2 of 3, without parameters: %modules m 3 shows all")
    assert len(to_text(ModuleReply("m", tree("m", 3), 3), 80).split("\n")) > 400


def test_without_colour_nothing_is_bold_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = new_console(force_terminal=True)
    console.file = io.StringIO()
    print_reply(ErrorReply("Compile error", "no", hints=("hint",)), console)
    assert console.file.getvalue() == "Compile error: no\nhint: hint\n"


@pytest.mark.parametrize("width", [60, 62, 70])
def test_a_wide_first_column_cuts_nothing_off_the_second(width: int) -> None:
    summary = "what each of the passes changes in the graph that f was compiled to"
    topics = (HelpTopic("%graph [--no-lines] [--full] f and so on", summary), HelpTopic("%f", summary))
    assert to_text(HelpReply("Commands", (), topics), width).split().count("compiled") == 2


def test_words_stay_whole_at_sixty_columns(name: str, reply: Reply) -> None:
    # Tables stand as paragraphs there, with titles that a wide page has no room to repeat; a broken word would be
    # broken elsewhere on a page of another width.
    whole = set(to_text(reply).split()) | set(to_text(reply, 63).split())
    long = " ".join(word for word in whole if len(word) > 50)
    pieces = {word for word in to_text(reply, 60).split() if word not in whole and word not in long}
    assert not pieces
