"""The tutorial: each line behind a prompt is typed, and what stands below it is answered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.house.typed_pages import replayed, typed
from tsrepl.session.session import Session

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "tutorial.md"
_TIMES: Final = re.compile(r"\d+(\.\d+)? (ns|µs|ms|s)\b")


def test_the_tutorial_says_what_is_answered(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, without_machine_code: None
) -> None:
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text(encoding="utf-8")
    found = replayed(text, Session())
    if request.config.getoption("--update-cases"):
        PAGE.write_text(found, encoding="utf-8")
        text = found
    assert _TIMES.sub("TIME", found) == _TIMES.sub("TIME", text)
    assert sum(1 for _ in typed(text)) > 15
