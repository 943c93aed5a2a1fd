"""A sample of the changed files at every door, and more of them where there is time."""

from __future__ import annotations

import pytest

from .hostile import DOORS, FAMILIES, outcome, own_archive, sampled, tried, warm

pytest.importorskip("resource")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    warm(place)
    return place


def findings(trials, folder):
    return [f"{trial}: {said}" for trial, said in tried(trials, folder) if said not in ("answered", "refused")]


@pytest.mark.parametrize("door", [door for door in DOORS if door != "load_weights"])
def test_the_archive_itself_is_answered(door, tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(own_archive())
    assert outcome(door, str(path)) == "answered"


@pytest.mark.parametrize("family", FAMILIES)
def test_changed_files_do_no_harm(family, folder):
    assert findings(sampled(5, 40, {family: None}), folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("door", DOORS)
def test_more_changed_files_do_no_harm(door, family, folder):
    assert findings(sampled(11, 200, {family: None}, {door: None}), folder) == []


def test_what_harms_is_found(tmp_path, monkeypatch):
    def broken(path):
        raise KeyError("oops")

    monkeypatch.setitem(DOORS, "engine.load", broken)
    (found,) = findings(sampled(5, 1, {"end": None}, {"engine.load": None}), tmp_path)
    assert "KeyError" in found
