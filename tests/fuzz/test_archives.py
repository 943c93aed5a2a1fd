"""A short run of the fuzzer of archives, the same each time."""

from __future__ import annotations

import pytest

from .archives import fuzz, outcome, own_archives

ARCHIVES = own_archives()


def test_the_archives_themselves_load() -> None:
    assert [outcome(data) for data in ARCHIVES] == ["loaded"] * len(ARCHIVES)


def test_mutants_are_loaded_or_refused() -> None:
    report = fuzz(ARCHIVES, seed=7, count=500)
    assert report.broken == []
    assert report.counts.total() == 500
    assert report.counts["refused"] > 100
    assert report.placed >= 0.95, report.without_place


def test_the_fuzzer_tells_what_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> object:
        raise KeyError("oops")

    monkeypatch.setattr("engine.serialize.archive.load_archive", broken)
    report = fuzz(ARCHIVES, seed=7, count=3)
    assert len(report.broken) == 3
    assert "KeyError" in report.broken[0]
