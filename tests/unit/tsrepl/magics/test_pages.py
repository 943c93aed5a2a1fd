"""What a kernel sends to a page: static forms as one output, the view as another, and what exports make of them."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter, MarkdownExporter

from tests.viewed_program import VIEWED
from tsrepl.magics.display import STATIC, WIDGET

MODULE = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 8)

    def forward(self, x: Tensor):
        return torch.relu(self.linear(x))

m = Net()
x = torch.randn(8, 64)"""
VIEWS = {
    "%tsjit_graph f": "aten::tanh",
    "%tsjit_passes f(x, 3)": "passes",
    "%tsjit_trace g(x, x)": "tanh",
    "%tsjit_modules m": "linear",
    "%tsjit_profile m(x)": "by line",
    "%tsjit_profile --types g(x, x)": "once, in sum",
    "%tsjit_guards g(x, x)": "guards",
    "%tsjit_kernels g(x, x)": "a call",
    "%tsjit_debug f(x, 3)": "position",
    "shown = %tsjit_graph g": "aten::relu",
    "shown": "aten::relu",
    "m": "linear",
    "m.forward": "prim::CallMethod",
    "m.graph": "prim::CallMethod",
    "f": "prim::Loop",
    "f.graph": "prim::Loop",
    "%%torchscript\nm": "linear",
    "%%torchscript graph\ndef h(x: Tensor):\n    return x + 1": "aten::add",
}
"""Cells that show a view, and a word of its static forms."""


@pytest.fixture(scope="module")
def notebook() -> Any:
    """A notebook that was run with the state of its widgets."""
    cells = ["%load_ext tsrepl", f"%%torchscript\n{VIEWED}\n{MODULE}", *VIEWS]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    NotebookClient(made, timeout=300, kernel_name="python3").execute()
    return made


def outputs_of(notebook: Any, source: str) -> list[Any]:
    (cell,) = (each for each in notebook.cells if each.source == source)
    return [output.data for output in cell.outputs if "data" in output]


def _with_spaces(page: str) -> str:
    """The text with plain spaces where columns hold theirs."""
    return page.replace("\u00a0", " ")


@pytest.mark.parametrize("source", VIEWS)
def test_a_view_stands_before_its_static_forms(notebook: Any, source: str) -> None:
    found = outputs_of(notebook, source)
    views = [at for at, data in enumerate(found) if WIDGET in data]
    assert len(views) == 1
    view, static = found[views[0]], found[views[0] + 1]
    assert f"{STATIC}-{view[WIDGET]['model_id']}" in static["text/html"]
    assert VIEWS[source] in _with_spaces(static["text/html"]) and VIEWS[source] in static["text/plain"]
    assert view["text/html"] == view["text/plain"] == ""
    state = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    assert view[WIDGET]["model_id"] in state


def test_exports_with_the_state_of_views_have_their_static_forms(notebook: Any) -> None:
    page, _ = HTMLExporter().from_notebook_node(notebook)
    text, _ = MarkdownExporter().from_notebook_node(notebook)
    for source, word in VIEWS.items():
        (view,) = (data[WIDGET]["model_id"] for data in outputs_of(notebook, source) if WIDGET in data)
        _, _, static = page.partition(f"{STATIC}-{view}")
        assert word in _with_spaces(static.partition("jp-Cell-outputWrapper")[0]), source
        assert word in _with_spaces(text)
