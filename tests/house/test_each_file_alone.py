"""The tool that runs each test file in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.each_file_alone import main

LEAVES = "import os\n\n\ndef test_leaves() -> None:\n    os.environ['LEFT_BY_A_TEST'] = '1'\n"
NEEDS = "import os\n\n\ndef test_needs() -> None:\n    assert 'LEFT_BY_A_TEST' in os.environ\n"
HANGS = "import time\n\n\ndef test_hangs() -> None:\n    time.sleep(60)\n"


def test_what_passes_only_after_others_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("test_a.py", LEAVES), ("test_b.py", NEEDS), ("other.py", NEEDS)):
        (tmp_path / name).write_text(text)
    assert main([str(tmp_path), "--jobs", "1", "--", "-p", "no:cacheprovider"]) == 1
    said = capsys.readouterr().out
    assert "test_b.py fails alone" in said
    assert said.endswith("2 files ran alone, 1 failed\n")


def test_files_of_which_all_is_left_out_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_b.py").write_text(NEEDS)
    assert main([str(tmp_path / "test_b.py"), "--", "-k", "others"]) == 0
    assert capsys.readouterr().out == "1 file ran alone, 0 failed\n"


def test_files_have_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    assert main([str(tmp_path), "--seconds", "1"]) == 1
    assert "takes longer than 1 s" in capsys.readouterr().out
