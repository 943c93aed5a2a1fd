"""Replies on pages: well formed, escaped, complete in themselves."""

from html.parser import HTMLParser

from tsrepl.render.html import stylesheet, to_html, to_markup, to_page
from tsrepl.render.palette import PALETTE
from tsrepl.session.replies import ErrorReply, GraphReply, Reply, ReportReply, Section, TextReply

VOID = {"meta", "br"}
HOSTILE = "<script>alert('x')</script>\"&<img src=x onerror=y>"


class Checker(HTMLParser):
    """Collects tags, classes and text; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.classes: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.classes |= {value for key, value in attrs if key == "class" and value}
        assert not [key for key, _ in attrs if key.startswith("on") or key in ("src", "href", "style")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_reply_is_well_formed(name: str, reply: Reply) -> None:
    page = Checker(to_markup(reply))
    assert page.classes <= {*PALETTE, "tsrepl", "excerpt", "right", "inside", "changed"}
    assert "script" not in page.tags


def test_texts_are_escaped() -> None:
    hostile = [
        TextReply(HOSTILE),
        GraphReply("f", HOSTILE),
        ErrorReply("Error", HOSTILE, HOSTILE, HOSTILE, hints=(HOSTILE,)),
    ]
    for reply in hostile:
        page = Checker(to_markup(reply))
        assert not page.tags & {"script", "img"}
        assert HOSTILE in page.text


def test_a_graph_is_there_character_for_character(replies: dict[str, Reply]) -> None:
    graph = replies["graph"]
    assert isinstance(graph, GraphReply)
    assert Checker(to_markup(graph)).text == graph.text.rstrip("\n")


def test_the_style_loads_nothing() -> None:
    assert "url(" not in stylesheet()
    assert "@import" not in stylesheet()
    assert "prefers-color-scheme:dark" in stylesheet()


def test_every_role_has_colours_for_light_and_dark() -> None:
    for colour in PALETTE.values():
        assert colour.light in stylesheet() or colour.light == "inherit"
        assert colour.dark in stylesheet() or colour.dark == "inherit"


def test_a_page_holds_all_replies(replies: dict[str, Reply]) -> None:
    page = Checker(to_page(replies.values(), "a < b"))
    assert "a < b" in page.text
    assert "did you mean 'x'?" in page.text
    assert "aten::mul" in page.text


def test_errors_are_announced() -> None:
    assert 'role="alert"' in to_html(ErrorReply("Error", "no"))


def test_an_indent_stays_with_its_word() -> None:
    page = Checker(to_markup(ReportReply("", (Section("", ("name", ""), (("  a b", "c"),)),))))
    assert "\u00a0\u00a0a b" in page.text
