"""Images on disk: functions are found by symbol, and of files that cannot be trusted nothing is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.fuser.backend import private_files, symbols
from engine.fuser.images import image, mapping
from engine.fuser.library import image_files, key, processor, store
from engine.fuser.library.key import Key
from tests.unit.fuser.images.modules import PROGRAM, SECOND, Surroundings, function, image_of

ONE = "define i64 @one(i64 %x) {\n  %r = add i64 %x, 1\n  ret i64 %r\n}\n"
TWO = "declare i64 @one(i64)\ndefine i64 @two(i64 %x) {\n  %r = call i64 @one(i64 %x)\n  ret i64 %r\n}\n"


def publish(part: str, *texts: str, current: Key | None = None) -> Path:
    """The file of a part, made of these modules."""
    chosen, room = current or key.current(), image_files.folder()
    assert room is not None
    assert image_files.publish(part, chosen, image.to_bytes(image_of(*texts, key=chosen.text)), room)
    return image_files.path_of(part, chosen, room)


def found(symbol: str) -> int | None:
    """The result of a function for 4; None where it is not there."""
    address = store.address(symbol)
    return None if address is None else int(function(address)(4))


def test_functions_are_found_by_symbol(room: Path) -> None:
    assert store.address("one") is None
    publish("first", ONE)
    assert (found("one"), found("none"), store.parts_found(), store.troubles()) == (5, None, 1, ())
    assert room.stat().st_mode & 0o777 == 0o700


def test_parts_that_come_later_are_found(room: Path) -> None:
    publish("first", ONE)
    assert (found("one"), found("tripled")) == (5, None)
    publish("other", PROGRAM.replace("@outside", "@one").replace("external global i64", "global i64 7"))
    assert (found("tripled"), found("whole"), store.parts_found()) == (12, 36, 2)


def test_the_folder_is_looked_at_twice_a_second(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "INTERVAL", 1000.0)
    assert store.address("one") is None
    publish("first", ONE)
    assert store.address("one") is None


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_parts_may_need_each_other_in_any_order(room: Path, names: tuple[str, str]) -> None:
    for name, text in zip(names, (ONE, TWO), strict=True):
        publish(name, text)
    assert found("two") == 5


def test_parts_that_need_each_other_both_ways_are_left(room: Path) -> None:
    publish("first", "declare i64 @two(i64)\n" + ONE.replace("add i64 %x, 1", "call i64 @two(i64 %x)"))
    publish("second", TWO)
    assert found("two") is None
    assert store.troubles()


def test_what_a_part_needs_and_nobody_has_is_said(room: Path) -> None:
    publish("first", PROGRAM)
    publish("second", ONE)
    assert (found("whole"), found("one")) == (None, 5)
    assert "given, outside" in "".join(store.troubles())


def test_the_process_has_symbols_of_its_own_and_of_c(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = Surroundings()
    for name, address in around.symbols.items():
        monkeypatch.setitem(symbols.SYMBOLS, name, lambda address=address: address)
    publish("first", PROGRAM, "declare i64 @labs(i64)\n" + ONE.replace("add i64 %x, 1", "call i64 @labs(i64 %x)"))
    assert (found("whole"), found("one")) == (3 * 1005, 4)


def test_symbols_of_the_library_serve_compiled_code(room: Path) -> None:
    assert symbols.compiled_ahead(("one", "two")) is None
    publish("first", ONE, TWO)
    assert symbols.compiled_ahead(("one", "two")) == {name: store.address(name) for name in ("one", "two")}


# ------------------------------------------------------------------ files that cannot be trusted


def _as_another_user(path: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)


def _linked_to(path: Path, patch: pytest.MonkeyPatch) -> None:
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _of_another_key(path: Path, patch: pytest.MonkeyPatch) -> None:
    facts = {**key.current().facts, "target": "another"}
    shutil.move(publish("first", ONE, current=Key(facts)), path)


def _cut_off(path: Path, patch: pytest.MonkeyPatch) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _changed(path: Path, patch: pytest.MonkeyPatch) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _piped(path: Path, patch: pytest.MonkeyPatch) -> None:
    path.unlink()
    os.mkfifo(path)


DOUBTS = {
    "empty": lambda path, patch: path.write_bytes(b""),
    "cut off": _cut_off,
    "changed": _changed,
    "another kind": lambda path, patch: path.write_bytes(b"\x7fELF" + bytes(5000)),
    "another key": _of_another_key,
    "another user's": _as_another_user,
    "others may write it": lambda path, patch: path.chmod(0o622),
    "others may write the folder": lambda path, patch: path.parent.chmod(0o777),
    "a link": _linked_to,
    "a pipe": _piped,
    "gone": lambda path, patch: path.unlink(),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_what_cannot_be_trusted_is_not_loaded(room: Path, doubt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish("first", ONE)
    DOUBTS[doubt](path, monkeypatch)
    assert found("one") is None


@pytest.mark.parametrize("doubt", ["empty", "cut off", "changed", "another kind", "another key"])
def test_what_cannot_be_trusted_is_built_again(room: Path, doubt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    current, path = key.current(), publish("first", ONE)
    image_files.note(image_files.COMPLETE, current, room)
    DOUBTS[doubt](path, monkeypatch)
    assert found("one") is None
    assert image_files.state(current, room) is None
    assert path.name in "".join(store.troubles())
    publish("first", ONE)
    assert found("one") == 5


def test_memory_that_cannot_be_run_means_no_library(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    current = key.current()
    publish("first", ONE)
    image_files.note(image_files.COMPLETE, current, room)
    monkeypatch.setattr(mapping, "_maps", lambda *given: False)
    monkeypatch.setattr(mapping._library(), "mprotect", lambda *given: -1)
    assert found("one") is None
    assert "executable" in "".join(store.troubles())
    assert image_files.state(current, room) is not None  # to build it again would change nothing


def test_a_process_that_native_code_does_not_fit_has_none(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> Key:
        raise key.ImageError("no native code for this process")

    publish("first", ONE)
    monkeypatch.setattr(key, "current", refused)
    assert found("one") is None
    assert "no native code" in "".join(store.troubles())


@pytest.mark.parametrize("setting", ["0", "/proc/nowhere"])
def test_nothing_is_kept_where_nobody_wants_it(room: Path, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", setting)
    assert image_files.folder() is None
    assert store.address("one") is None


# ------------------------------------------------------------------ the package's


def test_images_of_the_package_go_first(room: Path, tmp_path: Path) -> None:
    current = key.current()
    folder = tmp_path / "packaged" / current.facts["target"]
    folder.mkdir(parents=True)
    path = publish("first", ONE)
    other = Key({**current.facts, key.COMPILER: "another"})
    shutil.move(publish("first", ONE.replace("add i64 %x, 1", "add i64 %x, 2"), current=other), folder / path.name)
    image_files.forget(current, room)
    assert found("one") == 6
    assert store.parts_found() == 2


def test_images_of_the_package_for_lesser_processors_go_last(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current, lesser = key.current(), key.current().at("lesser")
    levels = processor.levels()[:1], (processor.Level("lesser", "", frozenset()),)
    monkeypatch.setattr(processor, "levels", lambda: (*levels[0], *levels[1]))
    folder = tmp_path / "packaged" / "lesser"
    folder.mkdir(parents=True)
    path = publish("first", ONE, TWO, current=lesser)
    shutil.move(path, folder / path.name)
    publish("first", ONE.replace("add i64 %x, 1", "add i64 %x, 2"))
    assert (found("one"), found("two"), store.parts_found()) == (6, 5, 2)
    assert image_files.packaged(current) == []


def test_images_of_the_package_for_others_are_left(room: Path, tmp_path: Path) -> None:
    current = key.current()
    folder = tmp_path / "packaged" / current.facts["target"]
    folder.mkdir(parents=True)
    other = Key({**current.facts, "layout": "another"})
    path = publish("first", ONE, current=other)
    shutil.move(path, folder / path.name)
    assert found("one") is None


# ------------------------------------------------------------------ threads, forks


def test_threads_find_the_same(room: Path) -> None:
    publish("first", ONE)
    publish("second", PROGRAM.replace("@outside", "@one").replace("external global i64", "global i64 7"))
    seen: list[tuple[int | None, int | None]] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        seen.append((store.address("one"), store.address("whole")))
        assert found("whole") == 36

    workers = [threading.Thread(target=work) for _ in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    later = store.address("one"), store.address("whole")
    assert {each for pair in seen for each in pair} - {None} == {*later}


@pytest.mark.parametrize("before", [True, False])
def test_children_have_the_library(room: Path, before: bool) -> None:
    publish("first", ONE)
    if before:
        assert found("one") == 5
    child = os.fork()
    if child == 0:
        os._exit(0 if found("one") == 5 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_programs_that_close_all_files_keep_the_library(room: Path) -> None:
    publish("first", ONE)
    publish("second", SECOND.replace("@tripled", "@one"))
    text = (
        "import os\nfrom engine.fuser.library import store\nimport ctypes\n"
        "call = lambda name: ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(store.address(name))(4)\n"
        "assert store.parts_found() == 2\nos.closerange(3, 100)\n"
        "assert call('one') == 5 and call('of_first') == 5\nprint('sound', flush=True)\n"
    )
    environment = {**os.environ, "TSREPL_COMPILE": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True, env=environment)
    assert told.stdout == "sound\n"


SERVED = """
import sys
import engine.torch as torch
torch.ones(3) + 1
before = {*sys.modules}
from engine.fuser.library import store
assert store.address("one") is not None
print(*sorted({*sys.modules} - before), sep="\\n")
"""


def test_the_library_is_served_without_the_compiler(room: Path) -> None:
    publish("first", ONE)
    environment = {**os.environ, "TSREPL_COMPILE": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", SERVED], check=True, capture_output=True, text=True, env=environment)
    loaded = {*told.stdout.split()}
    makers = {f"engine.fuser.library.{name}" for name in ("building", "linking", "parts", "elf", "macho")}
    assert not loaded & {"llvmlite", "ctypes", "subprocess", *makers}
    assert not [name for name in loaded if name.startswith(("llvmlite", "engine.fuser.groups", "engine.fuser.scalars"))]
    assert not loaded & {"engine.fuser.backend.machine", "engine.fuser.backend.to_llvm"}
    assert len([name for name in loaded if name.startswith(("engine", "tsrepl"))]) <= 12


def test_an_unfinished_file_of_a_part_is_none(room: Path) -> None:
    path = publish("first", ONE)
    path.rename(path.with_name(f"{path.stem}.abc{private_files.UNFINISHED}"))
    assert found("one") is None
