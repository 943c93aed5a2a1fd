"""Dtypes and arguments that operators refuse, and the kind of error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten import calls
from engine.aten.tensor import Tensor, tensor
from engine.lang.errors import OperatorError

REAL = tensor([1.5, 2.5])
WHOLE = tensor([1, 2])
TRUTH = tensor([True, False])
COMPLEX = tensor(np.array([1 + 2j, 3j], np.complex64))


def refused(name: str, *args: Any, **kwargs: Any) -> OperatorError:
    with pytest.raises(OperatorError) as caught:
        calls.call(name, args, kwargs)
    return caught.value


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("floor", (TRUTH,), "\"floor_vml_cpu\" not implemented for 'Bool'"),
        ("ceil", (COMPLEX,), "ceil is not supported for complex inputs"),
        ("elu", (WHOLE,), "\"elu_cpu\" not implemented for 'Long'"),
        ("frac", (WHOLE,), "\"frac_cpu\" not implemented for 'Long'"),
        ("lt", (COMPLEX, REAL), "\"lt_cpu\" not implemented for 'ComplexFloat'"),
        ("fmod", (COMPLEX, 2), "\"fmod_cpu\" not implemented for 'ComplexFloat'"),
        ("atan2", (COMPLEX, COMPLEX), "\"atan2_cpu\" not implemented for 'ComplexFloat'"),
        ("clamp", (COMPLEX, 0), "clamp is not supported for complex types"),
        ("cumsum_", (TRUTH, 0), "\"cumsum_out_cpu\" not implemented for 'Bool'"),
        ("silu_", (WHOLE,), "\"silu_cpu\" not implemented for 'Long'"),
        ("bincount", (REAL,), "\"bincount_cpu\" not implemented for 'Float'"),
        ("sign", (COMPLEX,), "torch.sign is not intended to support complex numbers"),
    ],
)
def test_dtypes_without_code_are_not_implemented(name: str, arguments: tuple[Any, ...], words: str) -> None:
    error = refused(name, *arguments)
    assert isinstance(error, NotImplementedError)
    assert words in str(error)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("maximum", (COMPLEX, COMPLEX), "maximum not implemented for complex tensors."),
        ("sort", (COMPLEX,), "Sort does not support complex dtypes on CPU"),
        ("argmax", (TRUTH,), "argmax(): does not support bool input"),
        ("abs_", (COMPLEX,), "In-place abs is not supported for complex tensors."),
        ("sub", (WHOLE, TRUTH), "Subtraction, the `-` operator, with a bool tensor is not supported."),
        ("neg", (TRUTH,), "on a bool tensor is not supported. If you are trying to invert a mask"),
        ("add", (REAL, REAL, 1j), "For non-complex input tensors, argument alpha must not be a complex number."),
        ("lerp", (REAL, tensor(np.ones(2)), 0.5), "expected dtype float for `end` but got dtype double"),
        ("addcdiv", (WHOLE, WHOLE, WHOLE), "Integer division with addcdiv is no longer supported"),
        ("celu", (REAL, 0.0), "alpha cannot be 0 for CELU"),
        ("float_power_", (REAL, 2), "the base given to float_power_ has dtype Float"),
        ("isin", (TRUTH, TRUTH), "Unsupported input type encountered for isin(): Bool"),
        ("pow", (tensor(np.array([2], np.uint8)), -2), "Integers to negative integer powers are not allowed."),
    ],
)
def test_other_refusals_are_runtime_errors(name: str, arguments: tuple[Any, ...], words: str) -> None:
    if name == "add":
        error = refused(name, *arguments[:2], alpha=arguments[2])
    else:
        error = refused(name, *arguments)
    assert isinstance(error, RuntimeError)
    assert not isinstance(error, (NotImplementedError, ValueError))
    assert words in str(error)


@pytest.mark.parametrize("name", ["add", "fmod", "bitwise_and", "floor_divide", "hypot", "atan2"])
def test_shapes_that_do_not_fit_are_named_before_dtypes_and_are_no_value_errors(name: str) -> None:
    a, b = tensor(np.ones((2, 3), np.float32)), tensor(np.ones(2, np.float32))
    error = refused(name, a, b)
    assert "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1" in str(error)
    assert not isinstance(error, (ValueError, NotImplementedError))


def test_in_place_cumulation_keeps_the_dtype() -> None:
    assert "Bad in-place call: input tensor dtype float and output tensor dtype double" in str(
        refused("cumsum_", tensor([1.0]), 0, dtype=7)
    )


def test_small_integers_wrap_with_their_factor() -> None:
    bytes_ = tensor(np.array([1, 2], np.uint8))
    assert calls.call("add", (bytes_, bytes_), {"alpha": -1}).array.tolist() == [0, 0]
    total: Tensor = calls.call("index_add", (bytes_, 0, tensor([0]), tensor(np.array([3], np.uint8))), {"alpha": -1})
    assert total.array.tolist() == [254, 2]
