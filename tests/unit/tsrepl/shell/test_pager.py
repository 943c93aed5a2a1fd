"""The pager: keys in, lines of the screen out, without a terminal."""

import threading
from collections.abc import Callable

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tests.timing import within
from tsrepl.render.blocks import Block, CodeBlock, Column, FoldBlock, Span, TableBlock, View, line
from tsrepl.render.outline import outline
from tsrepl.shell.pager import Pager

GRAPH = "graph(%x : Tensor):\n  %1 : int = aten::size(%x)\n  = prim::If(%1)\n    block0():\n      -> ()\n  return (%x)"
HEIGHT = 39  # lines of the screen of a DummyOutput, less the last


def section(name: str, **texts: str) -> FoldBlock:
    def view(name: str, text: str) -> View:
        return View(name, lambda: (CodeBlock(text),))

    return FoldBlock((Span(name, "title"),), tuple(view(*each) for each in texts.items()), shown=1)


PASSES = [section(name, before=f"{name} old", diff=f"{name} change", after=f"{name} new") for name in ("inline", "cse")]
Look = Callable[..., list[str]]


@pytest.fixture
def look() -> Look:
    """The lines on the screen after the keys; the cursor's begins with ">"."""

    def look(blocks: list[Block], *keys: str, width: int = 60) -> list[str]:
        with create_pipe_input() as pipe:
            pager = Pager(input=pipe, output=DummyOutput())
            pager.add(lambda _: outline(blocks, width))
            pager.finish()
            pager.screen(width, HEIGHT)
            pipe.send_text("".join(keys) + "q")
            pager.run()
            return [shown(each) for each in pager.screen(width, HEIGHT)]

    def shown(fragments: list[tuple[str, str]]) -> str:
        text = "".join(text for _, text in fragments)
        return (">" if "reverse" in fragments[0][0] else " ") + text.rstrip()

    return look


RIGHT, LEFT, ENTER = "\x1b[C", "\x1b[D", "\r"


def test_sections_are_folded_at_first_and_views_turn(look: Look) -> None:
    assert look(PASSES) == [">1 ▸ inline", " 2 ▸ cse"]
    assert look(PASSES, RIGHT) == [">1 ▾ inline", " 2     inline change", " 3 ▸ cse"]
    assert look(PASSES, RIGHT, RIGHT)[1] == " 2     inline new"
    assert look(PASSES, RIGHT, "j", LEFT) == [">1 ▾ inline", " 2     inline old", " 3 ▸ cse"]


def test_the_next_pass_is_shown_as_this_one_was(look: Look) -> None:
    assert look(PASSES, RIGHT, RIGHT, "]") == [">2 ▾ cse", " 3     cse new"]
    assert look(PASSES, RIGHT, RIGHT, "]", "[") == [">1 ▾ inline", " 2     inline new", " 3 ▸ cse"]


def test_blocks_fold(look: Look) -> None:
    code: list[Block] = [CodeBlock(GRAPH, "ir")]
    assert look(code, "jj", ENTER)[2:] == [">3 ▸   = prim::If(%1)", " 4     return (%x)"]
    assert look(code, "C") == [">1 ▸ graph(%x : Tensor):"]
    assert len(look(code, "C", "E")) == len(GRAPH.split("\n"))


def test_searching_opens_folds_and_goes_round(look: Look) -> None:
    assert look(PASSES, "/cse ch\r") == [" 1 ▸ inline", " 2 ▾ cse", ">3     cse change"]
    assert look(PASSES, "/change\rn")[-1] == ">4     cse change"
    assert look(PASSES, "/change\rnn")[1] == ">2     inline change"
    assert look(PASSES, "/change\rN")[-1] == ">4     cse change"
    assert look(PASSES, "/CHANGE\r") == look(PASSES)


def test_moving(look: Look) -> None:
    lines: list[Block] = [line(f"line {i}") for i in range(100)]
    assert look(lines, "G")[-1] == ">100   line 99"
    assert look(lines, "Gg")[0] == ">  1   line 0"
    assert look(lines, " ")[0] == "> 39   line 38"
    assert look(lines, " b")[0] == ">  1   line 0"


def test_words_stay_whole_on_a_narrow_page(look: Look) -> None:
    text = "%first : Tensor = aten::batch_norm(%input.52, %weight.297, %bias.297, %running_mean, %running_var)"
    shown = look([CodeBlock(text, "ir")], width=40)
    assert len(shown) > 2
    assert " ".join(" ".join(each[1:] for each in shown).removeprefix("1").split()) == text


def test_it_fills_up_while_it_is_open_and_ctrl_c_stops_what_is_computed() -> None:
    stopped = threading.Event()
    with create_pipe_input() as pipe:
        pager = Pager(input=pipe, output=DummyOutput(), interrupt=stopped.set)
        thread = threading.Thread(target=pager.run)
        thread.start()
        pager.add(lambda _: outline([line("first")], 60))
        pager.add(lambda _: outline([line("second")], 60))
        pipe.send_text("\x03")
        assert stopped.wait(5)
        pager.finish()
        pipe.send_text("q")
        thread.join(5)
        assert not thread.is_alive()
    assert [row.item.text for row in pager.rows] == ["first", "second"]


def test_a_key_costs_little_in_a_graph_of_thousands_of_nodes() -> None:
    nodes = "\n".join(f"  %{i} : Tensor = aten::relu(%{i - 1})" for i in range(1, 5001))
    with create_pipe_input() as pipe:
        pager = Pager(input=pipe, output=DummyOutput())
        pager.add(lambda _: outline([CodeBlock(f"graph(%0 : Tensor):\n{nodes}\n  return (%5000)", "ir")], 100))
        pager.pattern = "%4999)"
        with within(1):
            for act in (lambda: pager.move(1), lambda: pager.move(5000), lambda: pager.find(1), pager.toggle):
                act()
                pager.screen(100, 40)


TABLE = TableBlock(
    (Column("pass"), Column("what it does")),
    tuple((name, f"{name} is what it changes in the graph of a program that was compiled") for name in "abcdefgh"),
)


@pytest.mark.parametrize(("before", "after"), [(120, 60), (60, 120), (80, 40), (40, 41)])
def test_a_page_of_another_width_is_as_if_it_had_been_opened_so(before: int, after: int) -> None:
    def opened(width: int) -> Pager:
        pager = Pager(output=DummyOutput())
        for blocks in ([TABLE], PASSES, [TABLE]):
            pager.add(lambda width, blocks=blocks: outline(blocks, width - 8))  # type: ignore[misc]
        shown(pager, width)
        pager.move(next(i for i, row in enumerate(pager.rows) if row.item.text == "inline"))
        pager.toggle()
        pager.turn(1)
        pager.move(1)
        return pager

    def shown(pager: Pager, width: int) -> list[str]:
        return ["".join(text for _, text in each).rstrip() for each in pager.screen(width, 100)]

    resized, at_once = opened(before), opened(after)
    shown(resized, after)
    assert [row.item.text for row in resized.rows] == [row.item.text for row in at_once.rows]
    assert resized.rows[resized.cursor].item.text == "inline new"
    assert max(map(len, shown(resized, after))) <= after
