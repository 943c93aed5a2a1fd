"""Scalar bodies: dtype rules around an expression."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.dispatch.compile import array_kernel
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.scalar import pointwise_kernels
from engine.lang.errors import OperatorError, SchemaError

UNARY = "aten::probe(Tensor self) -> Tensor"
BINARY = "aten::probe(Tensor self, Tensor other) -> Tensor"


@pytest.mark.parametrize(
    ("rule", "dtype", "expected"),
    [
        ("promote", np.int32, np.int32),
        ("float", np.int32, np.float32),
        ("float", np.float64, np.float64),
        ("bool", np.float32, np.bool_),
        (None, np.float16, np.float16),
    ],
)
def test_rules_decide_the_result(rule: str | None, dtype: type, expected: type) -> None:
    text = "self > 0" if rule == "bool" else "self + self"
    kernel = array_kernel(Op(UNARY, scalar=text, dtype=rule))
    assert kernel(np.ones(2, dtype)).dtype == expected


def test_a_rule_may_name_its_operands() -> None:
    kernel = array_kernel(Op(BINARY, scalar="self * other", dtype="promote: self"))
    assert kernel(np.ones(2, np.float32), np.ones(2, np.float64)).dtype == np.float32


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(SchemaError, match="no dtype rule 'floating'"):
        pointwise_kernels(Op(UNARY, scalar="-self", dtype="floating"))


def test_results_never_are_the_argument() -> None:
    array = np.ones(2, np.int64)
    assert not np.shares_memory(array_kernel(Op(UNARY, scalar="floor(self)"))(array), array)


def test_alpha_must_suit_whole_numbers() -> None:
    kernel = array_kernel(
        Op("aten::probe(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", scalar="self + alpha * other")
    )
    ones = np.ones(2, np.int64)
    assert kernel(ones, ones, 3).tolist() == [4, 4]
    with pytest.raises(OperatorError, match="alpha must not be a floating point number"):
        kernel(ones, ones, 1.5)
