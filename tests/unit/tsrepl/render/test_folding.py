"""Replies cut to the size of a page."""

from __future__ import annotations

import re

from tsrepl.render.blocks import CodeBlock, Diff, FoldBlock, Span, TableBlock, TreeView, fold, line
from tsrepl.render.diff import changed_words, diff_lines
from tsrepl.render.folding import MOST, SCREENS, for_page, height
from tsrepl.render.html import to_html
from tsrepl.render.layout import blocks_of
from tsrepl.session.replies import (
    GraphReply,
    Later,
    ModuleNode,
    ModuleReply,
    PassesReply,
    PassReply,
    PipelineReply,
    Reply,
    TraceReply,
    TraceRow,
)

LINES = 30_000


def long_graph(name: str = "relu") -> str:
    rows = "".join(f"  %{n} : Tensor = aten::{name}(%x)\n" for n in range(LINES // 10))
    return f"graph(%x : Tensor):\n{rows}  return (%x)\n"


def long_replies() -> list[Reply]:
    relu, tanh = Later(long_graph, LINES // 10), Later(lambda: long_graph("tanh"), LINES // 10)
    passes = tuple(
        PassReply((f"pass_{n}",), n % 5 == 0, 0.1, (), 0, relu, tanh if n % 5 == 0 else relu) for n in range(12)
    )
    rows = tuple(TraceRow(0, "f", n, f"{n} = relu {n}", (("x", "1"), ("y", "2")), (("z", "3"),)) for n in range(LINES))
    leaf = ModuleNode("leaf", "Linear", (), ("forward",), (), 10, 40)
    root = ModuleNode("m", "Net", (), ("forward",), (leaf,) * 500, 5000, 20_000)
    return [
        GraphReply("f", long_graph()),
        PipelineReply(PassesReply("f", LINES // 10, relu), passes, "12 passes"),
        TraceReply("f(x)", rows, "1"),
        ModuleReply("m", root, 5),
    ]


def test_no_reply_is_longer_than_two_screens_or_half_a_megabyte() -> None:
    for reply in long_replies():
        shown = for_page(blocks_of(reply))
        assert sum(map(height, shown)) <= SCREENS + 20, type(reply)
        assert len(to_html(reply)) < 600_000, type(reply)


def test_what_is_left_out_is_counted() -> None:
    text = "\n".join(map(str, range(MOST + 500)))
    first, rest, note = for_page([CodeBlock(text)])
    assert isinstance(first, CodeBlock) and isinstance(rest, FoldBlock) and not rest.is_open
    assert "500 more lines are left out" in str(note)


def test_short_replies_stay_as_they_are() -> None:
    blocks = [line("a"), CodeBlock("b"), TableBlock((), ((),)), fold((Span("c"),), line("d"))]
    shown = for_page(blocks)
    assert shown[:3] == blocks[:3] and isinstance(shown[3], FoldBlock) and shown[3].is_open
    assert shown[3].blocks == (line("d"),)


def test_trees_open_as_deep_as_there_is_room() -> None:
    inner = TreeView((Span("b"),), tuple(TreeView((Span(str(n)),)) for n in range(200)))
    (tree,) = for_page([TreeView((Span("a"),), (inner,))])
    assert isinstance(tree, TreeView) and tree.open_depth == 1
    assert len(re.findall("<details", to_html(GraphReply("", "")))) == 0


def test_the_style_of_a_fragment_stands_in_its_elements() -> None:
    for reply in long_replies():
        text = to_html(reply)
        assert "<style" not in text and "class=" not in text
        assert 'style="' in text
        assert not re.findall(r"color:(?!#|inherit)(?<!color:#......;color:)", text)  # each has a colour of its own


def test_changed_words_of_a_line_are_marked() -> None:
    lines = diff_lines("a\n%1 : Tensor = aten::relu(%x)\nb", "a\n%1 : Float(2) = aten::relu(%x)\nb")
    changed = changed_words(lines)
    words = {at: [lines[at].text[i:j] for i, j in stretches] for at, stretches in changed.items()}
    assert words == {1: ["Tensor"], 2: ["Float(2)"]}
    assert isinstance(Diff(lines), Diff)
