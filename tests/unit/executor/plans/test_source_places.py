"""Places of programs, as short as they can be."""

from __future__ import annotations

from engine.executor.plans.source_lines import SourceLine
from engine.executor.plans.source_places import Places, full_place

HERE = [SourceLine("/home/me/model.py", number, "") for number in (7, 3, 4)]
THERE = SourceLine("<entry 2>", 1, "")
FORMULA = SourceLine("<gradient of aten::mean>", 2, "")


def test_one_file_goes_without_saying() -> None:
    places = Places([*HERE, FORMULA, None])
    assert places.text(HERE[0]) == "line 7"
    assert places.span(HERE) == "lines 3–7"
    assert places.span(HERE[:1]) == "line 7"
    assert places.text(None) == ""


def test_several_files_are_named_without_their_folders() -> None:
    places = Places([*HERE, THERE])
    assert places.text(THERE) == "entry 2:1"
    assert places.span([THERE, *HERE]) == "entry 2:1, model.py:3–7"


def test_lines_of_formulas_are_called_by_these() -> None:
    assert Places(HERE).text(FORMULA) == full_place(FORMULA) == "gradient of mean"
    assert Places(HERE).span([FORMULA, SourceLine(FORMULA.file, 3, "")]) == "gradient of mean"
    assert full_place(SourceLine("<string>", 3, "")) == "line 3"
