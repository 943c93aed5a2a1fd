"""Mistakes on the command line: told with the nearest word, and with the usage of the command that was meant."""

from pathlib import Path

import pytest

import engine.torch as torch
from tsrepl.cli import main


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.mark.parametrize(
    ("words", "usage", "message", "hint"),
    [
        (["shwo", "m.pt"], "tsrepl [-h]", "there is no command 'shwo'", "did you mean 'show'?"),
        (["gone.pt"], "tsrepl [-h]", "there is no command 'gone.pt'", "the commands are open, run, show, identify"),
        (["gone.pt"], "tsrepl [-h]", "and no file of that name", "the commands are"),
        (["models/gone"], "tsrepl [-h]", "and no file of that name", "the commands are"),
        (["graph", "m.pt"], "tsrepl [-h]", "there is no command 'graph'", "write tsrepl show --graph FILE"),
        (["show", "m.pt", "--metod", "x"], "tsrepl show", "there is no option '--metod'", "did you mean '--method'?"),
        (["run", "m.pt", "--inputs=3"], "tsrepl run", "there is no option '--inputs'", "did you mean '--input'?"),
        (["--versoin"], "tsrepl [-h]", "there is no option '--versoin'", "did you mean '--version'?"),
        (["check", "a.pt", "b.pt"], "tsrepl check", "there is no place for 'b.pt'", ""),
        (["show"], "tsrepl show", "the following arguments are required: FILE", ""),
        (["show", "a.pt", "--code", "--graph"], "tsrepl show", "not allowed with argument --code", ""),
    ],
)
def test_mistakes(words: list[str], usage: str, message: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(words, capsys)
    assert said.startswith(f"usage: {usage}")
    assert message in said and hint in said and ("hint: " in said) == bool(hint)


def test_a_folder_in_place_of_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal([str(tmp_path)], capsys)
    assert f"hint: '{tmp_path}' is a folder" in said


def test_an_argument_that_the_method_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.py").write_text("def main(first: int):\n    return first\n")
    assert main(["run", str(tmp_path / "p.py"), "--input", "frist=3"]) == 1
    said = capsys.readouterr().err
    assert "main has no argument 'frist'" in said and "did you mean 'first'?" in said and "it takes first" in said


def test_a_device_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", "--device", "tpu", "m.pt", "-o", "o.pt"]) == 2
    assert "'tpu' is no device" in capsys.readouterr().err


def test_help_fits_into_eighty_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in ("", "run", "show", "identify", "check", "ops", "diff", "extract", "fix", "repack"):
        with pytest.raises(SystemExit):
            main([*command.split(), "--help"])
        said = capsys.readouterr().out
        assert "exit status" in said or "examples:" in said or command == "identify"
        assert all(len(line) <= 82 for line in said.splitlines() if "[--" not in line), said


def test_a_method_whose_object_has_another_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "def forward(this, x: int) -> int:\n    return x * this.by\n"
    module = torch.nn.Module()
    module.by = 7
    compiled = torch.jit.script(module)
    compiled.define(source)
    compiled.save(tmp_path / "m.pt")
    assert main(["run", str(tmp_path / "m.pt"), "--input", "x=6"]) == 0
    assert "42" in capsys.readouterr().out
    assert main(["run", str(tmp_path / "m.pt")]) == 1
    assert "forward needs x (int)" in capsys.readouterr().err
    assert main(["show", str(tmp_path / "m.pt")]) == 0
    assert "forward(int x) -> int" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["", "open", "run", "show", "check", "diff", "report", "fix", "extract"])
def test_help_fits_narrow_terminals(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words stay the same at every width; what is longer than the page can be copied: a command, or an option."""
    told = {}
    for width in (30, 40, 60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        with pytest.raises(SystemExit):
            main([*filter(None, [command]), "--help"])
        told[width] = capsys.readouterr().out
        long = [line.strip() for line in told[width].splitlines() if len(line) > width]
        assert [
            line for line in long if not line.startswith(("tsrepl ", "echo ", "git ", "[-", "/")) or "  " in line
        ] == []
    behind = ["".join(text.partition("options:")[2].split()) for text in told.values()]
    assert behind == [behind[-1]] * len(behind)
