"""Run the example notebooks and write down what their cells answer.

    python tools/run_notebooks.py [examples/tour.ipynb ...]

In: notebooks, all of `examples/` unless some are named.  Out: the same files with new outputs, without times of
execution and the state of widgets, whose static pictures stand in the outputs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

EXAMPLES: Final = Path(__file__).parent.parent / "examples"
DATA: Final = ("mlp.pt", "mlp.npz", "lstm_cell.pt", "lstm_cell.npz")
"""Files that notebooks read from the folder that they run in."""
WIDGET: Final = "application/vnd.jupyter.widget-view+json"
SECONDS: Final = 120


def executed(path: Path) -> Any:
    """The notebook with the outputs of a run in a folder of its own.  Raises CellExecutionError."""
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        for name in DATA:
            shutil.copy(EXAMPLES / name, folder)
        client = NotebookClient(notebook, timeout=SECONDS, store_widget_state=False, record_timing=False,
                                resources={"metadata": {"path": folder}})  # fmt: skip
        client.execute()
    return notebook


def lasting(notebook: Any) -> Any:
    """The notebook without what no reader of the file can use."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
        if "outputs" in cell:  # views are outputs of their own, before their static forms
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    return notebook


def main() -> None:
    for path in map(Path, sys.argv[1:] or sorted(EXAMPLES.glob("*.ipynb"))):
        nbformat.write(lasting(executed(path)), path)
        print(path.name, f"{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
