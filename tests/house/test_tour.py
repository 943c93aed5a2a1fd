"""The example notebook runs, and shows what it promises."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """First line of each code cell -> its outputs."""
    folder = tmp_path_factory.mktemp("tour")
    for name in ("mlp.pt", "mlp.npz"):
        shutil.copy(EXAMPLES / name, folder)
    notebook = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return {cell.source.split("\n")[-1]: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def html(cell: list[Any]) -> str:
    return "".join(output["data"].get("text/html", "") for output in cell if "data" in output)


def plain(cell: list[Any]) -> str:
    return "".join(output["data"]["text/plain"] for output in cell if "data" in output)


def test_functions_are_called_from_python(outputs: dict[str, list[Any]]) -> None:
    assert "81" in plain(outputs["power(np.full((2, 2), 3.0, dtype=np.float32), 2)"])


def test_views_are_html(outputs: dict[str, list[Any]]) -> None:
    assert "prim::If" in html(outputs["%tsjit_graph choose"])
    assert "constant_pooling" in html(outputs["%tsjit_passes power"])
    assert "result" in html(outputs["%tsjit_trace power(x, 1)"])


def test_what_calls_taught_is_shown(outputs: dict[str, list[Any]]) -> None:
    assert "moved" in html(outputs["%tsjit_guards power(x, 1)"])
    assert "expected Float(2), got Float(5)" in plain(outputs["%tsjit_guards power"])
    assert "power: " in plain(outputs["%tsjit_explain power"])


def test_saved_functions_load_again(outputs: dict[str, list[Any]]) -> None:
    assert "256" in plain(outputs["power_again(x, 3)"])


def test_the_archive_gives_the_recorded_output(outputs: dict[str, list[Any]]) -> None:
    (last,) = [cell for source, cell in outputs.items() if source.startswith("np.abs(mlp")]
    assert "True" in plain(last)


def test_a_mistake_shows_its_line_and_no_python_traceback(outputs: dict[str, list[Any]]) -> None:
    error = outputs["    return x + m"][-1]
    text = "\n".join(error["traceback"])
    assert "undefined value m" in text
    assert "<--- HERE" in text
    assert "Traceback" not in text
