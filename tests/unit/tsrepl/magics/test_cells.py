"""The cell magic's options, completion, signatures, what objects look like, reports."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import engine
from engine.executor.plans.source_lines import line_of_node
from engine.executor.plans.source_places import full_place
from tsrepl.magics.display import CellError

Run = Callable[[str], Any]
POWER = "def power(x: Tensor, n: int = 2):\n    return x ** n"


def test_options_show_run_and_name(shell: InteractiveShell, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("%%torchscript --show graph,code --run 'power(torch.ones(2), 3).sum()' --name mod\n" + POWER)
    said = capsys.readouterr().out
    assert "aten::pow" in said and "torch.pow(x, n)" in said and "2." in said
    assert run("mod.power is power")


def test_views_are_of_this_cell_s_function(run: Run, script: Run) -> None:
    script(POWER)
    with pytest.raises(CellError, match="the cell defines no function"):
        run("%%torchscript graph\nx = 1")


def test_magics_work_inside_of_cells(script: Run, capsys: pytest.CaptureFixture[str]) -> None:
    script(POWER + "\n\n%tsjit_schema power")
    assert "power(Tensor x, int n=2)" in capsys.readouterr().out.splitlines()[-1]


def test_magics_return_what_they_show(run: Run, script: Run) -> None:
    script(POWER)
    run("shown = %tsjit_graph power")
    assert run("'aten::pow' in shown.text")


def test_variables_stand_in_paths_and_paths_have_blanks(run: Run, script: Run, tmp_path: Path) -> None:
    script(POWER)
    run(f"p = '{tmp_path / 'a b.pt'}'")
    run('%tsjit_save power "$p"')
    assert engine.load(tmp_path / "a b.pt")(engine.tensor([3.0]), 2).tolist() == [9.0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("%tsjit_graph po", "power"),
        ("%tsjit_graph py_", "py_function"),
        ("%%torchscript gr", "graph"),
        ("%%torchscript --sh", "--show"),
        ("%%torchscript --show gr", "graph"),
        ("%%torchscript\nx = torch.ones(2)\nx.rel", "relu"),
        ("%%torchscript\ny = t.rel", "relu"),
        ("%tsjit_passes power constant_prop", "constant_propagation"),
        ("%tsjit_tap m we", "weight_norm"),
        ("%tsjit_gra", "%tsjit_graph"),
    ],
)
def test_completion(shell: InteractiveShell, run: Run, script: Run, text: str, wanted: str) -> None:
    script(POWER)
    run("def py_function(x):\n    return x")
    shell.user_ns["t"] = engine.ones(2)
    module = engine.torch.nn.Sequential()
    module.add_module("weight_norm", engine.torch.nn.ReLU())
    shell.user_ns["m"] = engine.jit.script(module)
    with provisionalcompleter():
        found = [each.text for each in shell.Completer.completions(text, len(text))]
    assert wanted in found


def test_functions_have_signatures(run: Run, script: Run) -> None:
    script(POWER)
    assert str(inspect.signature(run("power"))) == "(x: Tensor, n: int = 2) -> Tensor"


def test_help_tells_the_options(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("%%torchscript?")
    assert "--show SHOW" in capsys.readouterr().out


def test_objects_show_what_they_are(shell: InteractiveShell, run: Run, script: Run) -> None:
    script(POWER)
    format: Any = shell.display_formatter.format  # type: ignore[union-attr]
    for value, words in (
        (run("power"), ("power(Tensor x, int n=2)", "torch.pow(x, n)")),
        (run("power.graph"), ("aten::pow",)),
        (engine.ones(4, 4), ("float32 (4, 4)",)),
        (engine.jit.script(engine.torch.nn.Linear(2, 3)), ("Linear", "weight")),
    ):
        data, _ = format(value)
        text = re.sub("<[^>]*>", "", data["text/html"])
        assert all(word in data["text/plain"] and word in text for word in words)


def test_a_report_stands_alone_and_links_lines(run: Run, script: Run, tmp_path: Path) -> None:
    script("def f(x: Tensor):\n    y = torch.tanh(x * 2)\n    return y + 1")
    run(f"%tsjit_report f(torch.ones(3)) {tmp_path / 'out.html'}")
    page = (tmp_path / "out.html").read_text()
    for chapter in ("Source", "Graph", "Passes that ran", "Guards", "Profile", "Kernels"):
        assert chapter in page
    assert 'id="line-3"' in page and 'href="#line-3"' in page
    assert "<script" not in page and "src=" not in page and "aten::tanh" in page


def test_a_report_of_nothing_says_what_to_write(run: Run) -> None:
    with pytest.raises(CellError) as caught:
        run("%tsjit_report f")
    assert caught.value.replies[0].hints == ("write %tsjit_report f out.html",)


def test_lines_of_python_s_cells_are_called_by_their_numbers(shell: InteractiveShell, run: Run) -> None:
    run("import engine.torch as torch")
    run("@torch.jit.script\ndef f(x):\n    return x + 1")
    *_, node = run("f")._function.graph.nodes()
    line = line_of_node(node)
    assert full_place(line) == "cell 2:3"
    run("%unload_ext tsrepl")
    assert full_place(line) not in ("", "cell 2:3")


@pytest.mark.parametrize(
    ("cell", "times"),
    [
        ("%tsjit_code power", 1),
        ("%tsjit_code power  # of this cell's function", 1),
        ("%tsjit_code power\n0", 1),
        ("shown = %tsjit_code power", 1),
        ("for _ in range(2):\n    %tsjit_code power", 2),
        ("%time %tsjit_code power", 1),
        ("%%time\n%tsjit_code power", 1),
        ("%%time\nshown = %tsjit_code power\n0", 1),
        ("%prun -q %tsjit_code power", 1),
        ("def tell():\n    return get_ipython().run_line_magic('tsjit_code', 'power')\ntell()", 1),
        ("def tell():\n    get_ipython().run_line_magic('tsjit_code', 'power')\ntell()", 1),
        ("tell = lambda: get_ipython().run_line_magic('tsjit_code', 'power')\nshown = tell()", 1),
        ("import asyncio\nawait asyncio.sleep(0)\n%tsjit_code power", 1),
        ("import asyncio\nawait asyncio.sleep(0)\nshown = %tsjit_code power", 1),
        ("%tsjit_code power;", 0),
        ("%tsjit_code power ;  # quiet", 0),
        ("%%capture shown\n%tsjit_code power", 0),
    ],
)
def test_a_reply_is_shown_once_whoever_asks_for_it(
    run: Run, script: Run, capsys: pytest.CaptureFixture[str], cell: str, times: int
) -> None:
    script(POWER)
    capsys.readouterr()
    run(cell)
    assert capsys.readouterr().out.count("def power(") == times
