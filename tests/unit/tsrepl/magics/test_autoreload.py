"""Functions and classes of files that IPython's autoreload changes in place: programs follow, in both languages."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

Run = Callable[[str], Any]
HELPER: Final = "def add(x):\n    return x + {}\n"
WRITTEN: Final = """import edited_helper
from edited_helper import add
from engine.torch import nn

def act(x):
    return x + {}

def through(x):
    return add(x)

class Net(nn.Module):
    def forward(self, x):
        return act(x)

class Pair:
    def __init__(self, n: int):
        self.n = n + {}
"""
PROGRAMS: Final = {
    "a function": "act(x)",
    "one of a module": "edited.act(x)",
    "one that another file's function calls": "through(x)",
    "one of another file that a module has": "edited.through(x)",
    "one of another file": "edited.edited_helper.add(x)",
    "a class": "x + Pair(0).n",
}


@pytest.fixture
def edit(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """A function that writes both files with another number in them, of which autoreload looks at each cell."""
    later = count(1)

    def edit(number: int) -> None:
        for name, text in (("edited", WRITTEN), ("edited_helper", HELPER)):
            path = tmp_path / f"{name}.py"
            path.write_text(text.replace("{}", str(number)))
            moment = time.time() + 10 * next(later)  # files have whole seconds, and tests are faster
            os.utime(path, (moment, moment))

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    edit(1)
    yield edit
    for name in ("edited", "edited_helper"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("first", ["load_ext autoreload", "reload_ext tsrepl"])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_programs_follow_what_is_edited(
    run: Run, script: Run, edit: Callable[[int], None], kind: str, first: str
) -> None:
    run(f"%{first}\n%load_ext autoreload\n%autoreload 2")
    run("import engine.torch as torch\nimport edited\nfrom edited import *")
    script(f"def f(x: Tensor):\n    return {PROGRAMS[kind]}")
    assert run("f(torch.zeros(1)).item()") == 1
    edit(5)
    assert run("f(torch.zeros(1)).item()") == 5
    edit(9)
    script("y = f(torch.zeros(1))")
    assert run("y.item()") == 9
    assert run("f(torch.zeros(1)).item()") == 9


def test_modules_made_from_then_on_have_what_is_edited(run: Run, script: Run, edit: Callable[[int], None]) -> None:
    run("%load_ext autoreload\n%autoreload 2\nimport engine.torch as torch\nfrom edited import Net")
    script("net = Net()\ny = net(torch.zeros(1))")
    edit(5)
    script("z = net(torch.zeros(1))\nagain = Net()\nw = again(torch.zeros(1))")
    assert run("y.item(), z.item(), w.item()") == (1, 1, 5)


def test_nothing_is_compiled_again_where_nothing_is_edited(run: Run, script: Run, edit: Callable[[int], None]) -> None:
    run("%load_ext autoreload\n%autoreload 2\nimport engine.torch as torch\nimport edited")
    script("def f(x: Tensor):\n    return edited.act(x)")
    run("before = f")
    run("1 + 1")
    assert run("f is before")
    edit(2)
    assert run("f is not before")
