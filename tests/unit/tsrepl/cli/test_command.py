"""The command line on a terminal, which git's pager counts as."""

import io
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from tsrepl.cli import main
from tsrepl.session.entries import HELP, LEAVE

MUTED = {"light": "38;2;89;99;110", "dark": "38;2;145;152;161"}


@pytest.mark.parametrize("theme", MUTED)
def test_answers_have_the_colours_of_the_settings(
    theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.toml").write_text(f'theme = "{theme}"')
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: tmp_path)
    for name in ("NO_COLOR", "TSREPL_THEME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"GIT_PAGER_IN_USE": "true", "TERM": "xterm-256color", "COLORTERM": "truecolor"}.items():
        monkeypatch.setenv(name, value)
    assert main(["-c", "torch.ones(2)"]) == 0
    assert MUTED[theme] in capsys.readouterr().out


OPERATORS = """\
import torch
library = torch.library.Library("of_a_file", "DEF")
library.define("plus(Tensor a, int n=1) -> Tensor")
library.impl("plus", lambda a, n=1: a + n, "CPU")
"""


def run(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tsrepl", *words], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive that calls an operator that only a file of Python gives."""
    (tmp_path / "ops.py").write_text(OPERATORS)
    (tmp_path / "bad.py").write_text("import torch\nx = 1 / 0\n")
    script = f"{OPERATORS}\ndef f(x):\n    return torch.ops.of_a_file.plus(x, 2)\ntorch.jit.script(f).save('m.pt')\n"
    (tmp_path / "save.py").write_text(script)
    assert run(["run", "--as-torch", "save.py"], tmp_path).returncode == 0
    return tmp_path


def test_a_file_gives_operators_to_archives(archive: Path) -> None:
    alone = run(["run", "m.pt", "--input", "ones(2)"], archive)
    assert alone.returncode == 1 and "of_a_file::plus" in alone.stderr and "--operators" in alone.stderr
    for words in (["run", "m.pt", "--operators", "ops.py"], ["--operators", "ops.py", "run", "m.pt"]):
        assert "3., 3." in run([*words, "--input", "ones(2)"], archive).stdout
    assert run(["ops", "m.pt"], archive).returncode == 3
    assert run(["ops", "m.pt", "--operators", "ops.py"], archive).returncode == 0


def test_a_file_of_operators_that_fails_is_told_by_its_line(archive: Path) -> None:
    failed = run(["run", "m.pt", "--operators", "bad.py"], archive)
    assert failed.returncode == 1 and "ZeroDivisionError" in failed.stderr and "bad.py, line 2" in failed.stderr
    assert "importlib" not in failed.stderr
    assert "there is no file 'none.py'" in run(["show", "m.pt", "--operators", "none.py"], archive).stderr


# -- several entries, files with entries, words that leave


MLP = str(Path(__file__).parents[4] / "examples" / "mlp.pt")


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main(words)
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_entries_of_every_option_are_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(["-c", "x = 1", "-c", "def f(a: int):\n    return a + 1", "-c", "f(x)"], capsys)[:2] == (
        0, "defined function f(int a) -> int\n2\n"
    )  # fmt: skip
    status, out, err = said(["-c", "1", "-c", "nope", "-c", "3"], capsys)
    assert (status, out) == (1, "1\n") and "undefined value nope" in err


def test_entries_are_run_with_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said([MLP, "-c", "mlp(torch.ones(1, 6)).shape", "-c", "1 + 1"], capsys)
    assert status == 0 and out.endswith("[1, 3]\nint[]\n2\n")
    status, out, err = said(["open", "gone.pt", "-c", "1"], capsys)
    assert status == 1 and out == "" and "gone.pt" in err


@pytest.mark.parametrize("word", sorted(LEAVE))
@pytest.mark.parametrize("door", ["-c", "stdin"])
def test_words_that_leave_end_the_command(
    word: str, door: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"1\n{word}\n2\n"
    if door == "stdin":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert said(["-c", text] if door == "-c" else [], capsys) == (0, "1\n", "")


@pytest.mark.parametrize("word", sorted(HELP))
def test_words_that_ask_for_help_are_answered(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(["-c", word], capsys) == said(["-c", "%help"], capsys)


def test_lines_for_the_system_run_in_their_place(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "1\n!echo $((6 * 7))\n2"]) == 0
    assert capfd.readouterr().out == "1\n42\n2\n"


def test_files_run_no_lines_for_the_system(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.py").write_text("!touch made\n")
    for words in (["run", str(tmp_path / "p.py")], ["-c", f"%run {tmp_path / 'p.py'}"]):
        assert main(words) == 1
        assert "files do not run that" in capfd.readouterr().err


def test_help_tells_of_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    _, listed, _ = said(["-c", "%help settings"], capsys)
    for text in ("config.toml", 'editing_mode = "vi"', "pager", "theme"):
        assert text in told and text in listed
    assert "config.toml" in said(["-c", "%help"], capsys)[1]
