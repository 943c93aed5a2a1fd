"""Operators, constructors and conversions give PyTorch's values, dtypes, strides and refusals.

`PEER` in the environment is an interpreter that has PyTorch; without it, this one's is taken.  `python -m
tests.peer.sweep.compare` prints the table of what differs, with more cases and other seeds.
"""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

import engine.torch
from tests.peer.sweep.answers import answers
from tests.peer.sweep.cases import chosen_cases
from tests.peer.sweep.compare import differences, peer_answers, table

PEER = os.environ.get("PEER") or (sys.executable if importlib.util.find_spec("torch") else "")
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not PEER, reason="compares with a real PyTorch, which is not installed here"),
]
MOST = {"eager": 10, "scripted": 3, "traced": 2}
"""Cases of each expression."""


@pytest.mark.parametrize("form", MOST)
def test_nothing_differs_that_is_not_written_down(form: str) -> None:
    cases = chosen_cases({form: MOST[form]})
    found = differences(cases, answers(engine.torch, cases), peer_answers(PEER, cases))
    assert not found, "\n" + table(found)
