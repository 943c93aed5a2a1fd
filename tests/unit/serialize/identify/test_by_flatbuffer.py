"""Mobile flatbuffers: what is in one decides what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.archive import load_archive
from engine.serialize.identify.identify import identify
from tests.unit.serialize.mobile.flatbuffer_maker import program
from tests.unit.serialize.model_files import ARCHIVES, FILES, without_code

MOBILE = (ARCHIVES / "mobile.ff").read_bytes()


def test_with_code() -> None:
    found = identify(ARCHIVES / "mobile.ff")
    assert (found.kind, found.is_program, found.has_weights) == ("mobile-flatbuffer", True, False)
    assert dict(found.facts) == {
        "format": "flatbuffer", "version": "9", "code": "2 records, 3,456 bytes", "tensors": "5 records, 68 bytes",
        "methods": "4", "extra files": "notes.txt",
    }  # fmt: skip


def test_without_code(tmp_path: Path) -> None:
    path = tmp_path / "m.ptl"
    path.write_bytes(without_code(MOBILE))
    found = identify(path)
    assert (found.kind, found.is_program) == ("mobile-bytecode-only", True)
    assert f"list its instructions: tsrepl show --bytecode {path}" in found.advice


def test_nothing_but_tensors() -> None:
    found = identify(FILES / "mobile_weights.ff")
    assert (found.kind, found.is_program, found.has_weights) == ("mobile-weights", False, True)


@pytest.mark.parametrize("data", [b"\x1c\0\0\0PTMFabc", MOBILE[:3000], program([], bytecode_version=7)])
def test_what_is_damaged_says_so(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.ff"
    path.write_bytes(data)
    found = identify(path)
    assert (found.kind, found.title) == ("damaged", "a mobile program as a flatbuffer that is damaged or cut off")
    with pytest.raises(ArchiveError, match="the flatbuffer is refused"):
        load_archive(path)
