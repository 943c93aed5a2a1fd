"""Tensors as text: the expected texts are what PyTorch prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.formatting.printing import cpp_str, set_printoptions
from engine.aten.values.tensor import tensor
from engine.lang import scalars
from engine.torch.nn import Parameter


def f32(*values: object) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (f32([1, 2]), "tensor([[1., 2.]])"),
        (f32(1, 2.5), "tensor([1.0000, 2.5000])"),
        (f32(-1.5, 0), "tensor([-1.5000,  0.0000])"),
        (f32(1e-7, 1), "tensor([1.0000e-07, 1.0000e+00])"),
        (f32(1e10, 2), "tensor([1.0000e+10, 2.0000e+00])"),
        (f32(1, np.nan), "tensor([1., nan])"),
        (f32(np.inf, -np.inf), "tensor([inf, -inf])"),
        (f32(), "tensor([])"),
        (np.zeros((0, 3), np.float32), "tensor([], size=(0, 3))"),
        (np.array([], np.int64), "tensor([], dtype=torch.int64)"),
        (np.array(2.5), "tensor(2.5000, dtype=torch.float64)"),
        (np.array([1, -20]), "tensor([  1, -20])"),
        (np.array([True, False]), "tensor([ True, False])"),
        (np.array([1 + 2j, complex(0, -1.5)], np.complex64), "tensor([1.+2.0000j, 0.-1.5000j])"),
        (f32([[1, 2], [3, 4]], [[5, 6], [7, 8]]),
         "tensor([[[1., 2.],\n         [3., 4.]],\n\n        [[5., 6.],\n         [7., 8.]]])"),
        (np.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    ],
)  # fmt: skip
def test_repr(data: np.ndarray, text: str) -> None:  # type: ignore[type-arg]
    assert repr(tensor(data)) == text


def test_repr_names_what_is_unusual() -> None:
    assert repr(tensor([1.0], requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(tensor([1.0], dtype=scalars.bfloat16)) == "tensor([1.], dtype=torch.bfloat16)"


def test_repr_breaks_lines_at_eighty() -> None:
    text = repr(tensor(np.arange(40) / 7))
    assert max(map(len, text.split("\n"))) <= 80
    assert text.split("\n")[1].startswith("        ")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (f32(1, 2.5), " 1.0000\n 2.5000\n[ CPUFloatType{2} ]"),
        (np.array([1, 2, 3]), " 1\n 2\n 3\n[ CPULongType{3} ]"),
        (np.array(2.0, np.float32), "2\n[ CPUFloatType{} ]"),
        (np.array(0.1, np.float32), "0.10000000149011612\n[ CPUFloatType{} ]"),
        (np.zeros((2, 0), np.float32), "[ CPUFloatType{2,0} ]"),
        (f32([1, 2], [3, 4]), " 1  2\n 3  4\n[ CPUFloatType{2,2} ]"),
        (f32([0.001, 0.0025], [-0.003, 0.004]),
         "0.001 *\n 1.0000  2.5000\n -3.0000  4.0000\n[ CPUFloatType{2,2} ]"),
        (f32([[1.5, 2]], [[3, 4]]),
         "(1,.,.) = \n 1.5000  2.0000\n\n(2,.,.) = \n 3  4\n[ CPUFloatType{2,1,2} ]"),
        (f32(1e9, 123977936), " 1.0000e+09\n 1.2398e+08\n[ CPUFloatType{2} ]"),
    ],
)  # fmt: skip
def test_cpp_text(data: np.ndarray, text: str) -> None:  # type: ignore[type-arg]
    assert cpp_str(tensor(data)) == text


@pytest.fixture
def usual_options() -> Iterator[None]:
    yield
    set_printoptions(profile="default")


@pytest.mark.usefixtures("usual_options")
@pytest.mark.parametrize(
    ("options", "data", "text"),
    [
        ({"precision": 2}, f32(1, 2.345), "tensor([1.00, 2.35])"),
        ({"threshold": 3, "edgeitems": 1}, np.arange(5), "tensor([0,  ..., 4])"),
        ({"threshold": 3, "edgeitems": 0}, np.arange(5), "tensor([...], size=(5,))"),
        ({"sci_mode": True}, f32(-1, 20), "tensor([-1.0000e+00,  2.0000e+01])"),
        ({"sci_mode": False}, f32(1e-5, 1), "tensor([0.0000, 1.0000])"),
        ({"profile": "short"}, f32(1, 2.345), "tensor([1.00, 2.35])"),
        ({"linewidth": 20}, np.arange(8), "tensor([0, 1, 2, 3,\n        4, 5, 6, 7])"),
    ],
)
def test_options(options: dict[str, Any], data: np.ndarray, text: str) -> None:  # type: ignore[type-arg]
    set_printoptions(**options)
    assert repr(tensor(data)) == text


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="'short'"):
        set_printoptions(profile="shrt")


def test_formats() -> None:
    assert f"{tensor(2.5)} {tensor(3)} {tensor(1.23456):.2f} {tensor(7):>3}" == "2.5 3 1.23   7"
    assert f"{tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{tensor([1.0]):.2f}"


def test_parameters_say_what_they_are() -> None:
    assert repr(Parameter(tensor([1.0]))) == "Parameter containing:\ntensor([1.], requires_grad=True)"
