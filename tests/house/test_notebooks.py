"""The example notebooks run, and stand in the repository with what they answered."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tools.run_notebooks import EXAMPLES, WIDGET, executed

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
MOST_BYTES = 200_000


@pytest.mark.parametrize("path", [each for each in NOTEBOOKS if each.stem != "tour"], ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    notebook = executed(path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) > 4 and sum(bool(cell.outputs) for cell in cells) > len(cells) // 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text/html" in output.get("data", {}) for output in outputs)
    assert not any(WIDGET in output.get("data", {}) for output in outputs)
    assert path.stat().st_size < MOST_BYTES
