"""Modules that are loaded late, or left out, and expressions that are compiled late."""

import re
import subprocess
import sys

import pytest

from engine.lang.deferred import pattern_of

COMPILE = re.compile


def test_what_is_left_out_is_there_later() -> None:
    program = """if True:
        import sys
        from engine.lang.deferred import left_out
        with left_out("ssl"):
            import asyncio.base_events as users
        assert "ssl" not in sys.modules and users.ssl is None
        import ssl
        with left_out("ssl"):
            import ssl as again
        print(again is ssl)
    """
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"True\n"


def test_expressions_are_compiled_with_their_first_text(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(re, "compile", lambda *made: compiled.append(made) or COMPILE(*made))
    word = pattern_of(r"(a+)B", re.IGNORECASE)
    assert not compiled
    assert (found := word.match("aab")) is not None
    assert found[1] == "aa"
    assert word.fullmatch("aabc") is None
    assert word.match("b") is None
    assert len(compiled) == 2  # of two methods
