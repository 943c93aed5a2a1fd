"""`tsrepl report`: a page about a program."""

from pathlib import Path

import pytest

import engine.torch as torch
from tsrepl.cli import main

PROGRAM = (
    "def main(x: Tensor, n: int):\n    y = x\n    for i in range(n):\n"
    "        y = torch.tanh(y * 2 + i)\n    return y.sum()\n"
)


def test_a_text_file_is_run_with_its_inputs(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PROGRAM)
    assert main(["report", str(tmp_path / "p.py"), "--input", "ones(4)", "n=3", "-o", str(tmp_path / "out.html")]) == 0
    page = (tmp_path / "out.html").read_text()
    assert "main(x=x, n=n)" in page and "1 plan was made" in page and 'href="#line-4"' in page


def test_an_archive_is_run_with_its_inputs(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 3)), str(tmp_path / "net.pt"))
    assert main(["report", str(tmp_path / "net.pt"), "--input", "ones(1, 2)", "-o", str(tmp_path / "out.html")]) == 0
    page = (tmp_path / "out.html").read_text()
    assert "aten::linear" in page and "1 plan was made" in page


def test_without_inputs_nothing_runs_and_the_page_says_so(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PROGRAM)
    assert main(["report", str(tmp_path / "p.py"), "-o", str(tmp_path / "out.html")]) == 0
    page = (tmp_path / "out.html").read_text()
    assert "main has not run yet" in page and "aten::tanh" in page


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nothing.pt"), "-o", str(tmp_path / "out.html")]) != 0
    assert "does not exist" in capsys.readouterr().err
