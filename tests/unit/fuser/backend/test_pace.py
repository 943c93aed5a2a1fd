"""How what compiles beside programs gives way: short work at once, work that goes on behind all others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from engine.fuser.backend import pace, processes
from engine.fuser.backend.pace import AT_ONCE, BRISK, PATIENT, Pace


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The nicenesses that were asked for, and whether for another thread."""
    found: list[tuple[int, bool]] = []
    monkeypatch.setattr(pace, "give_way", lambda niceness, thread=0: found.append((niceness, thread != 0)))
    return found


def test_short_work_is_done_at_once(told: list[tuple[int, bool]]) -> None:
    of = Pace()
    assert of.run(lambda x, y: x + y, 1, 2) == 3
    assert told == [(BRISK, False)]
    assert 0 < of.left < AT_ONCE


def test_work_that_goes_on_gives_way_until_the_next(told: list[tuple[int, bool]]) -> None:
    of = Pace(left=0.05)
    of.run(time.sleep, 0.2)
    assert told == [(BRISK, False), (PATIENT, True)]
    assert of.left == 0
    of.run(int)
    assert told[2:] == [(BRISK, False)], "little came back, and that is enough for what takes no time"


def test_what_was_taken_comes_back(told: list[tuple[int, bool]]) -> None:
    of = Pace(left=0.0, at=time.monotonic() - 5)
    of.run(int)
    assert 0.4 < of.left < 0.6
    of = Pace(left=0.0, at=time.monotonic() - 1000)
    of.run(int)
    assert of.left <= AT_ONCE


def test_work_has_a_thread_of_its_own_unless_there_is_none(
    told: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Pace().run(threading.get_ident) != threading.get_ident()

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert Pace().run(threading.get_ident) == threading.get_ident()


PROGRAM = """
import os, sys
from pathlib import Path
from engine.fuser.backend.pace import BRISK, PATIENT, give_way
session = Path("/proc/self/autogroup")
told = []
for niceness in (PATIENT, BRISK):
    give_way(niceness)
    told += [os.getpriority(os.PRIO_PROCESS, 0), session.read_text().split()[-1] if session.exists() else ""]
Path(os.environ["TOLD"]).write_text(" ".join(map(str, told)))
"""


def test_processes_of_our_own_lower_their_session_and_raise_it_again(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text(f"def main():\n    exec({PROGRAM!r}, {{}})\n")
    path, place = os.pathsep.join([str(tmp_path), *sys.path]), tmp_path / "told"
    assert processes.start("asked", {"PYTHONPATH": path, "TOLD": str(place)})
    end = time.monotonic() + 20
    while not (place.exists() and place.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    own, *rest = place.read_text().split()
    assert int(own) == max(os.getpriority(os.PRIO_PROCESS, 0), PATIENT), "a thread's own only goes up"
    if len(rest) == 3:
        assert [rest[0], rest[2]] == [str(PATIENT), str(BRISK)]


def test_a_program_leaves_its_session_as_it_is() -> None:
    session = Path("/proc/self/autogroup")
    if not session.exists():
        pytest.skip("the system divides processors among processes alone")
    before = session.read_text()
    text = f"from engine.fuser.backend.pace import give_way\ngive_way({PATIENT})"
    subprocess.run(
        [sys.executable, "-c", text], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert session.read_text() == before
