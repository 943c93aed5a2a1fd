"""Bessel functions against their differential equations and values that are known."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.kernels import bessel

X = np.array([0.3, 1.0, 5.5, 19.0, 21.0, 39.0, 41.0, 200.0])
FIRST_ZERO = 2.404825557695773


def test_known_values() -> None:
    assert bessel.first_kind(0, np.array([1.0]))[0] == pytest.approx(0.7651976865579666, rel=1e-14)
    assert bessel.first_kind(1, np.array([1.0]))[0] == pytest.approx(0.44005058574493355, rel=1e-14)
    assert bessel.modified(0, np.array([1.0]))[0] == pytest.approx(1.2660658777520082, rel=1e-14)
    assert bessel.modified(1, np.array([1.0]))[0] == pytest.approx(0.5651591039924851, rel=1e-14)


def test_the_first_zero() -> None:
    assert abs(bessel.first_kind(0, np.array([FIRST_ZERO]))[0]) < 1e-15


@pytest.mark.parametrize("x", X)
def test_the_derivative_of_order_zero_is_minus_order_one(x: float) -> None:
    h = 1e-5
    low, high = bessel.first_kind(0, np.array([x - h, x + h]))
    assert (high - low) / (2 * h) == pytest.approx(-bessel.first_kind(1, np.array([x]))[0], abs=1e-9)


def test_scaled_functions_do_not_overflow() -> None:
    for order in (0, 1):
        found = bessel.modified(order, X, scaled=True)
        np.testing.assert_allclose(found, bessel.modified(order, X) * np.exp(-X), rtol=1e-13)
        assert 0 < bessel.modified(order, np.array([1e4]), scaled=True)[0] < 1


def test_symmetry() -> None:
    for function in (bessel.first_kind, bessel.modified):
        np.testing.assert_array_equal(function(0, -X), function(0, X))
        np.testing.assert_array_equal(function(1, -X), -function(1, X))
