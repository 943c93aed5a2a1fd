"""The shell in a real terminal: keys are sent, screens are compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest

from tests.terminal.conftest import Open

Same = Callable[[str, str], None]
_COLOURS: Final = re.compile(r"\{[\d;]*\b(3[0-7]|9[0-7]|4[0-7]|[34]8;\S+?)\b[\d;]*\}")
STORY: Final = ("%run net.py", "x = torch.ones(3)", "%graph scale", "%debug forward(x, 3)", "watch nan", "c")


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_a_program_is_looked_at_and_debugged(terminal: Open, same_screen: Same, columns: int) -> None:
    shell = terminal(columns)
    shell.wait_for_prompt()
    shell.enter(*STORY, "bs", "locals")
    same_screen(f"story-{columns}", shell.everything())


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_an_error_shows_its_place_at_every_width(terminal: Open, same_screen: Same, columns: int) -> None:
    shell = terminal(columns)
    shell.wait_for_prompt()
    shell.enter("%run net.py", "mixed(torch.ones(2, 2), 3)", "%debug", "locals")
    same_screen(f"error-{columns}", shell.everything())


def test_colours_are_the_terminals_own(terminal: Open, same_screen: Same) -> None:
    shell = terminal(100)
    shell.wait_for_prompt()
    shell.enter(*STORY)
    assert _COLOURS.search(shell.coloured())
    same_screen("colours", shell.coloured())


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_each_theme_has_colours_of_its_own(terminal: Open, same_screen: Same, theme: str) -> None:
    shell = terminal(100, settings=f'theme = "{theme}"', COLORTERM="truecolor")
    shell.wait_for_prompt()
    shell.enter(*STORY)
    same_screen(f"colours-{theme}", shell.coloured())


def test_without_colours_there_are_none(terminal: Open) -> None:
    with_colours, without = terminal(100), terminal(100, NO_COLOR="1")
    for shell in (with_colours, without):
        shell.wait_for_prompt()
        shell.enter(*STORY)
    assert not _COLOURS.search(without.coloured())
    assert without.everything() == with_colours.everything()


def test_tab_completes_the_debuggers_commands(terminal: Open) -> None:
    shell = terminal(100)
    shell.wait_for_prompt()
    shell.enter("%run net.py", "%debug forward(torch.ones(3), 3)")
    shell.type("back-n")
    shell.press("Tab")
    shell.wait_for("(debug) back-next")


def test_an_interrupt_stops_a_debugged_loop_where_it_is(terminal: Open) -> None:
    shell = terminal(100)
    shell.wait_for_prompt()
    shell.enter("%run net.py", "%debug forward(torch.full([3], 100.0), 100000000)")
    shell.type("c")
    shell.press("Enter")
    shell.wait_for(
        lambda screen: "forward()" not in screen.splitlines()[-1]
    )  # the toolbar is there while keys are read
    shell.press("C-c")
    shell.wait_for("interrupted")
    assert "expression" in shell.enter("where")


def test_a_block_is_typed_with_its_indentation(terminal: Open) -> None:
    shell = terminal(100)
    shell.wait_for_prompt()
    shell.enter("def f(a):", "return a + 1", "", "f(torch.ones(2))")
    assert "tensor([2., 2.])" in shell.screen()


def test_leaving_ends_the_command(terminal: Open) -> None:
    shell = terminal(100)
    shell.wait_for_prompt()
    shell.press("C-d")
    shell.wait_for_end()
