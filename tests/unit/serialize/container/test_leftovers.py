"""Temporary files of killed saves: the next save removes them, and nothing else."""

import os
import signal
import time

import pytest

from engine.serialize.container.leftovers import STALE_AFTER, hold, remove_leftovers, temporary_beside
from engine.serialize.container.write import replace_file


@pytest.fixture
def target(tmp_path):
    return tmp_path / "m.pt"


def left(path, age=STALE_AFTER + 60):
    """Make the file, last changed so many seconds ago."""
    path.write_bytes(b"half")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_the_next_save_removes_them(target):
    left(temporary_beside(target))
    replace_file(target, [b"new"])
    assert os.listdir(target.parent) == ["m.pt"]


@pytest.mark.parametrize(
    "name",
    [
        ".n.pt.0123456789abcdef.tmp",
        "m.pt.0123456789abcdef.tmp",
        ".m.pt.0123456789abcdef.tmp~",
        ".m.pt.0123456789ABCDEF.tmp",
        ".mxpt.0123456789abcdef.tmp",
        ".m.pt.tmp",
    ],
)
def test_other_files_stay(name, target):
    path = left(target.parent / name)
    remove_leftovers(target)
    assert path.exists()


def test_young_ones_folders_links_and_names_of_others_stay(target):
    young, folder, link = (temporary_beside(target) for _ in range(3))
    left(young, age=5)
    folder.mkdir()
    link.symlink_to(left(target.parent / "precious"))
    os.utime(link, (0, 0), follow_symlinks=False)
    twice = left(temporary_beside(target))
    os.link(twice, target.parent / "kept")
    remove_leftovers(target)
    assert all(os.path.lexists(path) for path in (young, folder, link, twice, target.parent / "precious"))


def test_what_a_living_process_holds_stays_until_that_is_killed(target):
    path = left(temporary_beside(target))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        hold(os.open(path, os.O_WRONLY))
        os.write(writing, b"held")
        time.sleep(60)
        os._exit(0)
    try:
        assert os.read(reading, 4) == b"held"
        remove_leftovers(target)
        assert path.exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)
    remove_leftovers(target)
    assert not path.exists()


def test_a_folder_that_cannot_be_listed_is_no_error(tmp_path):
    remove_leftovers(tmp_path / "none" / "m.pt")
