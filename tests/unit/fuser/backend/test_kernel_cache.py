"""Machine code on disk: what was stored comes back, and nothing else ever does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest

from engine.fuser.backend import code, kernel_cache, machine
from engine.fuser.ir.kernel import Kernel
from engine.fuser.ir.kernel_text import parse

KEY = kernel_cache.key_of(("a kernel", "a processor"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "kernels"
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(found))
    return found


def _file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_what_was_stored_comes_back(folder: Path) -> None:
    assert kernel_cache.load(KEY) is None
    kernel_cache.store(KEY, b"code")
    assert kernel_cache.load(KEY) == b"code"
    assert kernel_cache.load(kernel_cache.key_of(("a kernel", "another processor"))) is None
    assert folder.stat().st_mode & 0o777 == 0o700


def test_keys_tell_parts_apart() -> None:
    assert kernel_cache.key_of(("ab", "c")) != kernel_cache.key_of(("a", "bc"))


def test_a_source_that_changes_has_another_state(tmp_path: Path) -> None:
    source = tmp_path / "inner" / "a.py"
    source.parent.mkdir()
    source.write_text("x = 1")
    before = kernel_cache.state_of([tmp_path])
    assert kernel_cache.state_of([tmp_path]) == before
    (tmp_path / "notes.txt").write_text("not a source")
    assert kernel_cache.state_of([tmp_path]) == before
    source.write_text("x = 10")
    assert kernel_cache.state_of([tmp_path]) != before


@pytest.mark.parametrize("setting", ["0", ""])
def test_the_same_sources_have_the_same_state_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", setting or str(tmp_path / "kernels"))
    states = []
    for i, place in enumerate(("here", "there")):
        source = tmp_path / place / "room" / "a.py"
        source.parent.mkdir(parents=True)
        source.write_text("x = 1")
        os.utime(source, (i, i))
        states += [kernel_cache.state_of([source.parent])] * 2
    assert len({*states}) == 1


@pytest.mark.parametrize("found", [b"", b"tsrepl kernel 1\n", b"\x7fELF" + bytes(100)])
def test_files_of_others_are_ignored(folder: Path, found: bytes) -> None:
    kernel_cache.store(KEY, b"code")
    _file(folder).write_bytes(found)
    assert kernel_cache.load(KEY) is None
    kernel_cache.store(KEY, b"code")
    assert kernel_cache.load(KEY) == b"code"


@pytest.mark.parametrize("place", [0, 20, -1])
def test_corrupted_files_are_ignored(folder: Path, place: int) -> None:
    kernel_cache.store(KEY, b"code" * 10)
    found = bytearray(_file(folder).read_bytes())
    found[place] ^= 1
    _file(folder).write_bytes(found)
    assert kernel_cache.load(KEY) is None


def test_a_file_under_another_name_is_ignored(folder: Path) -> None:
    kernel_cache.store(KEY, b"code")
    other = kernel_cache.key_of(("other",))
    _file(folder).rename(folder / f"{other}.kernel")
    assert kernel_cache.load(other) is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no modes of files")
def test_what_others_may_write_is_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel_cache.store(KEY, b"code")
    _file(folder).chmod(0o666)
    assert kernel_cache.load(KEY) is None
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(shared))
    kernel_cache.store(KEY, b"code")
    assert not [*shared.iterdir()]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links")
def test_links_are_not_followed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel_cache.store(KEY, b"code")
    target = tmp_path / "elsewhere"
    _file(folder).rename(target)
    (folder / f"{KEY}.kernel").symlink_to(target)
    assert kernel_cache.load(KEY) is None
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "link"))
    assert kernel_cache.directory() is None


def test_nothing_is_kept_where_nobody_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for setting in ("0", str(tmp_path / "file" / "kernels")):
        monkeypatch.setenv("TSREPL_KERNEL_CACHE", setting)
        kernel_cache.store(KEY, b"code")
        assert kernel_cache.load(KEY) is None


def test_what_was_used_least_recently_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "ROOM", 3500)
    keys = [kernel_cache.key_of((str(i),)) for i in range(4)]
    for i, key in enumerate(keys[:3]):
        kernel_cache.store(key, bytes(1000))
        os.utime(folder / f"{key}.kernel", (i, i))
    assert kernel_cache.load(keys[0]) is not None
    kernel_cache.store(keys[3], bytes(1000))
    assert [kernel_cache.load(key) is not None for key in keys] == [True, False, True, True]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_is_neither_waited_for_nor_replaced(folder: Path, kind: str, tmp_path: Path) -> None:
    kernel_cache.store(KEY, b"code")
    path = _file(folder)
    path.unlink()
    makers = {"pipe": os.mkfifo, "link": lambda at: os.symlink(tmp_path / "nowhere", at), "folder": os.mkdir}
    makers[kind](path)
    before = path.lstat()
    assert kernel_cache.load(KEY) is None
    kernel_cache.store(KEY, b"code")
    assert (_file(folder), path.lstat().st_ino) == (path, before.st_ino)


STRANGERS = ("thesis.tar", "a.kernel", "tmp1234", f"{'0' * 64}.txt", f"{'0' * 63}g.kernel", f"{'1' * 64}.kernel")
"""Names of files that others may put into the folder; the last one could be ours, but begins otherwise."""


def test_making_room_leaves_what_others_put_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "ROOM", 10)
    kernel_cache.store(KEY, bytes(1000))
    for name in STRANGERS:
        (folder / name).write_bytes(bytes(1000))
        os.utime(folder / name, (1, 1))
    (folder / "inner").mkdir()
    os.mkfifo(folder / f"{'2' * 64}.kernel")
    kernel_cache.store(kernel_cache.key_of(("other",)), bytes(1000))
    assert {path.name for path in folder.iterdir()} == {*STRANGERS, "inner", f"{'2' * 64}.kernel"}


def test_files_that_a_process_left_unfinished_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "ROOM", 3000)
    kernel_cache.store(KEY, bytes(10))
    old, new = folder / f"{KEY}.abc.unfinished", folder / f"{KEY}.def.unfinished"
    for path in (old, new):
        path.write_bytes(b"")
    os.utime(old, (1, 1))
    kernel_cache.store(KEY, bytes(1000))
    assert (old.exists(), new.exists()) == (False, True)


def test_the_folder_is_listed_once_in_many_stores(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "ROOM", 1 << 20)
    swept: list[Path] = []
    monkeypatch.setattr(kernel_cache, "_make_room", swept.append)
    count, size = 2000, 1000
    for i in range(count):
        kernel_cache.store(kernel_cache.key_of((str(i),)), bytes(size))
    expected = count * size / (kernel_cache.ROOM * kernel_cache.SWEPT)
    assert expected / 2 < len(swept) < expected * 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("call", ["replace", "fdopen"])
def test_what_fails_leaves_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: type[BaseException]
) -> None:
    def fails(*args: object) -> None:
        raise error

    monkeypatch.setattr(os, call, fails)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            kernel_cache.store(KEY, b"code")
    else:
        kernel_cache.store(KEY, b"code")
    monkeypatch.undo()
    assert not [*folder.iterdir()]


def test_a_folder_that_cannot_be_made_may_be_there_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_text("")
    assert kernel_cache.directory() is None
    folder.unlink()
    kernel_cache.store(KEY, b"code")
    assert kernel_cache.load(KEY) == b"code"


def test_many_at_once(folder: Path) -> None:
    def work() -> None:
        for i in range(30):
            kernel_cache.store(KEY, bytes(5000))
            found = kernel_cache.load(KEY)
            assert found in (None, bytes(5000)), i

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert kernel_cache.load(KEY) == bytes(5000)


# ------------------------------------------------------------------ kernels


def _kernel() -> Kernel:
    return parse("def doubled(n: i64, x: InOut[f64[n]]):\n    for i in vector(n):\n        x[i] = x[i] * 2.0\n")


def _doubles(patch: pytest.MonkeyPatch) -> bool:
    """True if the kernel does its work in a process that has no code yet."""
    patch.setattr(code, "_LOADED", WeakValueDictionary())
    code.circumstances.cache_clear()
    kernel_cache._state_of_room.cache_clear()
    x = np.arange(5.0)
    assert machine.callable_kernel(_kernel())(5, x) == 0
    return bool((x == np.arange(5.0) * 2).all())


def test_kernels_are_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _doubles(monkeypatch)
    monkeypatch.setattr(machine, "_optimized", None)  # nothing is compiled any more
    assert _doubles(monkeypatch)


def test_a_corrupted_kernel_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _doubles(monkeypatch)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-10])
    assert _doubles(monkeypatch)


def test_another_process_finds_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _doubles(monkeypatch)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    text = (
        "import numpy as np\nfrom engine.fuser.backend import machine\nfrom engine.fuser.ir.kernel_text import parse\n"
        "machine._optimized = None\nx = np.arange(5.0)\n"
        "kernel = parse('def doubled(n: i64, x: InOut[f64[n]]):\\n"
        "    for i in vector(n):\\n        x[i] = x[i] * 2.0\\n')\n"
        "assert machine.callable_kernel(kernel)(5, x) == 0 and (x == np.arange(5.0) * 2).all()\n"
    )
    subprocess.run(
        [sys.executable, "-c", text], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert before.keys() == {path.name for path in folder.iterdir()}
