"""The commands that look at files, as CI runs them: exit statuses, JSON, and which stream says what."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = ROOT / "tests" / "unit" / "serialize"
PROGRAM = str(HERE / "archives" / "function.pt")
OTHER = str(HERE / "archives" / "constants.pt")
WEIGHTS = str(HERE / "files" / "sd_zip.pt")


def tsrepl(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tsrepl", *args]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["identify", PROGRAM, WEIGHTS, "README.md"], 0),
        (["identify", "nothing.pt"], 1),
        (["identify"], 2),
        (["check", PROGRAM], 0),
        (["check", WEIGHTS], 1),
        (["ops", PROGRAM], 0),
        (["ops", WEIGHTS], 1),
        (["diff", PROGRAM, PROGRAM], 0),
        (["diff", PROGRAM, OTHER], 1),
        (["diff", PROGRAM, "nothing.pt"], 2),
        (["diff", PROGRAM], 2),
        (["show", WEIGHTS], 0),
        (["show", "README.md"], 1),
        (["fix", PROGRAM], 2),
        (["extract", "nothing.pt", "nowhere.npz"], 1),
        (["repack", WEIGHTS, "-o", "nowhere/x.pt"], 1),
    ],
    ids=lambda part: " ".join(Path(word).name for word in part) if isinstance(part, list) else "",
)
def test_statuses(args: list[str], status: int) -> None:
    ran = tsrepl(*args)
    assert ran.returncode == status, ran.stderr
    assert "Traceback" not in ran.stderr
    assert bool(ran.stderr) == (status == 2 or (status == 1 and args[1:] != [PROGRAM, OTHER]))


@pytest.mark.parametrize("command", ["identify", "check", "ops"])
def test_json(command: str) -> None:
    assert json.loads(tsrepl(command, PROGRAM, "--json").stdout)


def test_errors_are_json_too() -> None:
    ran = tsrepl("check", WEIGHTS, "--json")
    assert "a state dict" in json.loads(ran.stdout)["error"]["message"]
    assert ran.returncode == 1 and ran.stderr


@pytest.mark.parametrize("command", ["identify", "check", "ops", "diff", "extract", "fix", "repack"])
def test_help_tells_what_there_is(command: str) -> None:
    ran = tsrepl(command, "--help")
    assert ran.returncode == 0 and max(map(len, ran.stdout.splitlines())) <= 120
