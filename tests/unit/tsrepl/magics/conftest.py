"""An IPython shell with the extension loaded."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

Run = Callable[[str], Any]
WITHOUT_FILES: Final = Config(HistoryManager={"enabled": False})
"""No database of what was typed, and no thread that writes to it."""


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=WITHOUT_FILES)
    shell.run_line_magic("load_ext", "tsrepl")
    yield shell
    InteractiveShell.clear_instance()
    atexit.unregister(shell.atexit_operations)  # which would keep every shell of the process until its end


@pytest.fixture
def run(shell: InteractiveShell) -> Run:
    """A function that runs a cell and gives its value; errors are raised."""

    def run(cell: str) -> Any:
        result = shell.run_cell(cell, store_history=True)
        result.raise_error()
        return result.result

    return run


@pytest.fixture
def script(run: Run) -> Run:
    """The same for a cell of TorchScript."""
    return lambda cell: run(f"%%torchscript\n{cell}\n")
