"""The shell in a real terminal: keys are sent, screens are compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
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


def test_long_output_is_read_in_the_pager(terminal: Open) -> None:
    shell = terminal(100, rows=20, paged=True)
    shell.wait_for_prompt()
    shell.enter("%run net.py")
    shell.type("%passes forward(torch.ones(3), 2)")
    shell.press("Enter")
    first = shell.wait_for("n N search")
    shell.press("]", "Enter")
    assert shell.wait_for(lambda screen: screen != first and "n N search" in screen) != first
    shell.type("/aten::mul")
    shell.press("Enter")
    shell.wait_for(lambda screen: "aten::mul" in screen and "n N search" in screen)
    shell.press("q")
    shell.wait_for_prompt()
    assert "3" in shell.enter("1 + 2").splitlines()


def test_keys_of_vi_edit_the_line(terminal: Open) -> None:
    shell = terminal(100, settings='editing_mode = "vi"')
    shell.wait_for_prompt()
    shell.type("10 * 3")
    shell.press("Escape", "0", "x", "A")
    shell.type(" + 7")
    shell.press("Enter")
    shell.wait_for(lambda screen: "0 * 3 + 7" in screen and "7" in screen.splitlines())


def test_a_line_is_written_in_the_editor(terminal: Open, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho 'torch.ones(2) * 21' > \"$1\"\n")
    editor.chmod(0o755)
    shell = terminal(100, EDITOR=str(editor))
    shell.wait_for_prompt()
    shell.type("half a line")
    shell.press("C-x", "C-e")
    shell.wait_for("tensor([21., 21.])")


def test_it_can_be_put_to_sleep_and_goes_on(terminal: Open) -> None:
    shell = terminal(100, around=("bash", "--norc", "-i", "-s"))
    shell.wait_for(lambda screen: bool(screen.strip()))  # bash shows its prompt
    shell.type('"$@"')
    shell.press("Enter")
    shell.wait_for_prompt()
    shell.enter("x = torch.ones(3)")
    shell.press("C-z")
    shell.wait_for("Stopped")
    shell.type("fg")
    shell.press("Enter")
    shell.wait_for("ts>")
    assert "tensor([2., 2., 2.])" in shell.enter("x * 2")
