"""Warnings of programs: they come from the line of the program, once, or as often as Python's filters say."""

from __future__ import annotations

import io
import warnings
from itertools import count
from typing import Any

import pytest

import engine.torch as torch

TEXT = """
def inner(n: int):
    warnings.warn("careful")
    return n

def f(n: int):
    for i in range(n):
        warnings.warn("careful")
    warnings.warn("careful " + str(n), stacklevel=3)
    return inner(n) + inner(n)
"""
PLACES = [("careful", 8), ("careful 3", 9), ("careful", 3)]
_NUMBERS = count()


@pytest.fixture
def program(mode: str) -> tuple[Any, str]:
    """The program, with a file's name that no other test has, since places that warned are remembered."""
    name = f"warned_{next(_NUMBERS)}.py"
    unit: Any = torch.jit.CompilationUnit()
    unit.define(TEXT, name)
    return unit.f, name


def heard(call: Any, action: Any, calls: int = 3) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        for _ in range(calls):
            call(3)
    return found


def test_they_tell_the_line_and_come_once(program: Any) -> None:
    f, name = program
    found = heard(f, "default")
    assert [(str(each.message), each.lineno) for each in found] == PLACES
    assert {each.filename for each in found} == {name}


@pytest.mark.parametrize(("action", "times"), [("always", 3 * (3 + 1 + 2)), ("ignore", 0), ("once", 2)])
def test_filters_decide_how_often(program: Any, action: str, times: int) -> None:
    assert len(heard(program[0], action)) == times


def test_an_error_that_a_filter_makes_of_one_ends_the_program(program: Any) -> None:
    with pytest.raises(Exception, match="careful"):
        heard(program[0], "error")


def test_those_of_archives_tell_the_authors_line(program: Any) -> None:
    f, name = program
    file = io.BytesIO()
    torch.jit.save(f, file)
    file.seek(0)
    found = heard(torch.jit.load(file), "default")
    assert [(each.lineno, each.filename) for each in found] == [(line, name) for _, line in PLACES]
