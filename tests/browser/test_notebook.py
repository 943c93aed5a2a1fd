"""The notebook in a browser: cells, errors, every view taken hold of; with TSREPL_PICTURES=1 the pictures of the docs.

The tests are steps of one session, as a reader takes them, and run in this order.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from nbconvert import HTMLExporter

from tests.browser.lab import FRONTS, MODULE, PROGRAM, THEMES, Front, drawn, of_views, opened

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SPIN = """%%torchscript
def spin(n: int):
    a = 0
    for i in range(n):
        a = (a * 3 + i) % 1000003
    return a
%tsjit_profile spin(1000)"""
STOP = """import os, signal, threading, time

def interrupt():
    global begin
    begin = time.process_time()  # the time in which the machine does other things is not ours
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(0.3, interrupt).start()
try:
    spin(10**15)
except KeyboardInterrupt:
    print(time.process_time() - begin)"""
STATIC = ".tsrepl-static"
HUES = "(rows) => rows.map((each) => each.style.getPropertyValue('--tsw-hue'))"
DRAWN = "canvas.tsw-canvas[data-drawn]:not([data-drawn='0'])"
LONG = """lines = "".join(f"    a{i} = torch.relu(x + a{max(0, i - 1)}) * a{max(0, i - 7)}\\n" for i in range(1, 1000))
get_ipython().run_cell_magic("torchscript", "", f"def long(x):\\n    a0 = x\\n{lines}    return a999\\n")"""


def picture(notebook: Any, name: str, view: Any) -> None:
    """Keep a picture of the view in both themes, if pictures are wanted."""
    if not os.environ.get("TSREPL_PICTURES"):
        return
    for theme, full in THEMES.items():
        notebook.theme(full)
        view.scroll_into_view_if_needed()
        view.screenshot(path=PICTURES / f"{name}-{theme}.png")
    notebook.theme(THEMES["light"])


def test_the_extension_and_a_cell(notebook: Any) -> None:
    notebook.run("%load_ext tsrepl")
    output = notebook.run(PROGRAM)
    output.get_by_text("defined").first.wait_for()
    assert "defined function g" in output.inner_text()
    notebook.run(MODULE)


def test_an_error_is_the_compiler_s_with_its_caret(notebook: Any) -> None:
    output = notebook.run("%%torchscript\ndef bad(x):\n    return x.nonsense()\n")
    output.locator("pre").first.wait_for()
    text = output.inner_text()
    assert "nonsense" in text and "~~~" in text and "HERE" in text
    assert "Traceback" not in text and "engine/" not in text


def test_the_graph_draws_finds_and_tells(notebook: Any) -> None:
    view = notebook.view("%tsjit_graph f")
    assert drawn(view) >= 15
    search = view.locator("input[type=search]")
    search.fill("tanh")
    view.locator("[role=option]").first.wait_for()
    search.press("Enter")
    facts = view.locator(".tsw-facts")
    facts.locator("dt", has_text="%h.1").wait_for()
    assert "torch.tanh(x)" in facts.inner_text() and "Tensor" in facts.inner_text()
    view.locator("canvas").press("ArrowDown")
    facts.locator("h4", has_text="prim::Loop").wait_for()
    view.locator("canvas").press("Enter")
    notebook.page.wait_for_function(
        "each => Number(each.dataset.drawn) <= 6", arg=view.locator("canvas").element_handle()
    )
    view.locator("canvas").press("Enter")
    picture(notebook, "graph", view)


def test_a_module_folds_by_its_parts(notebook: Any) -> None:
    view = notebook.view("%tsjit_graph m")
    before = drawn(view)
    view.locator("input[type=search]").fill("layers")
    view.locator("[role=option]").first.click()
    view.locator(".tsw-facts h4", has_text="layers").wait_for()
    view.locator("canvas").press("Enter")
    view.get_by_role("button", name="fit the picture").click()
    notebook.page.wait_for_function(
        "([each, n]) => Number(each.dataset.drawn) > n", arg=[view.locator("canvas").element_handle(), before]
    )
    picture(notebook, "module-graph", view)


def test_the_slider_goes_through_the_passes_and_values_tell(notebook: Any) -> None:
    view = notebook.view("%tsjit_passes m(image)")
    drawn(view)
    slider = view.locator("input[type=range]")
    name = view.locator(".tsw-pass")
    first = name.inner_text()
    slider.fill(str(int(slider.get_attribute("max")) // 2))
    assert name.inner_text() != first
    for way in ("next pass", "pass before"):
        view.get_by_role("button", name=way).click()
        view.locator(f".tsw-diff[data-step='{slider.input_value()}']").wait_for()
    value = view.locator(".tsw-diff .tsw-value").first
    value.wait_for()
    wanted = value.inner_text()
    value.click()
    view.locator(".tsw-facts h4", has_text=wanted).wait_for()
    picture(notebook, "passes", view)


def test_the_trace_steps_forward_and_back(notebook: Any) -> None:
    view = notebook.view("%tsjit_trace f(x, 3)")
    drawn(view)
    at = view.locator(".tsw-at")
    view.locator("canvas.tsw-heat").wait_for()
    here = at.inner_text()
    view.get_by_role("button", name="step", exact=True).click()
    notebook.page.wait_for_function("([each, text]) => each.innerText !== text", arg=[at.element_handle(), here])
    view.get_by_role("button", name="step back").click()
    notebook.page.wait_for_function("([each, text]) => each.innerText === text", arg=[at.element_handle(), here])
    view.locator(".tsw-row.here", has_text="torch.tanh").wait_for()
    assert view.locator("svg.tsw-bins rect").count() == 32
    picture(notebook, "trace", view)


def test_modules_open_by_key_and_are_found(notebook: Any) -> None:
    view = notebook.view("%tsjit_modules m")
    view.locator("[role=treeitem]").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        notebook.page.keyboard.press(key)
    view.locator("[data-path='layers.2']").wait_for()
    view.locator("input[type=search]").fill("layers.1.bn.weight")
    view.locator("[role=option]").first.wait_for()
    view.locator("input[type=search]").press("Enter")
    view.locator("[data-path='layers.1.bn.weight'][tabindex='0']:focus").wait_for()
    notebook.page.keyboard.press("ArrowLeft")
    view.locator("[data-path='layers.1.bn'][tabindex='0']:focus").wait_for()
    assert view.locator("[tabindex='0'][role=treeitem]").count() == 1
    picture(notebook, "modules", view)


def test_profiles_guards_and_kernels(notebook: Any) -> None:
    profile = notebook.view("%tsjit_profile --types g(x, x)")
    assert "Float(8, 64)" in profile.inner_text()
    picture(notebook, "profile", profile)
    guards = notebook.view("%tsjit_guards g(x, x)")
    assert "moved" in guards.inner_text() or "kept" in guards.inner_text()
    kernels = notebook.view("%tsjit_kernels g(x, x)")
    kernels.locator(".tsw-row", has_text="torch.tanh").click(position={"x": 20, "y": 8})
    assert kernels.locator(".tsw-row.here", has_text="tanh(").count() >= 2
    assert kernels.locator(".tsw-row.here", has_text="parallel(").count() == 0  # which is around other lines as well
    picture(notebook, "kernels", kernels)


def test_a_line_of_a_kernel_shows_what_it_became_in_every_text(notebook: Any) -> None:
    view = notebook.view("%tsjit_kernels g(x, x)")
    titles = ["TorchScript", "loop IR", "LLVM", "assembly"]
    for title in ("LLVM, optimized", "loop IR for sm_90", "PTX for sm_90"):
        view.get_by_role("button", name=f"show or hide {title}", exact=True).click()
        titles.append(title)
    columns = {title: view.get_by_role("region", name=title, exact=True) for title in titles}
    for each in columns.values():
        each.locator(".tsw-linked").first.wait_for()
    columns["loop IR"].locator(".tsw-row", has_text="v6 = h_1 *").click()
    texts = {title: [*map(str.strip, each.locator(".here").all_inner_texts())] for title, each in columns.items()}
    assert [text.split("  ")[-1] for text in texts["TorchScript"]] == ["z = h * y + x"]
    assert [text.split(" = ")[0] for text in texts["loop IR"]] == ["v6"]
    assert {"v6", "z_1"} <= {text.split(" = ")[0] for text in texts["loop IR for sm_90"]}
    for title, word in {"LLVM": "fmul", "LLVM, optimized": "fmul", "assembly": "mul", "PTX for sm_90": "mul"}.items():
        assert any(word in text for text in texts[title]), title
        assert not any(mark in text for text in texts[title] for mark in ("!dbg", ".loc")), title
    columns["loop IR"].locator(".tsw-row", has_text="for i0 in parallel").click()
    assert columns["TorchScript"].locator(".here").count() == 3
    assert columns["loop IR for sm_90"].locator(".here", has_text="parallel").count() == 1
    columns["loop IR"].locator(".tsw-row", has_text="v6 = h_1 *").click()
    assembly = columns["assembly"].locator(".here").first  # and back, by keys
    assembly.focus()
    notebook.page.keyboard.press("ArrowDown")
    notebook.page.keyboard.press("ArrowUp")
    notebook.page.keyboard.press("Enter")
    assert columns["TorchScript"].locator(".here", has_text="z = h * y + x").count() == 1
    assert columns["loop IR"].locator(".here", has_text="v6 = h_1 *").count() == 1
    assert columns["assembly"].locator("[tabindex='0']").count() == 1
    hues = {title: each.locator(".tsw-coloured").evaluate_all(HUES) for title, each in columns.items()}
    assert len({*hues["TorchScript"]}) == 3  # a colour for each line of the program, the same in all texts
    assert all({*found} == {*hues["TorchScript"]} for found in hues.values())


def test_the_cost_of_a_module_marks_its_nodes(notebook: Any) -> None:
    view = notebook.view("%tsjit_profile m(image)")
    view.locator(".tsw-flame[data-path='layers']").focus()
    notebook.page.keyboard.press("Enter")
    view.locator(".tsw-flame[data-path='layers'][aria-pressed=true]").wait_for()
    assert view.locator("tr.here", has_text="layers.").count() >= 1
    picture(notebook, "cost", view)


def test_views_have_names_roles_and_contrast(notebook: Any) -> None:
    """All views that show so far, in both themes: no violation that axe calls serious."""
    for theme in THEMES.values():
        notebook.theme(theme)
        assert [each for at in notebook.views() for each in notebook.violations(at)] == []
    notebook.theme(THEMES["light"])


def test_the_debugger_by_its_buttons(notebook: Any) -> None:
    view = notebook.view("%tsjit_debug f(x, 3)")
    here = view.locator(".tsw-row.here")
    here.filter(has_text="torch.tanh").wait_for()
    view.locator("[data-command=next]").click()
    here.filter(has_text="for i in").wait_for()
    view.locator("[data-command=back-next]").click()
    here.filter(has_text="torch.tanh").wait_for()
    view.locator("[data-line='6']").click()
    view.locator("[data-line='6'][aria-pressed=true]").wait_for()
    view.locator("[data-command=continue]").click()
    here.filter(has_text="h = h + x").wait_for()
    entry = view.get_by_label("TorchScript or a command")
    entry.fill("i * 100")
    entry.press("Enter")
    view.locator("pre", has_text="200").wait_for()
    picture(notebook, "debugger", view)
    view.get_by_role("button", name="leave the debugger").click()
    view.get_by_text("left the debugger").first.wait_for()


def test_cells_are_cells_while_a_call_is_debugged_and_its_view_follows(notebook: Any) -> None:
    view = notebook.view("%tsjit_debug f(x, 3)")
    here = view.locator(".tsw-row.here")
    here.filter(has_text="torch.tanh").wait_for()
    notebook.run("%%torchscript\ndef twice(a: Tensor):\n    return a * 2").get_by_text("defined").first.wait_for()
    assert "(2,)" in notebook.run("print(tuple(twice(torch.ones(2)).shape))").inner_text()
    here.filter(has_text="torch.tanh").wait_for()
    notebook.run("%tsjit_debug n")
    here.filter(has_text="for i in").wait_for()
    notebook.run("%tsjit_debug q")
    view.get_by_text("left the debugger").first.wait_for()


def test_a_view_waits_for_a_busy_kernel(notebook: Any) -> None:
    view = notebook.view("%tsjit_graph g")
    drawn(view)
    notebook.start("import time; time.sleep(11)")
    canvas = view.locator("canvas")
    canvas.focus()
    canvas.press("ArrowDown")
    view.get_by_text("the kernel is busy").wait_for()
    view.locator(".tsw-facts h4").wait_for()  # the answer, when the cell has run
    assert "does not answer" not in view.inner_text()


def test_an_archive_is_saved_and_loaded(notebook: Any, tmp_path: Path) -> None:
    assert "net.pt" in notebook.run(f"%tsjit_save m {tmp_path / 'net.pt'}").inner_text()
    notebook.run(f"%tsjit_load {tmp_path / 'net.pt'} as again")
    assert drawn(notebook.view("%tsjit_graph again")) >= 5


def test_an_interrupt_stops_machine_code_within_200_ms(notebook: Any) -> None:
    output = notebook.run(SPIN)
    output.get_by_text("one native kernel").first.wait_for()
    whole = notebook.seconds_to_stop("%%torchscript\nspin(1000000000000000)")
    text = notebook.page.locator(".jp-OutputArea").last.inner_text()
    assert "Interrupt" in text and "for i in range(n)" in text and "Traceback" not in text
    taken = float(notebook.run(STOP).inner_text())
    print(
        f"an interrupt: {taken:.3f} s until machine code stops, {whole:.3f} s from the command until the cell is over"
    )
    assert taken < 0.2


@pytest.mark.parametrize("pause", [5, 40, 150])
@pytest.mark.parametrize("cell", ["%%torchscript\nspin(1000000000000000)", "spin(1000000000000000)"])
def test_an_interrupt_may_be_asked_for_again_and_again(notebook: Any, cell: str, pause: float) -> None:
    notebook.start(cell)
    notebook.page.wait_for_timeout(700)
    notebook.interrupt(4, pause)
    notebook.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
    )
    assert "3" in notebook.run("1 + 2").inner_text()
    text = notebook.page.locator(".jp-OutputArea").nth(-2).inner_text()
    assert "Interrupted" in text and "Traceback" not in text and "KeyboardInterrupt" not in text


def test_3000_nodes_draw_and_pan(notebook: Any) -> None:
    notebook.run(LONG)
    work = "print(sum(each * each for each in range(10_000_000)))"
    rounds = [(notebook.seconds_until(work, ".jp-OutputArea-output"), graph_seconds(notebook)) for _ in range(2)]
    pace, seconds = map(min, zip(*rounds, strict=True))
    canvas = notebook.page.locator("canvas.tsw-canvas").last
    canvas.press("0")
    notebook.page.wait_for_function("each => Number(each.dataset.drawn) > 2900", arg=canvas.element_handle())
    frames = []
    for key in ("ArrowDown", "ArrowUp", "ArrowDown"):
        canvas.press(f"Shift+{key}")
        notebook.page.wait_for_timeout(50)
        assert int(canvas.get_attribute("data-drawn")) > 2000
        frames.append(float(canvas.get_attribute("data-milliseconds")))
    print(f"3,000 nodes: {seconds:.2f} s from the cell to the picture, a frame {min(frames)} ms; pace {pace:.2f} s")
    # Two seconds where nothing else runs: there the loop takes 0.8 s, and the longer the busier the machine is.
    assert seconds < 2.5 * pace
    assert min(frames) < 100


def graph_seconds(notebook: Any) -> float:
    """The seconds from running a cell to the picture of 3,000 nodes."""
    return float(notebook.seconds_until("%tsjit_graph long", DRAWN))


def test_a_saved_notebook_shows_its_views_when_their_kernel_is_gone(
    notebook: Any, front: Front, server: tuple[str, Path]
) -> None:
    before = {at: notebook.seen(at) for at in notebook.views()}
    assert notebook.page.locator(STATIC).count() and not notebook.page.locator(STATIC).locator("visible=true").count()
    notebook.save_and_leave()
    assert largest_part(server[1] / "views.ipynb") < 1_000_000
    again = opened(notebook.page, front, server[0], "views.ipynb")
    assert again.views() == [*before]
    for at, (label, boxes) in before.items():
        label_again, boxes_again = again.seen(at)
        assert label_again == label
        is_static = again.cell(at).query_selector(STATIC).is_visible()
        assert (boxes_again == boxes) != is_static, label  # in place of a picture too large to be kept
    at = next(at for at, (label, _) in before.items() if label == "graph of m")
    canvas = again.cell(at).wait_for_selector("canvas.tsw-canvas")
    canvas.press("ArrowRight")
    again.page.get_by_text("the kernel that made this view is gone").first.wait_for()


def test_an_export_without_the_net_shows_the_static_forms(server: tuple[str, Path], notebook: Any) -> None:
    _, folder = server
    html, _ = HTMLExporter().from_filename(str(folder / "views.ipynb"))
    (folder / "views.html").write_text(html, encoding="utf-8")
    page = notebook.page
    page.context.set_offline(True)
    page.goto((folder / "views.html").as_uri())
    shown = page.locator(STATIC).all()
    assert len(shown) > 10
    assert [
        each.inner_text()[:40] for each in shown if not each.is_visible() or each.bounding_box()["height"] < 20
    ] == []
    page.context.set_offline(False)


def largest_part(saved: Path) -> int:
    """The characters of the largest output of a saved notebook, or state of one of its views."""
    notebook = json.loads(saved.read_text(encoding="utf-8"))
    outputs = [each for cell in notebook["cells"] for each in cell.get("outputs", ())]
    states = notebook["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    return max(len(json.dumps(each)) for each in (*outputs, *states.values()))


def test_no_script_failed(notebook: Any, front: Front) -> None:
    errors = notebook.page.errors
    assert (errors if front is FRONTS["lab"] else of_views(errors)) == []
