"""Building the library: each part once, by one process at a time, whatever stops it."""

from __future__ import annotations

import gc
import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.fuser.backend import pace, processes, tiering
from engine.fuser.backend.symbols import ALLOCATE, PARALLEL, RELEASE, MachineError
from engine.fuser.library import beside, building, image_files, key, parts, processor, store
from engine.fuser.library.parts import Part
from engine.lang.progress import Progress, listening
from tests.unit.fuser.library.test_store import DOUBTS, ONE, TWO, found


class Library:
    """Parts that count how often they are made."""

    def __init__(self, **texts: tuple[str, ...]) -> None:
        self.made: list[str] = []
        self.parts = tuple(Part(name, self._modules(name, each)) for name, each in texts.items())

    def _modules(self, name: str, texts: tuple[str, ...]) -> Callable[[], Iterator[str]]:
        def modules() -> Iterator[str]:
            self.made.append(name)
            yield from texts

        return modules


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library(first=(ONE,), second=(TWO, ONE.replace("@one", "@three")))
    monkeypatch.setattr(parts, "PARTS", made.parts)
    return made


@pytest.fixture
def place(room: Path) -> Path:
    assert image_files.folder() == room
    return room


def _state(place: Path) -> str:
    state = image_files.state(key.current(), place)
    return "" if state is None else state.words


def test_parts_are_built_once_and_in_order(place: Path, library: Library) -> None:
    assert building.build(place)
    assert library.made == ["first", "second"]
    assert (found("one"), found("two"), found("three")) == (5, 5, 5)
    assert _state(place) == image_files.COMPLETE
    assert building.build(place)
    assert library.made == ["first", "second"]


def test_each_part_is_published_as_it_comes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int | None, str]] = []

    def second() -> Iterator[str]:
        seen.append((found("one"), _state(place)))
        yield TWO

    monkeypatch.setattr(parts, "PARTS", (Part("first", lambda: [ONE]), Part("second", second)))
    building.build(place)
    assert seen == [(5, "building second")]


