"""Imports of what TorchScript has anyway do nothing but bind their names, through every door and in every text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import engine.torch as torch
from tsrepl.session.programs import run_program, show_program
from tsrepl.session.replies import CodeReply, DefinitionReply, ErrorReply, ModuleReply, ValueReply
from tsrepl.session.session import Session

IMPORTS: Final = {
    "import torch": "torch.relu(x)",
    "import torch.nn as nn": "nn.functional.relu(x)",
    "import torch.nn.functional as F": "F.relu(x)",
    "from torch.nn import functional as F": "F.relu(x)",
    "from torch.nn import functional as func": "func.relu(x)",
    "from torch.nn.functional import relu": "relu(x)",
    "from torch.nn.functional import relu as act": "act(x)",
    "from torch import nn, Tensor": "nn.functional.relu(x)",
    "from torch import relu": "relu(x)",
    "import torch as th": "th.relu(x)",
    "import torch, math": "torch.relu(x) * math.sqrt(1.0)",
    "import math as m": "torch.relu(x) * m.sqrt(1.0)",
    "from math import sqrt, pi as p": "torch.relu(x) * sqrt(1.0) * p / 3.141592653589793",
    "from __future__ import annotations": "torch.relu(x)",
    "from typing import (\n    Dict,\n    List,\n)": "torch.relu(x)",
    "from typing_extensions import Final": "torch.relu(x)",
    "import typing": "torch.relu(x)",
    "import torch.utils.data": "torch.relu(x)",
    "import torch; import math": "torch.relu(x)",
    "": "F.relu(x) + nn.functional.relu(x) - torch.relu(x)",
}
"""Imports, and an expression that needs them."""


@pytest.mark.parametrize("line", IMPORTS)
def test_names_are_known_to_entries(line: str) -> None:
    session = Session()
    assert session.execute(line) == []
    (reply,) = session.execute(f"x = torch.ones(1)\n{IMPORTS[line]}")
    assert isinstance(reply, ValueReply) and reply.text == "tensor([1.])"


@pytest.mark.parametrize("line", IMPORTS)
@pytest.mark.parametrize("decorator", ["", "@torch.jit.script\n"])
def test_names_are_known_to_definitions(line: str, decorator: str) -> None:
    session = Session()
    text = f"{line}\n\n{decorator}def f(x):\n    return {IMPORTS[line]}\n\nf(torch.ones(1))"
    *_, reply = session.execute(text)
    assert isinstance(reply, ValueReply) and reply.text == "tensor([1.])"


@pytest.mark.parametrize("line", [line for line in IMPORTS if " pi" not in line])  # no global number is a value
def test_names_are_known_to_modules(line: str) -> None:
    text = f"{line}\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return {IMPORTS[line]}\n"
    *_, reply = Session().execute(f"{text}\nNet()(torch.ones(1))")
    assert isinstance(reply, ValueReply) and reply.text == "tensor([1.])"


@pytest.mark.parametrize("line", IMPORTS)
def test_files_begin_with_them(line: str, tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text(f"{line}\n\ndef main():\n    x = torch.ones(1)\n    return {IMPORTS[line]}\n")
    *_, reply = run_program(str(path), None, (), None)
    assert isinstance(reply, ValueReply) and reply.text == "tensor([1.])"
    (shown,) = show_program(str(path), "code", None)
    assert isinstance(shown, CodeReply) and "def main" in shown.text


@pytest.mark.parametrize(
    ("line", "word"),
    [("import numpy as np", "numpy"), ("from os import path", "os"), ("from torch import nonsense", "nonsense"),
     ("import torch.nn.functionl", "functionl"), ("from torch import *", "names"), ("from . import x", "no ."),
     ("from .a import x", ".a"), ("import toch", "toch"), ("from typing import List as L", "typing")],
)  # fmt: skip
def test_others_are_refused_with_their_place(line: str, word: str) -> None:
    (error,) = Session().execute(line)
    assert isinstance(error, ErrorReply)
    assert word in error.message and line in error.excerpt


def test_what_stands_behind_an_import_is_run() -> None:
    (reply,) = Session().execute("import torch; import math as m; m.floor(2.5)")
    assert isinstance(reply, ValueReply) and reply.value == 2


def test_the_newest_meaning_of_a_name_counts() -> None:
    session = Session()
    session.execute("F = 3")
    assert isinstance(session.execute("F")[0], ValueReply)
    session.execute("import torch.nn.functional as F")
    (reply,) = session.execute("F.relu(torch.ones(1))")
    assert isinstance(reply, ValueReply)
    session.execute("def g(x):\n    return act(x)\n\ndef act(x):\n    return x + 1\n")
    session.execute("from torch import neg as act")
    (reply,) = session.execute("g(torch.ones(1))")
    assert isinstance(reply, ValueReply) and reply.text == "tensor([-1.])"
    (defined,) = session.execute("def act(x):\n    return x + 5\n")
    assert isinstance(defined, DefinitionReply)
    (reply,) = session.execute("g(torch.ones(1))")
    assert isinstance(reply, ValueReply) and reply.text == "tensor([6.])"


def test_layers_are_made_by_imported_names() -> None:
    session = Session()
    session.execute("from torch.nn import Linear as Dense, Module")
    (reply,) = session.execute("Dense(2, 3)")
    assert isinstance(reply, ModuleReply)
    init = "    def __init__(self):\n        super().__init__()\n        self.a = Dense(1, 2)\n"
    session.execute(f"class Net(Module):\n{init}    def forward(self, x):\n        return self.a(x)\n")
    (reply,) = session.execute("Net()")
    assert isinstance(reply, ModuleReply)


@pytest.mark.parametrize("text", ["torch.__version__", "torch.version.__version__"])
def test_constants_of_pythons_torch_are_there(text: str) -> None:
    session = Session()
    session.execute(f"def f():\n    return {text}\n")
    for each in (text, "f()"):
        (reply,) = session.execute(each)
        assert isinstance(reply, ValueReply)
        assert reply.value == torch.__version__


PYTHONS = ("torch.load", "torch.jit.load", "torch.jit.save", "torch.jit.script", "torch.jit.trace", "torch.Tensor",
           "torch.cuda.is_available", "torch.get_num_threads", "torch.nn.Module", "torch.version", "nn.Linear",
           "torch.finfo", "torch.compile")  # fmt: skip


@pytest.mark.parametrize("call", ["", "(1)"])
@pytest.mark.parametrize("path", PYTHONS)
def test_other_names_of_pythons_torch_are_no_riddles(path: str, call: str) -> None:
    (reply, *_) = Session().execute(f"{path}{call}")
    if path.startswith(("nn.", "torch.nn.")) and call:
        return  # makes a module
    assert isinstance(reply, ErrorReply)
    assert reply.message.startswith(f"{path.replace('nn.L', 'torch.nn.L')} is a name of Python")
    (hint,) = reply.hints
    assert "did you mean" not in hint


@pytest.mark.parametrize("path", ["torch.foo", "torch.__foo__", "torch.nn.Foo", "torch.jit.foo"])
def test_names_that_nobody_has_are_compared_with_those_that_can_be_meant(path: str) -> None:
    (reply,) = Session().execute(path)
    assert isinstance(reply, ErrorReply)
    assert "__" not in "".join(reply.hints)
