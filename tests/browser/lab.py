"""A Jupyter of our own in a browser without a screen.

In: Debian's chromium, playwright, and a Jupyter front end, `FRONTS`.  Out: notebooks that are open in it, whose cells
run in real kernels.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.viewed_program import VIEWED

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
THEMES: Final = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
TIMEOUT: Final = 90_000
"""Milliseconds that a machine with other work may take."""
SIZE: Final = {"width": 1180, "height": 1300}
EMPTY: Final[Mapping[str, Any]] = {
    "cells": [],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}

PROGRAM: Final = f"%%torchscript\n{VIEWED}"
"""A cell with functions whose views are looked at."""
MODULE: Final = """import engine.torch as torch

class Block(torch.nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.conv, self.bn = torch.nn.Conv2d(n, n, 3, padding=1), torch.nn.BatchNorm2d(n)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)) + x)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.layers = torch.nn.Sequential(Block(8), Block(8), Block(8))
        self.head = torch.nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.layers(self.stem(x)).mean([2, 3]))

m = torch.jit.script(Net().eval())
x, image = torch.randn(8, 64), torch.randn(1, 3, 16, 16)"""
"""A cell of Python with a module `m`, and what it is called with."""


class Front(NamedTuple):
    """A front end: the module that serves it, the class of its options, and where it shows notebooks."""

    module: str
    options: str
    path: str


FRONTS: Final = {
    "lab": Front("jupyterlab", "LabApp", "lab/tree/{}?reset"),
    "notebook": Front("notebook", "JupyterNotebookApp", "notebooks/{}?factory=Notebook"),
}


def missing(front: Front) -> str:
    """The reason why nothing can be opened; "" if it can."""
    if any(importlib.util.find_spec(each) is None for each in ("playwright", "jupyterlab", "axe_playwright_python")):
        return "playwright, JupyterLab or axe is not installed: bring the extra 'test'"
    if importlib.util.find_spec(front.module) is None:
        return f"{front.module} is not installed: pip install {front.module}"
    return "" if CHROMIUM else "chromium is not installed: apt-get install chromium"


class Notebook:
    """A notebook that is open; each cell goes behind the last one."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def run(self, source: str) -> Any:
        """Run a cell; its output, when there is all of it."""
        self.page.evaluate(_ADD, source)
        at = self.page.evaluate(
            """async () => {
                await window.jupyterapp.commands.execute('notebook:run-cell');
                return window.jupyterapp.shell.currentWidget.content.activeCellIndex;
            }"""
        )
        return self.page.locator(".jp-Notebook .jp-Cell").nth(at).locator(".jp-OutputArea")

    def start(self, source: str) -> None:
        """Run a cell, and do not wait for it."""
        self.page.evaluate(_ADD, source)
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")

    def cell(self, at: int) -> Any:
        """The element of a cell, brought into sight: those out of it may not be drawn."""
        return self.page.evaluate_handle(
            """(at) => {
                const content = window.jupyterapp.shell.currentWidget.content;
                content.scrollToItem(at);
                return content.widgets[at].node;
            }""",
            at,
        ).as_element()

    def views(self) -> list[int]:
        """The cells whose outputs have widgets, by their numbers."""
        return list(self.page.evaluate(_VIEWS))

    def seen(self, at: int) -> tuple[str, int]:
        """The label of a cell's first view, and the boxes of the picture in it."""
        view = self.cell(at).wait_for_selector("section.tsw")
        canvas = view.query_selector("canvas.tsw-canvas[data-boxes]")
        return view.get_attribute("aria-label"), int(canvas.get_attribute("data-boxes")) if canvas else 0

    def violations(self, at: int) -> list[str]:
        """Everything in a cell's first view that axe calls serious: the rule, and the elements that break it."""
        from axe_playwright_python.sync_playwright import Axe  # it may be missing

        label, _ = self.seen(at)
        found = Axe().run(self.page, context=[f'section.tsw[aria-label="{label}"]']).response
        assert found["passes"], f"{label} was not looked at"
        bad = (each for each in found["violations"] if each["impact"] in ("serious", "critical"))
        return [f"{label}: {each['id']} {[node['html'] for node in each['nodes']]}" for each in bad]

    def view(self, source: str) -> Any:
        """Run a cell that shows a widget; the widget."""
        output = self.run(source)
        found = output.locator("section.tsw").first
        found.wait_for(timeout=TIMEOUT)
        found.scroll_into_view_if_needed()
        return found

    def seconds_until(self, source: str, selector: str) -> float:
        """Run a cell; the seconds until its output has something of that selector, as the page measures them."""
        self.page.evaluate(_ADD, source)
        return float(self.page.evaluate(_UNTIL, [selector, TIMEOUT])) / 1000

    def seconds_to_stop(self, source: str) -> float:
        """Run a cell for a while, and interrupt it; the seconds until it has stopped, as the page measures them."""
        self.page.evaluate(_ADD, source)
        return float(self.page.evaluate(_STOP)) / 1000

    def interrupt(self, times: int, pause: float) -> None:
        """Interrupt the kernel so often, with so many milliseconds between."""
        self.page.evaluate(
            """async ([times, pause]) => {
                const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                for (let i = 0; i < times; i++) {
                    kernel.interrupt();
                    await new Promise((done) => setTimeout(done, pause));
                }
            }""",
            [times, pause],
        )

    def theme(self, name: str) -> None:
        self.page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        flag = "true" if "Light" in name else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light={flag}]", state="attached")
        self.page.wait_for_timeout(700)

    def save_and_leave(self) -> None:
        """Save the notebook, end its kernel, and leave the page."""
        self.page.evaluate(
            """async () => {
                const { sessionContext, context } = window.jupyterapp.shell.currentWidget;
                await context.save();
                await sessionContext.shutdown();
            }"""
        )
        self.page.goto("about:blank")


