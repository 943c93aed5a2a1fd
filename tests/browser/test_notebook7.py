"""A short walk in Notebook 7: what depends on the front end, which is its keys, its themes and its files.

The long walk, through all views, is `test_notebook`, in JupyterLab.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser.lab import PROGRAM, Front, drawn, of_views, opened

FRONT = "notebook"
CELLS = "() => window.jupyterapp.shell.currentWidget.content.widgets.length"


def test_keys_within_a_view_are_the_view_s(notebook: Any) -> None:
    notebook.run("%load_ext tsrepl")
    notebook.run(PROGRAM).get_by_text("defined").first.wait_for()
    view = notebook.view("%tsjit_graph f")
    assert drawn(view) >= 15
    view.locator("input[type=search]").fill("tanh")
    view.locator("[role=option]").first.click()
    facts = view.locator(".tsw-facts")
    facts.locator("dt", has_text="%h.1").wait_for()
    cells = notebook.page.evaluate(CELLS)
    canvas = view.locator("canvas")
    for key in ("b", "ArrowDown"):  # elsewhere in a cell, one makes a cell and the other goes to the next
        canvas.press(key)
    facts.locator("h4", has_text="prim::Loop").wait_for()
    assert notebook.page.evaluate(CELLS) == cells


def test_a_pass_is_chosen_in_both_themes(notebook: Any) -> None:
    view = notebook.view("%tsjit_passes f(torch.randn(3), 3)")
    drawn(view)
    colours = set()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.theme(theme)
        view.get_by_role("button", name="next pass").click()
        view.locator(f".tsw-diff[data-step='{view.locator('input[type=range]').input_value()}']").wait_for()
        colours.add(view.evaluate("each => getComputedStyle(each).color"))
    assert len(colours) == 2


def test_a_saved_notebook_shows_its_views(notebook: Any, front: Front, server: tuple[str, Path]) -> None:
    before = {at: notebook.seen(at) for at in notebook.views()}
    notebook.save_and_leave()
    again = opened(notebook.page, front, server[0], "views.ipynb")
    assert {at: again.seen(at) for at in again.views()} == before
    assert of_views(notebook.page.errors) == []
