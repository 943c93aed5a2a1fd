"""What keys, pastes, signals and sizes do, as a person meets it: typed in a real terminal."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

import pytest

import engine.torch as torch
from engine.torch import nn
from tests.terminal.conftest import Open
from tests.terminal.tmux import Terminal

TYPED: Final = ("def f(x, n: int):", "    for i in range(n):", "        if bool(x.sum() > 3):", "            x = x - 1",
                "        x = x + i", "    return x", "")  # fmt: skip
SIZES: Final = ((80, 24), (120, 40))


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


@pytest.fixture
def shell(terminal: Open) -> Callable[..., Terminal]:
    def open_shell(columns: int = 80, rows: int = 24, **settings: bool) -> Terminal:
        shell = terminal(columns, rows=rows, **settings)
        shell.wait_for_prompt()
        return shell

    return open_shell


def told(screen: str) -> list[str]:
    """The answer to the last `where`."""
    return [line for line in screen.rpartition("(debug) where")[2].splitlines() if line.strip()]


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_ctrl_c_and_ctrl_d_in_the_debugger(shell: Callable[..., Terminal], columns: int, rows: int) -> None:
    opened = shell(columns, rows)
    opened.enter("%run net.py", "%debug forward(torch.ones(3), 3)", "n")
    stop = opened.enter("where")
    opened.type("p x")
    opened.press("C-c")
    opened.wait_for_prompt()
    opened.press("C-c")
    opened.wait_for_prompt()
    assert told(opened.enter("where")) == told(stop)
    opened.press("C-d")
    opened.wait_for("left the debugger")
    assert "2" in opened.enter("1 + 1").splitlines()


def test_a_search_of_the_history_is_taken_with_enter(shell: Callable[..., Terminal]) -> None:
    opened = shell()
    opened.enter("attention = 41", "other = 1")
    opened.press("C-r")
    opened.type("atten")
    opened.wait_for("I-search backward: atten")
    opened.press("Enter")
    opened.wait_for("ts> attention = 41")
    opened.press("Enter")
    opened.wait_for_prompt()
    assert "42" in opened.enter("attention + other").splitlines()


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_that_are_typed_with_their_blanks_keep_them(shell: Callable[..., Terminal], columns: int) -> None:
    opened = shell(columns)
    assert "defined function f" in opened.enter(*TYPED)
    assert "tensor([3., 3.])" in opened.enter("f(torch.ones(2), 3)")


def test_what_is_asked_before_all_is_forgotten(shell: Callable[..., Terminal]) -> None:
    opened = shell()
    opened.enter("kept = 5")
    for answer, names in (("n", "kept"), ("y", "nothing is defined yet")):
        opened.type("%reset")
        opened.press("Enter")
        opened.wait_for(lambda screen: screen.splitlines()[-1].startswith("forget 1 name?"))
        opened.type(answer)
        opened.press("Enter")
        opened.wait_for_prompt()
        assert names in opened.enter("%who")


def test_a_cell_goes_on_until_a_blank_line(shell: Callable[..., Terminal]) -> None:
    opened = shell()
    opened.enter("%%time", "y = torch.ones(2)", "y + 1")
    opened.press("Enter")
    opened.wait_for("took ")
    assert "tensor([2., 2.])" in opened.screen()


def test_goto_shows_where_it_was_interrupted(shell: Callable[..., Terminal]) -> None:
    opened = shell()
    opened.enter("%run net.py", "%debug forward(torch.full([3], 100.0), 100000000)")
    opened.type("goto 99999999")
    opened.press("Enter")
    opened.wait_for(lambda screen: "forward()" not in screen.splitlines()[-1])
    opened.press("C-c")
    opened.wait_for("interrupted")
    opened.wait_for_prompt()
    assert re.search(r" in (forward|scale)  position \d+", opened.screen().rpartition("interrupted")[2])


def test_the_pager_tells_its_keys_and_fills_its_last_page(shell: Callable[..., Terminal]) -> None:
    opened = shell(paged=True)
    opened.type("%ops a")
    opened.press("Enter")
    opened.wait_for("? help")
    opened.type("?")
    opened.wait_for("a screen down, up")
    opened.type("?")
    opened.wait_for("aten::")
    opened.press("End")
    screen = opened.wait_for(lambda screen: "? help" in screen.splitlines()[-1])
    assert len([line for line in screen.splitlines() if line.strip()]) == 24
    opened.type("q")
    opened.wait_for_prompt()


def test_all_that_an_error_says_is_read_in_the_pager(shell: Callable[..., Terminal]) -> None:
    opened = shell(paged=True)
    opened.enter("torch.sum('x', 2, 3, 4)")
    opened.type("%more")
    opened.press("Enter")
    assert "aten::sum" in opened.wait_for("? help")
    opened.type("q")
    opened.wait_for_prompt()
    assert "3" in opened.enter("1 + 2").splitlines()


@pytest.mark.parametrize("columns", [60, 80])
def test_counts_of_plans_have_whole_names_on_narrow_screens(shell: Callable[..., Terminal], columns: int) -> None:
    opened = shell(columns)
    opened.enter("%run net.py", "%plan --no-grad scale(torch.ones(3, 4), 2.0)")
    words = opened.everything().split()
    assert {"guards", "kernels", "hits", "misses", "failures"} <= {*words}
    assert "%explain --no-grad scale" in " ".join(words)


@pytest.mark.parametrize("seconds", [0.2, 0.8, 1.6])
def test_an_interrupted_report_leaves_the_old_page_or_the_new_one(terminal: Open, seconds: float) -> None:
    opened = terminal(80, "report", "net.py", "--input", "ones(3)", "300", "-o", "page.html")
    page = opened.folder / "page.html"
    page.write_text("the old one")
    time.sleep(seconds)
    opened.press("C-c")
    opened.wait_for_end()
    assert page.read_text() == "the old one" or page.read_text().endswith("</html>\n")
    assert {each.name for each in page.parent.iterdir()} == {"net.py", "page.html"}


def test_what_fails_or_is_interrupted_in_the_debugger_leaves_it_where_it_was(shell: Callable[..., Terminal]) -> None:
    opened = shell(80, 40)
    opened.enter("%run net.py", "%debug forward(torch.ones(3), 3)", "n")
    stop = opened.enter("where")
    for line, answer in (("p x @ torch.ones(9)", "RuntimeError"), ("watch x +", "Syntax error"),
                         ("b 8 if n ++", "Syntax error"), ("display x[9]", "x[9]: select(): index 9"),
                         ("undisplay x[9]", "")):  # fmt: skip
        assert answer in opened.enter(line).rpartition(f"(debug) {line}")[2]
    for command in ("p", "display"):
        opened.type(f"{command} forward(torch.ones(3), 1000000000)")
        opened.press("Enter")
        opened.wait_for(lambda screen: screen.endswith("1000000000)"))
        opened.press("C-c")
        assert "nterrupted" in opened.wait_for_prompt()
    assert told(opened.enter("where")) == told(stop)
    assert "x = tensor" not in opened.enter("n").rpartition("(debug) n")[2]


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_lines_that_are_pasted_as_if_they_were_typed_keep_their_blanks(terminal: Open, term: str) -> None:
    opened = terminal(80, around=("env", f"TERM={term}"))
    opened.wait_for("ts>")
    opened.paste("\n".join([*TYPED, "f(torch.ones(2), 3)", ""]))
    opened.wait_for("tensor([3., 3.])")
    assert "error" not in opened.screen().lower()


def test_a_page_that_is_made_narrower_has_its_tables_anew(shell: Callable[..., Terminal]) -> None:
    opened = shell(120, 24, paged=True)
    opened.type("%help passes")
    opened.press("Enter")
    opened.wait_for("q leave")
    time.sleep(1)  # it looks for its first size
    opened.resize(60, 40)
    screen = opened.wait_for(lambda screen: "add_if_then_else          Replaces an If" in screen)
    assert "an If that only" in screen
    opened.press("q")
    opened.wait_for_prompt()
    assert max(map(len, opened.screen().splitlines())) <= 60


def test_three_models_are_told_apart(terminal: Open) -> None:
    opened = terminal(80)
    opened.wait_for_prompt()
    names = ("first", "second", "third")
    for name in names:
        torch.jit.save(torch.jit.script(Named()), opened.folder / f"{name}.pt")
        opened.enter(f"%load {name}.pt")
    opened.enter("x = torch.ones(1, 2)", f"%debug {' + '.join(f'{name}(x)' for name in names)}", "b fc")
    for name in names:
        assert f"of {name}.fc" in opened.enter("c")