_ADD: Final = """async (source) => {
    const app = window.jupyterapp, panel = app.shell.currentWidget;
    await app.commands.execute('notebook:move-cursor-to-bottom').catch(() => null);
    panel.content.activeCellIndex = panel.content.widgets.length - 1;
    await app.commands.execute('notebook:insert-cell-below');
    panel.content.activeCell.model.sharedModel.setSource(source);
}"""
_VIEWS: Final = """() => {
    const isView = (output) => 'application/vnd.jupyter.widget-view+json' in (output.data ?? {});
    return [...window.jupyterapp.shell.currentWidget.content.model.cells]
        .map((cell, at) => (cell.toJSON().outputs ?? []).some(isView) ? at : -1).filter((at) => at >= 0);
}"""
_UNTIL: Final = """([selector, most]) => new Promise((resolve, reject) => {
    const cell = window.jupyterapp.shell.currentWidget.content.activeCell.node, began = performance.now();
    window.jupyterapp.commands.execute('notebook:run-cell');
    const look = () => {
        const taken = performance.now() - began;
        if (cell.querySelector(selector)) resolve(taken);
        else if (taken > most) reject(new Error('nothing came'));
        else requestAnimationFrame(look);
    };
    look();
})"""

_STOP: Final = """async () => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const stopped = window.jupyterapp.commands.execute('notebook:run-cell').catch(() => null);
    await new Promise((resolve) => setTimeout(resolve, 400));
    if (kernel.status !== 'busy') throw new Error('it is over already');
    const began = performance.now();
    await kernel.interrupt();
    await stopped;
    return performance.now() - began;
}"""


@contextmanager
def serving(front: Front, folder: Path) -> Iterator[str]:
    """Serve the notebooks of the folder; the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        "--allow-root", "--no-browser", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None",
        f"--{front.options}.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    places = {f"JUPYTER_{name}_DIR": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "RUNTIME")}
    places |= {f"JUPYTERLAB_{name}_DIR": str(folder / f".{name.lower()}") for name in ("SETTINGS", "WORKSPACES")}
    quiet = folder / ".settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false"}')
    command = [sys.executable, "-m", front.module, *options]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **places}, stdout=log, stderr=log, cwd=folder)
    try:
        _wait(f"http://127.0.0.1:{port}/api", process, folder / "log")
        yield f"http://127.0.0.1:{port}"
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
    raise AssertionError(f"Jupyter does not answer:\n{log.read_text()[-2000:]}")


@contextmanager
def browsing() -> Iterator[Any]:
    """A page of a browser; its `errors` are those of scripts, with their stacks."""
    from playwright.sync_api import sync_playwright  # it may be missing

    # While playwright runs, its event loop runs in this thread, where no other could.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page: Any = browser.new_page(viewport=SIZE)
        page.set_default_timeout(60_000)
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(error.stack or str(error)))
        yield page
        browser.close()


def opened(page: Any, front: Front, address: str, name: str) -> Notebook:
    """The notebook of that name, open, with a kernel that waits."""
    page.goto(f"{address}/{front.path.format(name)}")
    page.wait_for_selector(".jp-NotebookPanel-notebook", timeout=TIMEOUT)
    idle = "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    page.wait_for_function(idle, timeout=TIMEOUT)
    page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area').catch(() => null)")
    return Notebook(page)


def of_views(errors: Iterable[str]) -> list[str]:
    """The errors that scripts of views had a part in, which come from blobs; Notebook 7 has one of its own at start."""
    return [each for each in errors if "blob:" in each]


def write_empty(path: Path) -> None:
    """A notebook without cells."""
    path.write_text(json.dumps(EMPTY))


def drawn(view: Any) -> int:
    """The boxes that the view's canvas shows."""
    canvas = view.locator("canvas.tsw-canvas")
    canvas.wait_for()
    view.page.wait_for_function("each => Number(each.dataset.drawn) > 0", arg=canvas.element_handle())
    return int(canvas.get_attribute("data-drawn"))
