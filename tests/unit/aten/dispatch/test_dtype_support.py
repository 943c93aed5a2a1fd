"""Dtypes and arguments that operators refuse, and the kind of error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import calls
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import OperatorError

REAL = tensor([1.5, 2.5])
WHOLE = tensor([1, 2])
TRUTH = tensor([True, False])
SHORT = tensor(np.ones((1, 1, 4), np.int32))
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
        ("softmax", (COMPLEX, 0), "\"softmax_lastdim_kernel_impl\" not implemented for 'ComplexFloat'"),
        ("softplus_backward", (WHOLE, WHOLE, 1.0, 20.0), "\"softplus_backward_cpu\" not implemented for 'Long'"),
        ("threshold_backward", (TRUTH, TRUTH, 0.1), "\"threshold_cpu\" not implemented for 'Bool'"),
        ("scatter_reduce", (COMPLEX, 0, tensor([0]), COMPLEX, "amax"), 'tensor_cpu_reduce_amax" not implemented'),
        ("conv1d", (SHORT, SHORT[:, :, :2], None, 1, 0, 2), "\"slow_conv_dilated<>\" not implemented for 'Int'"),
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
        ("fill_", (tensor(np.zeros(2, np.uint8)), -8.5), "cannot be converted to type uint8_t without overflow"),
        ("index_fill", (tensor(np.zeros(2, np.int8)), 0, tensor([0]), 300), "cannot be converted to type int8_t"),
        ("scatter", (tensor(np.zeros(2, np.int16)), 0, tensor([0]), 70000), "cannot be converted to type int16_t"),
        ("full_like", (REAL, 1e300), "cannot be converted to type float without overflow"),
        ("addr", (WHOLE.view(1, 2), tensor([1]), WHOLE), "argument beta must not be a floating point number"),
        ("soft_margin_loss", (WHOLE, WHOLE), "result type Float can't be cast to the desired output type Long"),
        ("linalg_lu_solve", (tensor([[1]]), tensor(np.ones(1, np.int32)), tensor([[1]])), "Got Long"),
        ("linalg_pinv", (tensor([[1]]),), "doesn't handle types other than float and double"),
        ("linspace", (1j, 2, 3), "inferred dtype c10::complex<float> can't be safely cast to passed dtype Float"),
        ("isin", (TRUTH, TRUTH), "Unsupported input type encountered for isin(): Bool"),
        ("pow", (tensor(np.array([2], np.uint8)), -2), "Integers to negative integer powers are not allowed."),
    ],
)
def test_other_refusals_are_runtime_errors(name: str, arguments: tuple[Any, ...], words: str) -> None:
    more: dict[str, Any] = {"add": {"alpha": 1j}, "addr": {"beta": 0.5}, "linspace": {"dtype": 6}}.get(name, {})
    error = refused(name, *(arguments[:2] if name == "add" else arguments), **more)
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


def test_negative_whole_numbers_wrap_around_in_unsigned_ones_and_infinity_is_a_float() -> None:
    bytes_ = tensor(np.zeros(2, np.uint8))
    assert calls.call("full_like", (bytes_, -8), {}).array.tolist() == [248, 248]
    assert calls.call("full_like", (REAL, float("inf")), {}).array.tolist() == [np.inf, np.inf]
    assert calls.call("full_like", (TRUTH, 300), {}).array.tolist() == [True, True]
