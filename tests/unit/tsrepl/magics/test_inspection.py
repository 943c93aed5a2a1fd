"""`f?` and Shift-Tab: signatures and documentation, never the engine's insides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from jupyter_core.utils import run_sync
from nbclient import NotebookClient

from tsrepl.magics import active_session
from tsrepl.magics.inspection import Inspection

Run = Callable[[str], Any]
FANCY = 'def fancy(x: Tensor, n: int = 2):\n    """Scale it.\n\n    By n.\n    """\n    return x * n'
NET = """class Net(nn.Module):
    def forward(self, x: Tensor, scale: float = 1.0):
        return x * scale

net = Net()"""
IN_CELLS = {
    "torch.tanh(x": "tanh(Tensor self)",
    "y = torch.cat([x, x], ": "cat(Tensor[] tensors",
    "x.view(": "view(Tensor(a) self",
    "fancy(": "Scale it.",
    "fancy(x, n=": "int n=2",
    "fancy(torch.tanh(": "tanh(Tensor self)",
    "net(x, ": "float scale=1.",
    "nn.Linear(": "in_features",
    "torch.nn.Conv2d(3, ": "kernel_size",
    "F.relu(": "bool inplace",
    "F.cross_entropy(x, ": "label_smoothing",
    "F.gelu(": "approximate",
    "torch.nn.functional.softmax(": "_stacklevel",
    "for i in range(3):\n    z = torch.relu(": "relu(Tensor self)",
    "fancy": "Scale it.",
    "bound(": "int n",
}
"""Texts that end at the cursor, and what is told of them."""
IN_PYTHON = {
    "torch.relu": "relu(Tensor self)",
    "torch.nn.functional.cross_entropy": "label_smoothing",
    "x.tanh": "tanh(Tensor self)",
    "fancy": "Scale it.",
    "net": "float scale=1.",
    "net.forward": "float scale=1.",
    "bound": "int n",
}
INSIDES = ("_0", "object object", "*more", "**kwargs", "Most calls", "engine/", "A compiled function")


@pytest.fixture
def inspection(shell: InteractiveShell, run: Run, script: Run) -> Inspection:
    run("import engine.torch as torch\nx = torch.ones(3)")
    script(FANCY)
    script(NET)
    run("@torch.jit.script\ndef bound(n: int):\n    return n + 1")
    return Inspection(active_session(shell), shell)


@pytest.mark.parametrize("text", IN_CELLS)
def test_a_cell_of_torchscript(inspection: Inspection, text: str) -> None:
    code = f"%%torchscript\n{text}"
    found = inspection.at(f"{code})\nmore = 1", len(code))
    assert IN_CELLS[text] in found["text/plain"]
    assert not any(each in found["text/plain"] for each in INSIDES)
    assert "<" in found["text/html"]


def test_a_class_whose_name_a_process_has_had_before_is_told_of_by_its_name(
    inspection: Inspection, script: Run, shell: InteractiveShell
) -> None:
    """The engine keeps classes of one name apart by numbers, which no reply tells."""
    for _ in range(2):
        script(NET)
        code = "%%torchscript\nnet("
        told = inspection.at(code, len(code))["text/plain"], *shell.object_inspect_mime("net").values()
        assert "net: Net" in told[0] and not any("mangle" in each for each in told)
    with capture_output() as shown:
        for command in ("doc net", "who", "debug net(torch.ones(2))", "debug locals", "debug q", "graph net.forward"):
            script(f"%tsjit_{command}")
    told = " ".join(str(each.data) for each in shown.outputs)
    assert "Net" in told and "mangle" not in told


@pytest.mark.parametrize("code", ["torch.relu(", "%%torchscript", "%%torchscript\nnothing(", "%%torchscript\n(", ""])
def test_other_cells_are_left_to_python(inspection: Inspection, code: str) -> None:
    assert inspection.at(code, len(code)) == {}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_a_python_cell(inspection: Inspection, shell: InteractiveShell, name: str) -> None:
    found = shell.object_inspect_mime(name)
    assert IN_PYTHON[name] in found["text/plain"]
    assert not any(each in found["text/plain"] for each in INSIDES)


def test_objects_of_others_are_shown_as_ever(inspection: Inspection, shell: InteractiveShell, run: Run) -> None:
    run("def plain(a, b=2):\n    'Plain.'")
    assert "Plain." in shell.object_inspect_mime("plain")["text/plain"]
    run("%unload_ext tsrepl")
    assert "Scale" not in shell.object_inspect_mime("torch.relu")["text/plain"]
    assert not shell.inspector.mime_hooks


def test_a_kernel_answers_requests_of_pages() -> None:
    cells = ["%load_ext tsrepl", f"%%torchscript\n{FANCY}"]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    client = NotebookClient(made, timeout=300, kernel_name="python3")
    with client.setup_kernel():
        for at, cell in enumerate(made.cells):
            client.execute_cell(cell, at)
        told = [inspected(client, code) for code in ("%%torchscript\nfancy(", "%%torchscript\ntorch.tanh(x", "print(")]
    assert "Scale it." in told[0] and "tanh(Tensor self)" in told[1] and "print" in told[2].lower()


def inspected(client: Any, code: str) -> str:
    """What the kernel tells of the end of a cell."""
    wanted = client.kc.inspect(code)
    while True:
        message = run_sync(client.kc.get_shell_msg)(timeout=60)
        if message["parent_header"].get("msg_id") == wanted:
            return str(message["content"]["data"].get("text/plain", ""))
