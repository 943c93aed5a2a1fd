"""Processes that fill, read, corrupt and clear one store at once: a little of `tools/stress_store.py`."""

from __future__ import annotations

import pytest

from tools.stress_store import stress


@pytest.mark.slow
def test_no_process_gets_a_wrong_value_crashes_or_hangs(capfd: pytest.CaptureFixture[str]) -> None:
    assert stress(processes=32, at_once=4, seconds=120, seed=1) == 0, capfd.readouterr().out
    assert "32 processes" in capfd.readouterr().out
