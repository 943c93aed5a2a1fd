"""The notebook magics, in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import engine
from engine.serialize.progress import step
from tsrepl.magics import display
from tsrepl.magics.display import CellError, PageBar, Shown
from tsrepl.render import progress
from tsrepl.session.replies import ErrorReply, GraphReply

DOUBLE = "%%torchscript\ndef double(x: Tensor):\n    return x + x\n"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "tsrepl")
    yield shell
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, cell: str) -> Any:
    result = shell.run_cell(cell)
    result.raise_error()
    return result.result


def test_a_cell_defines_functions_for_python(shell: InteractiveShell) -> None:
    run(shell, DOUBLE)
    assert run(shell, "double(__import__('numpy').ones(2)).tolist()") == [2.0, 2.0]


def test_a_cell_sees_python_values_and_gives_its_own(shell: InteractiveShell) -> None:
    shell.user_ns["a"] = np.array([1.0, 2.0])
    shell.user_ns["n"] = 3
    run(shell, "%%torchscript\nb = a * n\n")
    assert shell.user_ns["b"].tolist() == [3.0, 6.0]


def test_functions_scripted_in_python_are_known_to_the_magics(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.user_ns["f"] = engine.CompilationUnit("def f(x):\n    return x.relu()\n").f
    run(shell, "%tsjit_graph f")
    assert "aten::relu" in capsys.readouterr().out


def test_redefinition_reaches_callers(shell: InteractiveShell) -> None:
    run(shell, DOUBLE)
    run(shell, "%%torchscript\ndef four(x: Tensor):\n    return double(double(x))\n")
    run(shell, "%%torchscript\ndef double(x: Tensor):\n    return x * 10\n")
    assert run(shell, "four(__import__('numpy').ones(1)).tolist()") == [100.0]


def test_words_behind_the_cell_magic_are_commands(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, DOUBLE.replace("torchscript", "torchscript code", 1))
    assert "return torch.add(x, x)" in capsys.readouterr().out


def test_save_and_load(shell: InteractiveShell, tmp_path: Path) -> None:
    run(shell, DOUBLE)
    run(shell, f"%tsjit_save double {tmp_path / 'd.pt'}")
    assert engine.load(tmp_path / "d.pt")(engine.tensor([2.0])).tolist() == [4.0]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%torchscript\ndef f(:\n", "f"),
        ("%%torchscript\ndef f(x):\n    return x + unknown\n", "unknown"),
        ("%tsjit_graph nothing", "nothing"),
        ("%tsjit_load no_such_file.pt", "no_such_file.pt"),
    ],
)
def test_mistakes_stop_the_cell_with_one_clear_error(shell: InteractiveShell, cell: str, words: str) -> None:
    with pytest.raises(CellError, match=words):
        run(shell, cell)


def test_all_errors_of_a_cell_are_told_and_what_compiles_is_there(shell: InteractiveShell) -> None:
    with pytest.raises(CellError) as caught:
        run(
            shell, "%%torchscript\ndef f(x):\n    return one\ndef g(x):\n    return two\ndef h(x: int):\n    return x\n"
        )
    assert [reply.message for reply in caught.value.replies] == ["undefined value one", "undefined value two"]
    assert "undefined value two" in "\n".join(caught.value._render_traceback_())
    assert run(shell, "h(3)") == 3


def test_an_error_renders_without_a_python_traceback() -> None:
    lines = CellError([ErrorReply("Compile error", "undefined value y", "cell 1, line 2", "x + y\n    ~ <--- HERE")])
    text = "\n".join(lines._render_traceback_())
    assert "undefined value y" in text
    assert "Traceback" not in text


def test_replies_have_an_html_and_a_plain_form() -> None:
    bundle = Shown(GraphReply("f", "graph(%x : Tensor):\n  return (%x)"))._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "%x" in bundle["text/plain"]
    assert bundle["text/html"].count("<div") == 1


def test_taps_and_cuts_of_modules_that_python_loaded(shell: InteractiveShell, tmp_path: Path) -> None:
    archives = Path(__file__).parents[2] / "serialize" / "files"
    shell.user_ns["m"] = engine.load(archives / "mobile.ptl")
    shell.user_ns["x"] = engine.ones(2, 4)
    run(shell, "%tsjit_run_until m a -- m(x)")
    run(shell, "%tsjit_cut m -> a as front")
    assert run(shell, "front(x).shape") == run(shell, "m(x).shape")


def test_a_page_s_bar_counts_and_is_gone_at_the_end(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[tuple[dict[str, str], bool]] = []

    def publish(data: dict[str, str], *args: Any, update: bool = False, **kwargs: Any) -> None:
        published.append((data, update))

    monkeypatch.setattr(shell.display_pub, "publish", publish)
    monkeypatch.setattr(progress, "PATIENCE", -1)
    monkeypatch.setattr(display, "EVERY", -1)
    with progress.bars_made_by(PageBar):
        for done in (1, 2, 4):
            step("writing", "/tmp/<model>.pt", done, 4)
    assert [update for _, update in published] == [False, True, True]
    shown = [data["text/html"] for data, _ in published]
    assert 'value="2" max="4"' in shown[1] and "50 %" in shown[1] and "&lt;model&gt;.pt" in shown[1]
    assert published[-1][0] == {"text/html": "", "text/plain": ""}
