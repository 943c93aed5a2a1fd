"""The kinds of errors that are recorded for mistakes are those of a real PyTorch."""

from __future__ import annotations

import pytest

from tests.unit.torch.mistakes import MISTAKES, answer

torch = pytest.importorskip("torch", reason="compares with a real PyTorch, which is not installed here")
pytestmark = pytest.mark.peer


def test_the_kinds_are_recorded_right() -> None:
    found = [(program, kind, answer(torch, program)[0]) for kind, program in MISTAKES]
    assert not [row for row in found if row[1] != row[2]]
