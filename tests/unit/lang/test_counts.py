"""Numbers with their nouns."""

import time

import pytest

from engine.lang.counts import ago, counted


def test_one_and_many() -> None:
    assert [counted(n, "tensor") for n in (0, 1, 2, 1234)] == ["0 tensors", "1 tensor", "2 tensors", "1,234 tensors"]
    assert counted(2, "class", "classes") == "2 classes"
    assert counted(1, "class", "classes") == "1 class"


def test_times_are_said_as_people_say_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1e9)
    spans = (-3.0, 0.4, 59.9, 60.0, 7300.0, 86400.0, 400000.0)
    said = ["just now", "just now", "just now", "1 minute ago", "2 hours ago", "1 day ago", "4 days ago"]
    assert [ago(1e9 - span) for span in spans] == said
