"""A notebook speaks of commands as it has them, wherever the text is made."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tsrepl.session.commands import COMMANDS

Run = Callable[[str], Any]
AT_THE_PROMPT = re.compile(rf"(?<![\w%])%(?:{'|'.join(each.name for each in COMMANDS)})\b|(?<![!\w])tsrepl [a-z]+ ")
PROGRAM = """class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ModuleList([nn.Linear(2, 2) for _ in range(30)])

    def forward(self, x: Tensor):
        for each in self.a:
            x = each(x)
        return x

class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaves = nn.ModuleList([nn.Sequential(nn.Sequential(Leaf())) for _ in range(9)])

    def forward(self, x: Tensor):
        for each in self.leaves:
            x = each(x)
        return x

tree = Tree()
x = torch.ones(2, 2)

def f(x: Tensor):
    return torch.tanh(x) * 2
"""
CELLS = {
    "a large module": "%tsjit_modules tree",
    "a large module of Python's": "tree",
    "a large module in a cell": "%%torchscript\ntree",
    "an error with overloads": "%%torchscript\ntorch.add('a', 'b', 'c', 'd')",
    "all of it": "%tsjit_more",
    "an error of Python's": "f('a')",
    "what was typed": "%tsjit_history",
    "help": "%tsjit_help",
    "help of a command": "%tsjit_help debug",
    "no such command": "%%torchscript\n%grph f",
    "no such name": "%tsjit_graph nothing",
    "no call before": "%tsjit_profile f",
    "nothing to debug": "%tsjit_debug n",
    "a story": "%tsjit_explain f(x)",
    "a plan": "%tsjit_plan f(x)",
    "kernels": "%tsjit_kernels f(x)",
    "types": "%tsjit_profile --types f",
    "a file": "%tsjit_save f {}/f.pt",
    "what a file is": "%tsjit_identify {}/f.pt",
    "what a program can do": "%tsjit_check {}/f.pt",
    "a file that is loaded": "%tsjit_load {}/f.pt as g",
    "a report": "%tsjit_report f(x) {}/out.html",
    "operators": "%tsjit_ops",
    "who": "%tsjit_who",
}


def test_every_command_that_is_mentioned_is_there(
    shell: InteractiveShell, script: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script(PROGRAM)
    capsys.readouterr()
    script("%graph f")
    for about, cell in CELLS.items():
        shell.run_cell(cell.format(tmp_path), store_history=True)
        said = re.sub(r"\x1b\[[\d;]*m", "", "".join(capsys.readouterr()))
        assert not AT_THE_PROMPT.search(said), f"{about}: {said}"
    page = re.sub(r"<style>.*?</style>|<[^>]*>", "", (tmp_path / "out.html").read_text(), flags=re.DOTALL)
    assert not AT_THE_PROMPT.search(page)
    assert "more: %tsjit_" in page
