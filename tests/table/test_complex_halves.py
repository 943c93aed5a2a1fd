"""Every operator of complex numbers: it looks at their imaginary parts or refuses them, and of complex32 it gives what
it gives of complex64, rounded, or refuses that."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError
from tests.table.optional_arguments import every_call
from tests.table.samples import copied, mapped, tensors_in

NARROW = {xp.COMPLEX64: xp.COMPLEX32, xp.COMPLEX128: xp.COMPLEX32, xp.FLOAT32: xp.FLOAT16, xp.FLOAT64: xp.FLOAT16}
BY_ELEMENT_SIZE = {
    "aten::view.dtype", "aten::view_copy.dtype", "aten::element_size", "prim::itemsize", "prim::nbytes"
}  # fmt: skip
"""Operators whose results depend on how many bytes an element has."""
BELOW = {
    "aten::_group_norm", "aten::_alignments", "aten::_fake_quantize", "aten::_fake_quantize_channels",
    "aten::_roi_align_backward",
    *(f"aten::upsample_{form}_backward" for form in ("linear1d", "bilinear2d", "trilinear3d")),
}  # fmt: skip
"""Operators that public ones call, which refuse complex numbers before."""
REFUSALS = ("ComplexHalf", "complex32", "Low precision", "types other than float and double", "data type for einsum")
ROUNDING = 2e-2


def _complex(array: Any) -> Any:
    """Numbers on no axis, which both dtypes hold."""
    if array.dtype not in xp.FLOATS:
        return array
    return (array - 0.25j * array).astype(np.complex64).astype(xp.COMPLEX32).astype(np.complex64)


def _narrow(array: Any) -> Any:
    return array.astype(xp.COMPLEX32) if array.dtype in xp.COMPLEX else array


def _as_numbers(tensor: Tensor) -> Any:
    array = tensor.array
    return array.astype(np.complex64) if array.dtype in xp.COMPLEX else array.astype(np.float64)


def _difference(op: Op, args: list[Any]) -> str:
    """What is wrong with the operator in complex32; "" if nothing is, or if it takes no complex numbers."""
    given = mapped(args, _complex)
    if not any(t.array.dtype in xp.COMPLEX for t in tensors_in(given)):
        return ""
    narrow = mapped(given, _narrow)
    try:
        expected = op.run(*copied_all(given))
    except np.exceptions.ComplexWarning:
        return "imaginary parts are dropped"
    except Exception:  # the sample does not fit complex numbers
        return ""
    try:
        found = op.run(*copied_all(narrow))
    except OperatorError as error:
        return "" if op.nondeterministic or any(words in error.message for words in REFUSALS) else f"refused: {error}"
    if isinstance(found, (bool, int, float, complex)):
        return "" if "type" in op.name or np.allclose(found, expected, rtol=ROUNDING) else f"{found} for {expected}"
    if op.nondeterministic:
        return ""
    for one, other in zip(tensors_in(found), tensors_in(expected), strict=True):
        if one.array.dtype not in (other.array.dtype, NARROW.get(other.array.dtype)):
            return f"{one.dtype} for {other.dtype}"
        if one.shape != other.shape or one.stride() != other.stride():
            return f"{one.shape} {one.stride()} for {other.shape} {other.stride()}"
        if not np.allclose(_as_numbers(one), _as_numbers(other), rtol=ROUNDING, atol=ROUNDING, equal_nan=True):
            return f"{one} for {other}"
    return ""


def copied_all(args: list[Any]) -> list[Any]:
    return [copied(value) for value in args]


OPERATORS = [op for op in table.entries() if op.qualified_name not in BY_ELEMENT_SIZE | BELOW and every_call(op)]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.qualified_name)
def test_numbers_of_two_halves(op: Op) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrong = [found for args in every_call(op) if (found := _difference(op, args))]
    assert not wrong, wrong[0]


def test_the_law_sees_complex_operators() -> None:
    taken = [op.qualified_name for op in OPERATORS if _takes_complex_numbers(op)]
    assert len(taken) > 300
    assert {"aten::mul.Tensor", "aten::any", "aten::matmul", "aten::cumsum"} <= {*taken}


def _takes_complex_numbers(op: Op) -> bool:
    for args in every_call(op):
        given = mapped(args, _complex)
        try:
            found = op.run(*copied_all(given))
        except Exception:
            continue
        if any(t.array.dtype in xp.COMPLEX for t in (*tensors_in(given), *tensors_in(found))):
            return True
    return False
