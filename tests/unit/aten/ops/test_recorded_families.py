"""Tensor operators against recorded results.

`recorded_families.txt` and `recorded_more.txt` hold lines `expression => text`: the text is what PyTorch 2.13
prints of the expression's value.  Elements are printed with four digits, which is what is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor, tensor
from engine.lang import scalars

RECORDED = [
    line.split(" => ", 1)
    for name in ("recorded_families.txt", "recorded_more.txt")
    for line in Path(__file__).with_name(name).read_text().splitlines()
]


class Functions:
    """Operators as functions: `F.exp(x)`."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: call(name, args, kwargs)


def names() -> dict[str, Any]:
    ramp = np.arange(24, dtype=np.float32)
    return {
        "F": Functions(), "F64": scalars.float64, "F32": scalars.float32, "I64": scalars.int64,
        "x": tensor([[0.5, -1.25, 2.0], [0.1, 0.75, -0.3]]), "y": tensor([[1.5, 0.5, -0.5], [2.0, -1.0, 0.25]]),
        "i": tensor([[1, 2, 3], [4, 5, 6]]), "p": tensor([[1.0, 1.5, 2.0], [3.0, 4.0, 5.0]]),
        "w": tensor(ramp.reshape(2, 4, 3) / np.float32(10)), "q": tensor(ramp[:16].reshape(1, 4, 2, 2)),
        "j": tensor([0, 1]), "k": tensor([[0, 1, 0], [1, 1, 0]]),
        "h": tensor([0.1, 0.2], dtype=scalars.float16), "b": tensor([0.1, 0.2], dtype=scalars.bfloat16),
        "c": tensor([1 + 2j, -1j]), "u": tensor([1, 5], dtype=scalars.uint8),
        "z": tensor(2.5, dtype=scalars.float64), "s": tensor([0.5, -1.0, 0.25, 2.0, 1.5, -0.75, 0.0, 1.0]),
        "a": tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
    }  # fmt: skip


def shown(value: Any) -> str:
    if isinstance(value, (tuple, list)) and (not value or isinstance(value[0], Tensor)):
        return "(" + "; ".join(map(shown, value)) + ")"
    if isinstance(value, list):
        return "(" + "; ".join(map(str, value)) + ")"
    return repr(value).replace("\n", " ")


@pytest.mark.parametrize(("expression", "expected"), RECORDED, ids=[e for e, _ in RECORDED])
def test_result_is_the_recorded_one(expression: str, expected: str) -> None:
    assert shown(eval(expression, names())) == expected
