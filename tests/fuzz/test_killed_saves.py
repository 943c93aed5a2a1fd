"""A short run of the killer of saves."""

from __future__ import annotations

from pathlib import Path

from .killed_saves import kill_saves


def test_a_killed_save_loses_nothing(tmp_path: Path) -> None:
    kill_saves(tmp_path, count=15, seed=1)
