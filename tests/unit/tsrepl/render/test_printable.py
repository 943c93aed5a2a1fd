"""Texts of others as they are shown: nothing in them steers the terminal, and nothing else of them changes."""

import json

import pytest

from tsrepl.render.html import to_html
from tsrepl.render.printable import printable
from tsrepl.render.terminal import to_text
from tsrepl.session.replies import CodeReply, DataReply, FileReply, ReportReply, Section, TextReply, ValueReply


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"), ("\x9b31m", "\\x9b31m"), ("\x07\x00\x7f", "\\x07\\x00\\x7f"),
        ("over\rwritten", "over\\x0dwritten"), ("\u202egnp.exe", "\\u202egnp.exe"), ("\u2066x", "\\u2066x"),
        ("tab\tand\nline", "tab\tand\nline"), ("a\r\nb\x1b", "a\nb\\x1b"), ("größe 日本 → ×", "größe 日本 → ×"),
    ],
)  # fmt: skip
def test_steering_characters_stand_as_escapes(text: str, shown: str) -> None:
    assert printable(TextReply(text)) == TextReply(shown)


def test_every_text_of_a_reply_is_looked_at() -> None:
    reply = ReportReply("\x1b", (Section("\x1b", ("\x1b",), (("\x1b",),), note="\x1b", change=("\x1b", "\x1b")),))
    assert "\x1b" not in to_text(reply) and "\x1b" not in to_html(reply)
    assert "\x1b" not in to_text(FileReply("\x1b", "\x1b", (("\x1b", "\x1b"),), ("\x1b",)))


def test_what_needs_no_change_stays_as_it_is() -> None:
    reply = CodeReply("f", "def f(x):\n    return x\n", (("c0", "1"),))
    assert printable(reply) is reply
    value = object()
    shown = printable(ValueReply(value, "str", "'\x1b'"))
    assert isinstance(shown, ValueReply) and shown.value is value and shown.text == "'\\x1b'"


def test_json_means_the_same() -> None:
    data = {"name\x9b\u202e": "a\x1b\x7fü"}
    shown = to_text(DataReply(data))
    assert json.loads(shown) == data
    assert not {"\x9b", "\u202e", "\x1b", "\x7f"} & set(shown) and "ü" in shown
