"""Images that a wheel carries: the package finds them, without a folder of the user's and without a compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.fuser.backend.symbols import ALLOCATE
from engine.fuser.library import key, parts, processor, store
from tests.unit.fuser.library.test_store import ONE, found
from tools.build_wheel import make_images


def test_the_package_finds_what_the_wheel_carries(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PARTS", (parts.PARTS[0], parts.Part("first", lambda: [ONE])))
    folder = tmp_path / "packaged"
    made = make_images(folder)
    assert {path.parent for path in made} == {folder / processor.level().name}
    assert (folder / key.SOURCES).read_text().strip() == key.current().facts["sources"]
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", "0")
    monkeypatch.setattr(store, "_STORE", store._Store())  # of a process that has not looked yet
    assert found("one") == 5
    assert store.address(ALLOCATE) is not None
    assert store.troubles() == ()
