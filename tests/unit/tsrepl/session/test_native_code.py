"""`tsrepl cache` and `tsrepl warm`: what is kept on disk, as tables and as data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.executor.calls import warming
from engine.fuser.backend import kernel_cache
from engine.fuser.library import image_files, key, parts
from engine.fuser.library.parts import Part
from tsrepl.cli import main
from tsrepl.session.failures import guarded
from tsrepl.session.native_code import FOUND, cache, warm
from tsrepl.session.replies import DataReply, ErrorReply, Reply, ReportReply, TextReply

ONE = "define i64 @one(i64 %x) {\n  %r = add i64 %x, 1\n  ret i64 %r\n}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kernels, which is empty, and a library of two small parts."""
    key.current()
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    both = Part("first", lambda: [ONE]), Part("second", lambda: [ONE.replace("@one", "@two")])
    monkeypatch.setattr(parts, "PARTS", both)
    return tmp_path / "kernels"


def data_of(replies: Iterable[Reply]) -> Any:
    (reply,) = replies
    assert isinstance(reply, DataReply)
    return reply.data


def listed() -> dict[str, str]:
    """What is said of each part."""
    (reply,) = cache("list")
    assert isinstance(reply, ReportReply)
    return {row[0]: row[-1] for row in reply.sections[0].rows}


def heading() -> str:
    (reply,) = cache("list")
    assert isinstance(reply, ReportReply)
    return reply.sections[0].heading


def test_warming_builds_what_is_missing() -> None:
    level = key.current().facts["target"]
    assert heading() == f"the library of operators for {level}: not built"
    (reply,) = warm()
    assert isinstance(reply, TextReply) and reply.text.startswith(f"2 parts of the library of operators for {level}")
    assert heading().endswith(": complete")
    assert listed() == {"first": "", "second": ""}


def test_warming_tells_programs_the_same(folder: Path) -> None:
    told = data_of(warm(as_data=True))
    assert [(each["part"], Path(each["file"]).parent) for each in told["parts"]] == [
        ("first", folder / "library"), ("second", folder / "library")
    ]  # fmt: skip


def _broken() -> Iterator[str]:
    yield "no module of LLVM"


def test_what_cannot_be_built_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PARTS", (Part("first", lambda: [ONE]), Part("second", _broken)))
    (reply,) = warm()
    assert isinstance(reply, ErrorReply) and "cannot be built" in reply.message
    assert "failed at second" in heading()
    assert listed() == {"first": ""}


def test_images_that_are_stale_or_broken_say_why() -> None:
    [*warm()]
    room = image_files.folder()
    assert room is not None
    first, second = image_files.kept(room)
    first.path.write_bytes(first.path.read_bytes()[:-1])
    other = key.Key({**key.current().facts, "sources": "others"})
    os.rename(second.path, image_files.path_of("second", other, room))
    assert "another key" in listed()["second"]
    assert "not as it was written" in listed()["first"]
    told = data_of(cache("list", as_data=True))["library"]["images"]
    assert [bool(each["broken"]) for each in told] == [True, True]


def test_images_of_other_sources_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    [*warm()]
    other = key.Key({**key.current().facts, "sources": "others", "target": "another"})
    monkeypatch.setattr(key, "current", lambda: other)
    assert {*listed().values()} == {"other target, sources"}


def test_verifying_finds_what_is_not_as_it_was_written(folder: Path) -> None:
    [*warm()]
    kernel_cache.store(kernel_cache.key_of(["a kernel"]), b"code")
    (reply,) = cache("verify")
    assert isinstance(reply, TextReply) and reply.text == "3 files, all as they were written"
    for path in folder.glob("*.kernel"):
        path.write_bytes(path.read_bytes() + b"!")
    (reply,) = cache("verify")
    assert isinstance(reply, ReportReply) and reply.status == FOUND
    assert data_of(cache("verify", as_data=True))["files"] == 3
    kernel_cache.store(kernel_cache.key_of(["a kernel"]), b"code")
    assert data_of(cache("verify", as_data=True))["broken"] == []


