"""A notebook that is open in a browser without a screen, once for the tests of a module.

In: Debian's chromium, playwright and the front end that a module names as its `FRONT`, JupyterLab by default; where one
is missing, the tests are skipped, which says what.  With TSREPL_FRONT=notebook all run in Notebook 7.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.lab import FRONTS, Front, Notebook, browsing, missing, opened, serving, write_empty


@pytest.fixture(scope="module")
def front(request: pytest.FixtureRequest) -> Front:
    found = FRONTS[os.environ.get("TSREPL_FRONT") or getattr(request.module, "FRONT", "lab")]
    if reason := missing(found):
        pytest.skip(reason)
    return found


@pytest.fixture(scope="module")
def server(front: Front, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address, and the folder whose notebooks are served."""
    folder = tmp_path_factory.mktemp("lab")
    with serving(front, folder) as address:
        yield address, folder


@pytest.fixture(scope="module")
def notebook(front: Front, server: tuple[str, Path]) -> Iterator[Notebook]:
    address, folder = server
    write_empty(folder / "views.ipynb")
    with browsing() as page:
        yield opened(page, front, address, "views.ipynb")
