"""A flatbuffer as a container of records."""

from __future__ import annotations

import io
from typing import Any

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.mobile.file import holds_code, is_flatbuffer, open_program
from engine.serialize.mobile.records import root_of, version_of
from tests.unit.serialize.mobile.flatbuffer_maker import program
from tests.unit.serialize.model_files import ARCHIVES, without_code


def test_records_lie_in_the_file_as_they_are() -> None:
    container = open_program(ARCHIVES / "mobile.ff")
    assert is_flatbuffer(container) and holds_code(container)
    assert set(container.names()) == {
        "code/__torch__.py", "code/__torch__/torch/nn/modules/linear.py", "extra/notes.txt",
        "data/0", "data/1", "data/2", "data/3", "data/4",
    }  # fmt: skip
    assert container.read("extra/notes.txt") == b"hello"
    assert container.read("code/__torch__.py").startswith(b"class Model(Module):")
    assert bytes(container.view("data/0")) == container.read("data/0")
    container.check()


def test_one_without_code() -> None:
    container = open_program(io.BytesIO(without_code((ARCHIVES / "mobile.ff").read_bytes())))
    assert is_flatbuffer(container) and not holds_code(container)


def test_a_zip_archive_is_opened_as_one() -> None:
    container = open_program(ARCHIVES / "function.pt")
    assert not is_flatbuffer(container) and "data.pkl" in container.names()


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"extra_files": [{"name": "../a", "content": b""}]}, "leads outside"),
        ({"extra_files": [{"name": "/a", "content": b""}]}, "leads outside"),
        ({"extra_files": [{"name": "a\\b", "content": b""}]}, "leads outside"),
        ({"extra_files": [{"content": b""}]}, "leads outside"),
        ({"extra_files": [{"name": "a\n", "content": b""}]}, "do not print"),
        ({"extra_files": [{"name": b"\xff", "content": b""}]}, "not UTF-8"),
        ({"extra_files": [{"name": "a", "content": b""}] * 2}, "two parts are named 'extra/a'"),
        ({"extra_files": [{"name": "a", "content": b""}, {"name": "a/b", "content": b""}]}, "a record and a folder"),
        ({"jit_sources": [{"name": "../os", "content": b""}]}, "code is said to be"),
        ({"jit_sources": [{"name": "", "content": b""}]}, "code is said to be"),
        ({"storage_data_size": 3}, "0 storages and speaks of 3"),
    ],
)
def test_records_that_cannot_be(parts: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason) as caught:
        open_program(io.BytesIO(program([], **parts)))
    assert caught.value.offset is not None


@pytest.mark.parametrize("version", [0, 8, 11, 0xFFFFFFFF])
def test_versions_that_nobody_knows(version: int) -> None:
    container = open_program(io.BytesIO(program([], bytecode_version=version)))
    with pytest.raises(ArchiveError, match=f"version {version}, and versions 9 to 10"):
        version_of(root_of(container))
