"""The debugger in a notebook: cells stay cells, `%tsjit_debug` talks to it, and it knows what failed in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tsrepl.magics import active_session
from tsrepl.session.debugging import COMMANDS, DebugDialogue
from tsrepl.widgets.debug import DebuggerView

Run = Callable[[str], Any]
F = "def f(x: Tensor, y: Tensor):\n    z = x * 2\n    return z @ y"
WORDS = [name for command in COMMANDS for name in command.names if name.isidentifier()]


@pytest.fixture
def debugged(shell: InteractiveShell, run: Run, script: Run) -> InteractiveShell:
    """A notebook in which a call is debugged."""
    run("import engine.torch as torch\nx = torch.ones(2, 2)")
    script(F)
    run("%tsjit_debug f(x, x)")
    return shell


def dialogue(shell: InteractiveShell) -> DebugDialogue:
    found = active_session(shell).workspace.dialogue
    assert isinstance(found, DebugDialogue)
    return found


def line(shell: InteractiveShell) -> int:
    return next(row.number for row in dialogue(shell).standing().source if row.is_here)


CELLS = {
    "a definition": ("def g(a: Tensor):\n    return a + 1\n", "g(x).tolist()", [[2.0, 2.0]] * 2),
    "a class": ("class P:\n    n: int\n    def __init__(self, n: int):\n        self.n = n\n", "P(3).n", 3),
    "an assignment": ("x = torch.zeros(5)", "tuple(x.shape)", (5,)),
    "a new name": ("fresh = 7", "fresh", 7),
    "several entries": ("a = 1\ndef h(n: int):\n    return n + 1\nb = h(a)", "b", 2),
    "a deletion": ("del x", "'x' in globals()", False),
}


@pytest.mark.parametrize("cell", CELLS)
def test_cells_are_cells_while_a_call_is_debugged(debugged: InteractiveShell, run: Run, script: Run, cell: str) -> None:
    text, expression, value = CELLS[cell]
    before = line(debugged)
    script(text)
    assert run(expression) == value
    assert line(debugged) == before
    assert dialogue(debugged).debugger.evaluate("x.size(0)")[0] == 2


@pytest.mark.parametrize("word", WORDS)
def test_words_of_the_debugger_are_names_in_cells(debugged: InteractiveShell, run: Run, script: Run, word: str) -> None:
    script(f"{word} = 5") if word not in ("return", "break", "continue", "print") else None
    before = line(debugged)
    debugged.run_cell(f"%%torchscript\n{word}\n")
    assert line(debugged) == before


def test_the_line_magic_goes_on_with_the_call_and_views_follow(debugged: InteractiveShell, run: Run) -> None:
    first = DebuggerView(dialogue(debugged).standing())
    second = DebuggerView(dialogue(debugged).standing())
    assert line(debugged) == 3  # the magic's own line is the first
    run("%tsjit_debug n")
    assert line(debugged) == 4 and first.data["position"] == second.data["position"]
    run("%tsjit_debug !z = z + 5")
    assert [value for name, _, value in first.data["variables"] if name == "z"] != []
    assert all("7" in value for name, _, value in second.data["variables"] if name == "z")
    first.command("back-next")
    assert [row["number"] for row in second.data["source"] if row["here"]] == [3]
    assert "tensor" in run("%tsjit_debug p x").text
    run("%tsjit_debug q")
    assert first.data["over"] and second.data["over"]
    assert active_session(debugged).workspace.dialogue is None


def test_another_call_ends_the_one_before(debugged: InteractiveShell, run: Run) -> None:
    view = DebuggerView(dialogue(debugged).standing())
    run("%tsjit_debug f(x + 1, x)")
    assert view.data["over"]


def test_words_without_a_call_say_so(run: Run) -> None:
    with pytest.raises(Exception, match="no call is debugged"):
        run("%tsjit_debug n")


MODULE = "class M(nn.Module):\n    def forward(self, x: Tensor):\n        return x.view(7)\nm = M()"
FAILING = {
    "a function": ("f(x, torch.ones(3, 3))", 4),
    "its direct call": ("for _ in range(5): f(x, x)\nf(x, torch.ones(3, 3))", 4),
    "keywords": ("f(x=x, y=torch.ones(3, 3))", 4),
    "an array": ("import numpy as np\nf(np.ones((2, 2)), np.ones((3, 3)))", 4),
    "within Python": ("def through(y):\n    return f(x, y)\nthrough(torch.ones(3, 3))", 4),
    "a method": ("m(torch.ones(3))", 4),
    "an entry": ("%%torchscript\nf(x, torch.ones(3, 3))", 4),
}


@pytest.mark.parametrize("cell", FAILING)
def test_what_failed_last_is_debugged(shell: InteractiveShell, run: Run, script: Run, cell: str) -> None:
    text, number = FAILING[cell]
    run("import engine.torch as torch\nx = torch.ones(2, 2)")
    script(F)
    script(MODULE)
    script("def other(x: Tensor):\n    return x.view(9)")
    shell.run_cell("%%torchscript\nother(x)")  # fails before
    shell.run_cell(text)
    run("%tsjit_debug")
    assert line(shell) == number
    assert not dialogue(shell).debugger.finished
