"""A JupyterLab of our own in a browser without a screen.

In: Debian's chromium, playwright and JupyterLab; where one is missing, the tests are skipped, which says what.  Out:
the fixture `notebook`, whose cells run in a real kernel.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TIMEOUT = 90_000
"""Milliseconds that a machine with other work may take."""
SIZE = {"width": 1180, "height": 1300}


class Notebook:
    """A notebook that is open in JupyterLab; each cell goes behind the last one."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def run(self, source: str) -> Any:
        """Run a cell; its output, when there is all of it."""
        done = self.page.evaluate(
            """async (source) => {
                const app = window.jupyterapp, panel = app.shell.currentWidget;
                await app.commands.execute('notebook:move-cursor-to-bottom').catch(() => null);
                panel.content.activeCellIndex = panel.content.widgets.length - 1;
                await app.commands.execute('notebook:insert-cell-below');
                panel.content.activeCell.model.sharedModel.setSource(source);
                await app.commands.execute('notebook:run-cell');
                return panel.content.activeCellIndex;
            }""",
            source,
        )
        return self.page.locator(".jp-Notebook .jp-Cell").nth(done).locator(".jp-OutputArea")

    def view(self, source: str) -> Any:
        """Run a cell that shows a widget; the widget."""
        output = self.run(source)
        found = output.locator("section.tsw").first
        found.wait_for(timeout=TIMEOUT)
        found.scroll_into_view_if_needed()
        return found

    def theme(self, name: str) -> None:
        self.page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        flag = "true" if "Light" in name else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light={flag}]", state="attached")
        self.page.wait_for_timeout(700)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed: bring the extra 'test'")
    folder = tmp_path_factory.mktemp("lab")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        "--allow-root", "--no-browser", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    places = {f"JUPYTER_{name}_DIR": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "RUNTIME")}
    places |= {f"JUPYTERLAB_{name}_DIR": str(folder / f".{name.lower()}") for name in ("SETTINGS", "WORKSPACES")}
    quiet = folder / ".settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false"}')
    command = [sys.executable, "-m", "jupyterlab", *options]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **places}, stdout=log, stderr=log, cwd=folder)
    try:
        _wait(f"http://127.0.0.1:{port}/api", process, folder / "log")
        yield f"http://127.0.0.1:{port}", folder
    finally:
        process.terminate()
        process.wait(20)


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=2)
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"JupyterLab does not answer:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def notebook(server: tuple[str, Path]) -> Iterator[Notebook]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: bring the extra 'test'")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    address, folder = server
    notebook = '{"cells": [], "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}}, '
    (folder / "views.ipynb").write_text(notebook + '"nbformat": 4, "nbformat_minor": 5}')
    # While playwright runs, its event loop runs in this thread, where no other could: so for this module only.
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(60_000)
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(f"{address}/lab/tree/views.ipynb?reset")
        page.wait_for_selector(".jp-NotebookPanel-notebook", timeout=TIMEOUT)
        idle = "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        page.wait_for_function(idle, timeout=TIMEOUT)
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        yield Notebook(page)
        browser.close()
