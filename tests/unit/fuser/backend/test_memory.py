"""Memory is kept where glibc is asked to, and nobody has set how."""

from __future__ import annotations

import ctypes
import sys

import pytest

from engine.fuser.backend import memory


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="there is no glibc"
)
def test_glibc_keeps_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in memory._VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert memory.keep_freed.__wrapped__()


def test_what_users_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000")
    assert not memory.keep_freed.__wrapped__()
