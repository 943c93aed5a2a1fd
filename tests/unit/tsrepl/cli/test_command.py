"""The command line on a terminal, which git's pager counts as."""

import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from tsrepl.cli import main

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
