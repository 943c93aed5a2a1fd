"""The law of random numbers: a seed gives PyTorch's numbers, of all kinds, dtypes and sizes.

`peer/random_numbers.py` writes what is compared with.
"""

from __future__ import annotations

import json

import pytest

import engine.torch as torch
from tests.table.random_calls import DTYPES, EXPRESSIONS, RECORDED, SIZES, drawn

WANTED = json.loads(RECORDED.read_text(encoding="utf-8"))
EPSILON = {"float64": 1e-12, "float32": 4e-6}
"""What functions of mathematical libraries and sums may differ by; half types have none to spare."""


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_seed_gives_the_numbers_of_pytorch(expression: str, dtype: str) -> None:
    for size in SIZES:
        wanted, found = WANTED[f"{expression}|{dtype}|{size}"], drawn(torch, expression, dtype, size)
        if wanted is None or found is None:
            assert found == wanted
            continue
        allowed = EPSILON.get(found[0], 0.0)
        assert found[0] == wanted[0]
        assert found[1:4] == pytest.approx(wanted[1:4], rel=allowed, abs=allowed * size)
        assert found[4] == wanted[4]