def test_plans_and_kernels_are_listed_by_kind() -> None:
    sizes = {"plan": 100, "kernel": 20, "code": 3000, "": 7}
    for kind, size in sizes.items():
        for number in range(2):
            kernel_cache.store(kernel_cache.key_of((str(number),), kind), bytes(size))
    (reply,) = cache("list")
    assert isinstance(reply, ReportReply)
    rows = {row[0]: row[1] for row in reply.sections[1].rows}
    assert rows == {kernel_cache.KINDS[kind]: "2" for kind in sizes}
    kinds = data_of(cache("list", as_data=True))["kernels"]["kinds"]
    head = kinds["others"]["size"] // 2 - sizes[""]
    for kind, size in sizes.items():
        assert kinds[kind or "others"] == {"files": 2, "size": 2 * (size + head)}
    assert data_of(cache("verify", as_data=True))["broken"] == []
    [*cache("clear")]
    assert data_of(cache("list", as_data=True))["kernels"]["kinds"] == {}


def test_a_call_is_warmed_as_it_is_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("def main(x: Tensor):\n    print('called')\n    return x.exp() * 2\n")
    library, reply = warm(str(path), None, ["ones(3)"], grad=False)
    assert isinstance(library, TextReply) and isinstance(reply, ReportReply)
    assert reply.sections[0].heading.startswith("main: 1 group, 1 kernel, there after ")
    assert [each.heading for each in reply.sections[1:]] == [warming.IN_NO_ARCHIVE]
    assert capfd.readouterr() == ("called\n", "")
    told = data_of(warm(str(path), None, ["ones(3)"], grad=False, as_data=True))["call"]
    assert (told["function"], told["groups"], told["notes"]) == ("main", 1, [warming.IN_NO_ARCHIVE])
    assert capfd.readouterr() == ("", "called\n"), "what the program prints is no JSON"


def test_a_call_needs_a_program() -> None:
    replies = [*guarded(warm(None, "forward", ["ones(3)"]))]
    assert isinstance(replies[-1], ErrorReply) and "tsrepl warm FILE" in replies[-1].hints[0]


def test_in_mode_off_nothing_is_compiled(tmp_path: Path, without_machine_code: None) -> None:
    (reply,) = warm(str(tmp_path / "program.py"), None, ["ones(3)"])
    assert isinstance(reply, TextReply) and reply.text.startswith(warming.OFF)
    assert heading().endswith(": not built")


def test_clearing_removes_all_that_is_ours(folder: Path) -> None:
    [*warm()]
    kernel_cache.store(kernel_cache.key_of(["a kernel"]), b"code")
    (folder / "thesis.tar").write_text("not ours")
    size = data_of(cache("list", as_data=True))
    freed = data_of(cache("clear", as_data=True))["freed"]
    assert freed >= size["kernels"]["size"] + sum(each["size"] for each in size["library"]["images"])
    assert listed() == {} and kernel_cache.entries() == []
    assert {path.name for path in folder.iterdir()} == {"library", "thesis.tar"}


COMMANDS: list[Callable[[], Iterable[Reply]]] = [warm, *(lambda what=what: cache(what) for what in ("list", "clear"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_where_nothing_is_kept_commands_say_so(
    command: Callable[[], Iterable[Reply]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", "0")
    (reply,) = guarded(command())
    assert isinstance(reply, ErrorReply) and reply.hints


@pytest.mark.parametrize(
    ("words", "said"),
    [(["cache"], "not built"), (["warm"], "2 parts"), (["cache", "list", "--json"], '"images"'),
     (["cache", "verify"], "0 files"), (["cache", "clear"], "freed")],
)  # fmt: skip
def test_the_command_line_has_both(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert said in capfd.readouterr().out
