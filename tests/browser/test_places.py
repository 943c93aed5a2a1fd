"""Views in other places than a cell's own output, and behind kernels that are restarted or shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser.lab import PROGRAM, TIMEOUT, drawn, write_empty

IN_OUTPUT = """import ipywidgets
place = ipywidgets.Output()
with place:
    %tsjit_graph f
place"""
STATIC = ".tsrepl-static"
GONE = "the kernel that made this view is gone"
RESTART = "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
SHARE = """async () => {
    const app = window.jupyterapp, { id } = app.shell.currentWidget.sessionContext.session.kernel;
    const what = {path: 'other.ipynb', factory: 'Notebook', kernel: {id}};
    const other = await app.commands.execute('docmanager:open', what);
    await other.context.ready;
    await other.sessionContext.ready;
    app.shell.activateById(other.id);
    other.content.activeCell.model.sharedModel.setSource('%tsjit_graph g');
    await app.commands.execute('notebook:run-cell');
    other.node.dataset.other = 'here';
}"""


def test_a_view_in_an_output_widget_has_no_static_forms_beside_it(notebook: Any) -> None:
    notebook.run("%load_ext tsrepl")
    notebook.run(PROGRAM).get_by_text("defined").first.wait_for()
    view = notebook.view(IN_OUTPUT)
    assert drawn(view) >= 15
    assert not notebook.page.locator(STATIC).locator("visible=true").count()


def test_a_second_notebook_of_one_kernel_has_views_of_its_own(notebook: Any, server: tuple[str, Path]) -> None:
    write_empty(server[1] / "other.ipynb")
    notebook.page.evaluate(SHARE)
    other = notebook.page.locator("[data-other] section.tsw").first
    other.wait_for(timeout=TIMEOUT)
    assert drawn(other) >= 5
    other.locator("canvas").press("ArrowDown")
    other.locator(".tsw-facts h4").wait_for()
    notebook.page.evaluate(
        "() => window.jupyterapp.shell.activateById([...window.jupyterapp.shell.widgets('main')][0].id)"
    )
    mine = notebook.page.locator("section.tsw").first
    mine.locator("canvas").press("ArrowDown")
    mine.locator(".tsw-facts h4").wait_for()


def test_views_stay_and_say_so_where_their_kernel_was_restarted(notebook: Any) -> None:
    kernels = notebook.view("%tsjit_kernels g(torch.ones(2, 3), torch.ones(2, 3))")
    kernels.locator(".tsw-coloured").first.wait_for()
    passes = notebook.view("%tsjit_passes f(torch.ones(3), 2)")
    boxes = drawn(passes)
    notebook.page.evaluate(RESTART)
    notebook.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
    )
    passes.get_by_role("button", name="next pass").click()
    passes.get_by_text(GONE).first.wait_for()
    assert int(passes.locator("canvas.tsw-canvas").get_attribute("data-drawn")) == boxes
    kernels.get_by_role("button", name="show or hide LLVM, optimized").click()
    kernels.locator("[role=status]", has_text=GONE).wait_for()
    notebook.run("%load_ext tsrepl")
    notebook.run(PROGRAM).get_by_text("defined").first.wait_for()
    assert drawn(notebook.view("%tsjit_graph g")) >= 5
    assert notebook.page.errors == []