def test_a_part_that_is_not_sound_is_built_again(
    place: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    building.build(place)
    DOUBTS["changed"](image_files.path_of("second", key.current(), place), monkeypatch)
    building.build(place)
    assert library.made == ["first", "second", "second"]
    assert found("two") == 5


def test_progress_is_told(place: Path, library: Library) -> None:
    told: list[Progress] = []
    with listening(told.append):
        building.build(place)
    assert {each.action for each in told} == {"building"} and len({each.of for each in told}) == 1
    assert [each.done / each.total for each in told] == [0, 0.5, 0.5, 1]


def _broken() -> Iterator[str]:
    yield "no module of LLVM"


def test_a_part_that_cannot_be_made_is_said_and_leaves_those_before(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PARTS", (Part("first", lambda: [ONE]), Part("second", _broken)))
    with pytest.raises(MachineError):
        building.build(place)
    assert found("one") == 5
    assert _state(place).startswith("failed at second: ")
    assert not image_files.is_being_built(place)


class _Stopped(KeyboardInterrupt):
    pass


def _stopped_after(events: int, work: Callable[[], Any]) -> bool:
    """True if the work was stopped before the n-th function of ours began."""
    left = events

    def on_event(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        is_ours = "/engine/" in frame.f_code.co_filename and not frame.f_code.co_flags & inspect.CO_GENERATOR
        if event == "call" and is_ours:  # generators are also entered when they are dropped
            left -= 1
            if left == 0:
                raise _Stopped

    sys.setprofile(on_event)
    try:
        work()
    except _Stopped:
        return True
    finally:
        sys.setprofile(None)
    return False


def test_an_interrupt_anywhere_leaves_whole_files_and_no_lock(place: Path, library: Library) -> None:
    current, at = key.current(), 1
    while _stopped_after(at, lambda: building.build(place)):
        assert not image_files.is_being_built(place)
        names = {path.name for path in place.iterdir()} - {"lock", f"{current.digest}.state"}
        wanted = {image_files.path_of(part, current, place).name for part in ("first", "second")}
        assert names <= wanted
        assert all(building.is_sound(name.partition(".")[0], current, place) for name in names)
        for name in names:
            (place / name).unlink()
        at += 1
    assert at > 40
    assert _state(place) == image_files.COMPLETE


# ------------------------------------------------------------------ one at a time


def test_one_thread_builds(place: Path, library: Library) -> None:
    start, answers = threading.Barrier(4), []

    def work() -> None:
        start.wait()
        answers.append(building.build(place))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert True in answers
    assert library.made == ["first", "second"]


HOLDING = """
import sys, time
from pathlib import Path
from engine.fuser.library import image_files
with image_files.building(Path(sys.argv[1])) as is_mine:
    print(is_mine, flush=True)
    time.sleep(float(sys.argv[2]))
"""


def _holding(place: Path, seconds: float) -> subprocess.Popen[str]:
    """Another process that builds for so long."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLDING, str(place), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None and process.stdout.readline() == "True\n"
    return process


def test_who_comes_second_leaves_it_or_waits(place: Path, library: Library) -> None:
    with _holding(place, 1.0) as other:
        assert not building.build(place)
        assert library.made == []
        assert building.build(place, waits=True)
        assert other.wait() == 0
    assert library.made == ["first", "second"]


def test_what_killed_processes_locked_is_free(place: Path, library: Library) -> None:
    with _holding(place, 100.0) as other:
        assert image_files.is_being_built(place)
        other.kill()
    assert not image_files.is_being_built(place)
    assert building.build(place)


def test_a_child_that_was_forked_meanwhile_locks_nothing(place: Path) -> None:
    with image_files.building(place) as is_mine:
        assert is_mine
        child = os.fork()
        if child == 0:
            time.sleep(20)
            os._exit(0)
    try:
        assert not image_files.is_being_built(place)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_lock_that_is_no_file_of_ours_means_no_building(place: Path, kind: str, tmp_path: Path) -> None:
    makers = {"link": lambda at: os.symlink(tmp_path / "nowhere", at), "pipe": os.mkfifo, "folder": os.mkdir}
    makers[kind](place / "lock")
    assert not building.build(place)


# ------------------------------------------------------------------ what is swept


def test_images_of_keys_that_were_used_long_ago_go(place: Path, library: Library) -> None:
    current = key.current()
    for age in range(6):
        other = key.Key({**current.facts, "sources": str(age)})
        image_files.publish("first", other, b"an image", place)
        image_files.note(image_files.COMPLETE, other, place)
        os.utime(image_files.path_of("first", other, place), (1000 - age, 1000 - age))
    for stranger in ("thesis.tar", "first.image", "notes"):
        (place / stranger).write_text("not ours")
    building.build(place)
    kept = {file.key for file in image_files.kept(place)}
    wanted = {key.Key({**current.facts, "sources": str(age)}).digest for age in range(image_files.KEYS - 1)}
    assert kept == {current.digest, *wanted}
    assert {path.name.partition(".")[0] for path in place.glob("*.state")} == kept
    assert all((place / stranger).exists() for stranger in ("thesis.tar", "first.image", "notes"))


def test_clearing_leaves_what_others_put_there(place: Path, library: Library) -> None:
    building.build(place)
    (place / "thesis.tar").write_text("not ours")
    size = sum(file.size for file in image_files.kept(place))
    assert image_files.clear(place) >= size
    assert {path.name for path in place.iterdir()} == {"lock", "thesis.tar"}


# ------------------------------------------------------------------ beside a program


@pytest.fixture
def started(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The levels for which processes were started; none is."""
    levels: list[str] = []

    def spawned(command: list[str], environment: Mapping[str, str]) -> bool:
        levels.append(environment[processor.VARIABLE])
        return True

    monkeypatch.setattr(beside, "_STATE", beside._State())
    monkeypatch.setattr(processes, "_spawned", spawned)
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    return levels


def test_a_program_starts_one_process(started: list[str]) -> None:
    assert store.address("one") is None
    assert started == [key.current().facts["target"]]
    assert store.address("one") is None
    assert not beside.begin()
    assert len(started) == 1


def _noted(words: str, age: float = 0.0) -> Callable[[Path, pytest.MonkeyPatch], Any]:
    def note(place: Path, patch: pytest.MonkeyPatch) -> None:
        image_files.note(words, key.current(), place)
        then = time.time() - age
        os.utime(place / f"{key.current().digest}.state", (then, then))

    return note


def _packaged(place: Path, patch: pytest.MonkeyPatch) -> None:
    folder = key.PACKAGED / key.current().facts["target"]
    folder.mkdir(parents=True)
    image_files.path_of("first", key.current(), folder).write_bytes(b"")


WITHOUT: dict[str, Callable[[Path, pytest.MonkeyPatch], Any]] = {
    "mode off": lambda place, patch: patch.setattr(tiering, "mode", lambda: "off"),
    "mode eager": lambda place, patch: patch.setattr(tiering, "mode", lambda: "eager"),
    "nothing is kept": lambda place, patch: patch.setenv("TSREPL_KERNEL_CACHE", "0"),
    "it is complete": _noted(image_files.COMPLETE, 1e6),
    "it failed a while ago": _noted("failed at first: ", 60),
    "it was begun a while ago": _noted("building first", 60),
    "it came with the package": _packaged,
    "Python is part of a program": lambda place, patch: patch.setattr(sys, "executable", "/usr/bin/blender"),
    "there is no Python": lambda place, patch: patch.setattr(sys, "executable", None),
    "the program is frozen": lambda place, patch: patch.setattr(sys, "frozen", True, raising=False),
}


@pytest.mark.parametrize("why", WITHOUT)
def test_no_process_is_started_where(
    why: str, place: Path, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    WITHOUT[why](place, monkeypatch)
    assert not beside.begin()
    assert started == []


@pytest.mark.parametrize("words", ["failed at first: ", "building first"])
def test_what_failed_is_tried_again_later(words: str, place: Path, started: list[str]) -> None:
    _noted(words, beside.AGAIN + 1)(place, pytest.MonkeyPatch())
    assert beside.begin()


def test_no_process_is_started_while_another_builds(place: Path, started: list[str]) -> None:
    with image_files.building(place):
        assert not beside.begin()
    assert started == []


PROGRAM = """
import os, sys
from engine.fuser.library import store
store.address("nothing")
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child", flush=True)
"""


ONE_PART = "from engine.fuser.library import parts\nparts.PARTS = parts.PARTS[:1]\n"
"""Lines of a program that builds the first part alone, which has what kernels call."""


def test_the_process_outlives_the_program_and_builds(place: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(ONE_PART)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "TSREPL_COMPILE": "background", "PYTHONPATH": path}
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, env=environment, timeout=60
    )
    assert (told.stdout, told.stderr) == ("no child\n", "")
    end = time.monotonic() + 60
    while _state(place) != image_files.COMPLETE and time.monotonic() < end:
        time.sleep(0.05)
    assert _state(place) == image_files.COMPLETE
    assert None not in [store.address(symbol) for symbol in (PARALLEL, ALLOCATE, RELEASE)]


def test_the_process_steps_back(place: Path) -> None:
    text = f"{ONE_PART}import os\nimport engine.executor\nfrom engine.fuser.library import building\n"
    text += "building.main()\nprint(os.nice(0))\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True, env=environment)
    assert int(told.stdout) == max(os.nice(0), pace.PATIENT)
    assert _state(place) == image_files.COMPLETE


def test_what_a_program_put_aside_stays_there() -> None:
    gc.freeze()
    with building._few_collections():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
