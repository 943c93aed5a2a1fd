"""Ctrl-C at any moment of a command: it ends with the status of interrupted commands, and shows no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.serialize.model_files import ARCHIVES

ROOT = Path(__file__).parents[4]
PROGRAM = """
import os, signal, sys
from tsrepl.cli import main

words, step = sys.argv[2:], int(sys.argv[1])


def run(interrupted):
    seen = 0

    def hook(event, _):
        nonlocal seen
        if event in ("import", "open"):
            seen += 1
            if seen == interrupted:
                signal.raise_signal(signal.SIGINT)

    sys.addaudithook(hook)
    return main(words), seen


def child(interrupted):
    reading, writing = os.pipe()
    said = os.path.join(os.getcwd(), "said")
    pid = os.fork()
    if pid == 0:
        place = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(place, 1)
        os.dup2(place, 2)
        status, seen = run(interrupted)
        os.write(writing, f"{status} {seen}".encode())
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    told = os.read(reading, 100).decode()
    os.waitpid(pid, 0)
    os.close(reading)
    with open(said, errors="replace") as file:
        return told, file.read()


usual, count = map(int, child(-1)[0].split())
for n in range(1, count, step):
    told, text = child(n)
    if not told.startswith(("130 ", f"{usual} ")) or "Traceback" in text:
        print(n, repr(told), text[-1500:])
print("count", count)
"""


def interrupted(step, folder, *words):
    command = [sys.executable, "-c", PROGRAM, str(step), *words]
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=500
    )
    assert done.stderr == ""
    *failures, count = done.stdout.splitlines()
    assert failures == []
    assert int(count.removeprefix("count ")) > 20
    return count


@pytest.mark.parametrize("words", [("identify",), ("identify", "--json")], ids=" ".join)
def test_a_command_that_is_interrupted_while_it_loads(words, tmp_path):
    pytest.importorskip("resource")
    interrupted(9, tmp_path, *words, str(ARCHIVES / "everything.pt"))


@pytest.mark.slow
@pytest.mark.parametrize("words", [("identify",), ("check",), ("ops",), ("show",)], ids=" ".join)
def test_a_command_that_is_interrupted_at_any_import(words, tmp_path):
    pytest.importorskip("resource")
    interrupted(1, tmp_path, *words, str(ARCHIVES / "everything.pt"))
