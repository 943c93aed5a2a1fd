"""A folder of images for each test, and a process that has not looked for any."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.fuser.library import beside, key, store


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of images, which is empty; nothing is built beside the test."""
    key.current()
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr(key, "PACKAGED", tmp_path / "packaged")
    monkeypatch.setattr(store, "_STORE", store._Store())
    monkeypatch.setattr(store, "INTERVAL", 0.0)
    monkeypatch.setattr(beside, "_STATE", beside._State(has_asked=True))
    return tmp_path / "kernels" / "library"
