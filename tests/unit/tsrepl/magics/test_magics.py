"""The notebook magics, in a real IPython shell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import engine
from engine.lang.progress import step
from engine.torch import nn
from tsrepl.magics import display
from tsrepl.magics.display import ERROR_WIDTH, WIDGET, CellError, PageBar, bundle
from tsrepl.magics.words import as_magics
from tsrepl.render import progress
from tsrepl.session.replies import ErrorReply, GraphReply, TextReply

DOUBLE = "%%torchscript\ndef double(x: Tensor):\n    return x + x\n"


class Once(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return x + x


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.once = Once()

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.once(self.once(x) - x)


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


def test_errors_name_the_cell_by_the_number_beside_it(shell: InteractiveShell) -> None:
    shell.run_cell("1", store_history=True)
    result = shell.run_cell("%%torchscript\ndef f(x):\n    return y\n", store_history=True)
    assert isinstance(result.error_in_exec, CellError)
    (error,) = result.error_in_exec.replies
    assert error.location == f"cell {result.execution_count}, line 3"  # the magic has a line, too


def test_errors_fit_a_narrow_page(shell: InteractiveShell) -> None:
    with pytest.raises(CellError) as caught:
        run(shell, "%tsjit_load " + "/nowhere" * 30)
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in caught.value._render_traceback_()]
    assert max(map(len, lines)) <= ERROR_WIDTH


def test_the_last_value_is_known_to_python(shell: InteractiveShell) -> None:
    run(shell, "%%torchscript\ntorch.ones(2) * 3\n")
    assert run(shell, "_.tolist()") == [3.0, 3.0]
    run(shell, "%%torchscript\ntorch.ones(2) * 4\n")
    run(shell, "b = 1")
    assert run(shell, "_.tolist()") == [4.0, 4.0]


def test_ipython_goes_on_with_last_values_of_its_own(shell: InteractiveShell) -> None:
    run(shell, "%%torchscript\ntorch.ones(2) * 3\n")
    shell.run_cell("1 + 1", store_history=True)
    shell.run_cell("_ + 1", store_history=True)
    assert shell.user_ns["_"] == 3 and shell.user_ns["__"] == 2


def test_values_that_were_tapped_are_known_to_python(shell: InteractiveShell) -> None:
    shell.user_ns["m"] = engine.jit.script(Twice())
    run(shell, "%tsjit_tap m once -- m(torch.ones(2))")
    assert run(shell, "_['once'].tolist()") == [2.0, 2.0]


def test_texts_speak_of_magics(shell: InteractiveShell, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(CellError) as caught:
        run(shell, "%tsjit_save f")
    (error,) = caught.value.replies
    assert error.message == "%tsjit_save wants a name and a path" and error.hints == ("write %tsjit_save name path",)
    run(shell, DOUBLE)
    run(shell, f"%tsjit_save double {tmp_path / 'd.pt'}")
    run(shell, f"%tsjit_load {tmp_path / 'd.pt'} as d")
    run(shell, "%tsjit_help save")
    run(shell, "%tsjit_help")
    said = capsys.readouterr().out
    assert "type d to see its modules, %tsjit_schema d for its arguments" in said
    assert "%tsjit_save name path" in said and "%save" not in said and "%tsjit_tsjit" not in said


def test_what_is_no_command_keeps_its_sign() -> None:
    for text in ("100 % save", "%saved", "%%save", "5%save"):
        assert as_magics(TextReply(text)) == TextReply(text)
    assert as_magics(TextReply("%save, %load")) == TextReply("%tsjit_save, %tsjit_load")


def test_a_magic_s_reply_is_shown_once_and_again_where_it_is_a_result(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, DOUBLE)
    for cell, times in (("%tsjit_code double", 1), ("g = %tsjit_code double", 1), ("g", 1), ("g;", 0),
                        ("%tsjit_code double\n%tsjit_code double\nx = 1", 2)):  # fmt: skip
        capsys.readouterr()
        shell.run_cell(cell, store_history=True)
        assert capsys.readouterr().out.count("return torch.add(x, x)") == times, cell


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
    data, _ = bundle(GraphReply("f", "graph(%x : Tensor):\n  return (%x)"))
    assert set(data) == {"text/html", "text/plain", WIDGET}
    assert "%x" in data["text/plain"]
    assert data["text/html"].count("<div") == 1


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


def test_what_python_calls_taught_is_shown_by_line_magics(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "import engine.torch as torch")
    run(shell, DOUBLE)
    run(shell, "x = torch.ones(3)")
    for line in (
        "%tsjit_guards double(x)",
        "double(torch.ones(4)); None",
        "%tsjit_guards double",
        "%tsjit_explain double",
    ):
        run(shell, line)
    said = capsys.readouterr().out
    assert "expected Float(3), got Float(4)" in said
    assert "more: %tsjit_kernels double, " in said


class Quiet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.once = Once()

    def check(self, x: engine.Tensor) -> None:
        assert x.numel() > 0

    def forward(self, x):  # type: ignore[no-untyped-def]
        self.check(x)
        return self.once(x)


def test_taps_of_none_are_kept(shell: InteractiveShell) -> None:
    shell.user_ns["m"] = engine.jit.script(Quiet())
    run(shell, "%tsjit_tap m * *() -- m(torch.ones(2))")
    found = run(shell, "_")
    assert None in found.values() and found["once"].tolist() == [2.0, 2.0]
