"""Classes of modules in cells: what the notebook's Python has of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import engine.torch as torch
from tsrepl.magics.display import CellError
from tsrepl.session.replies import GraphReply

Run = Callable[[str], Any]
NET = """\
def act(x: Tensor):
    return x + 1

class Net(nn.Module):
    def __init__(self, n: int = 2):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.weights = np.ones(n)

    def twice(self, x: Tensor):
        return self.forward(x) * 2

    def forward(self, x: Tensor):
        return act(self.linear(x))"""


@pytest.fixture(autouse=True)
def numpy(run: Run) -> None:
    run("import numpy as np; size = 3")


def test_a_class_of_a_cell_makes_compiled_modules_in_both_languages(
    shell: InteractiveShell, run: Run, script: Run
) -> None:
    script(NET)
    assert run("net = Net(size); net") is shell.user_ns["net"]
    script("other = Net(size)\nsame = net\ny = net(torch.ones(1, 3))")
    assert run("isinstance(net, Net) and isinstance(other, Net) and same is net and y.shape") == (1, 3)
    assert run("len(list(other.parameters()))") == 2
    assert not {"torch", "nn", "Tensor"} & shell.user_ns.keys(), "what cells know without an import is not Python's"


def test_methods_are_compiled_when_python_calls_them(run: Run, script: Run) -> None:
    script(NET)
    run("net = Net()")
    assert run("net.twice(net.linear.weight).shape") == (2, 2) and run("'mul' in str(net.twice.graph)")
    with pytest.raises(AttributeError):
        run("net.thrice")


def test_options_of_the_cell_know_modules(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(f'%%torchscript --show graph --run "Net()(torch.ones(1, 2))" --name mod\n{NET}\n')
    said = capsys.readouterr().out
    assert said.index("float32 (1, 2)") < said.index("graph(%self : Net")
    assert run("mod.Net is Net")
    assert isinstance(run("%tsjit_graph Net").reply, GraphReply)


def test_a_definition_anew_in_either_language_reaches_what_is_made_anew(run: Run, script: Run) -> None:
    script(NET.replace("act(", "scale(", 1).replace("act(self.linear(x))", "act(scale(x))"))
    run("def act(x):\n    return x * 10")
    run("old = Net(); zero = old.linear.weight.detach() * 0")
    assert run("old(zero).max().item()") == 10.0
    run("def act(x):\n    return x * 100")
    assert run("Net()(zero).max().item(), old(zero).max().item()") == (100.0, 10.0)
    script("def act(x: Tensor):\n    return x * 1000")
    assert run("Net()(zero).max().item()") == 1000.0


def test_classes_of_python_make_modules_in_cells(run: Run, script: Run) -> None:
    script(NET)
    run("from engine.torch import nn")
    run("class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Sequential(Net(2), Net(2))\n"
        "    def forward(self, x):\n        return self.a(x)")  # fmt: skip
    script("m = Outer()\ny = m(torch.ones(1, 2))")
    assert run("m(y).shape") == (1, 2)
    script("class Derived(Net):\n    def forward(self, x):\n        return self.linear(x) * 0\n\nd = Derived()")
    assert run("isinstance(d, Net) and d(y).sum().item()") == 0.0


def test_python_takes_the_name_and_gives_it_back(run: Run, script: Run) -> None:
    script(NET)
    run("Net = 3")
    script("three = Net")
    assert run("three") == 3
    script(NET)
    run("del Net")
    with pytest.raises(CellError, match="Net"):
        script("Net()")


def test_the_last_value_is_known_to_ipython_when_a_module_was_made_in_between(run: Run, script: Run) -> None:
    script(NET)
    run("1 + 1")
    script("40 + 2\nnet = Net()")
    assert run("_") == 42 and run("_ + 1") == 43


def test_training_from_python(run: Run, script: Run) -> None:
    script(NET)
    run("import engine.torch as torch")
    run("net = Net(); opt = torch.optim.SGD(net.parameters(), lr=0.1)")
    before = run("net(torch.ones(1, 2)).sum().item()")
    run("net(torch.ones(1, 2)).sum().backward(); opt.step()")
    assert run("net(torch.ones(1, 2)).sum().item()") < before
    assert torch is run("torch")
