"""Scalar expressions become calls on arrays; what concerns only numbers stays Python."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.kernels.expression import array_code, compile_expression


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("self + alpha * other", "add(self, mul(alpha, other))"),
        ("where(self > 0, self, (a * b) * self)", "where(gt(self, 0), self, mul(a * b, self))"),
        ("-self", "neg(self)"),
        ("1 / sqrt(self)", "div(1, sqrt(self))"),
    ],
)
def test_operators_on_arrays_become_calls(text: str, code: str) -> None:
    assert array_code(text, {"self", "other"}) == code


def test_known_units_disappear() -> None:
    assert array_code("self + alpha * other", {"self", "other"}, {"alpha": 1}) == "add(self, other)"


def test_numbers_do_not_decide_the_dtype() -> None:
    compute = compile_expression("self * (a * b)", ["self", "a", "b"], {"self"})
    assert compute(np.ones(2, np.float32), 2.0, 3.0).dtype == np.float32
