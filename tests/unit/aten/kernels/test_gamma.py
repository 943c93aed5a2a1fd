"""The gamma function's family against values and identities that are known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.aten.kernels import gamma

X = np.array([0.1, 0.5, 1.0, 1.5, 2.0, 7.25, 30.0, 1e5])


def test_lgamma_is_the_logarithm_of_the_factorial() -> None:
    np.testing.assert_allclose(gamma.lgamma(X), [math.lgamma(x) for x in X], rtol=1e-13, atol=1e-14)


def test_lgamma_below_zero_is_that_of_the_absolute_value() -> None:
    x = np.array([-0.5, -1.5, -7.3])
    np.testing.assert_allclose(gamma.lgamma(x), [math.lgamma(v) for v in x], rtol=1e-12)


def test_lgamma_has_poles_at_zero_and_below() -> None:
    with np.errstate(all="ignore"):
        assert np.isinf(gamma.lgamma(np.array([0.0, -1.0, -8.0]))).all()


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_polygamma_follows_its_recurrence(n: int) -> None:
    step = (-1.0) ** n * math.factorial(n) * X ** -(n + 1.0)
    np.testing.assert_allclose(gamma.polygamma(n, X + 1), gamma.polygamma(n, X) + step, rtol=1e-9, atol=1e-13)


def test_digamma_of_one_is_minus_euler_s_constant() -> None:
    assert gamma.digamma(np.array([1.0]))[0] == pytest.approx(-0.5772156649015329, rel=1e-14)


def test_zeta_at_even_numbers_is_a_power_of_pi() -> None:
    found = gamma.zeta(np.array([2.0, 4.0]), np.array([1.0, 1.0]))
    np.testing.assert_allclose(found, [math.pi**2 / 6, math.pi**4 / 90], rtol=1e-14)


def test_incomplete_gamma_functions_add_up_to_one() -> None:
    a, x = np.meshgrid([0.2, 1.0, 3.5, 40.0], [0.1, 1.0, 5.0, 60.0])
    np.testing.assert_allclose(gamma.igamma(a, x) + gamma.igammac(a, x), 1.0, rtol=1e-13)


def test_incomplete_gamma_of_one_is_exponential() -> None:
    x = np.array([0.0, 0.5, 2.0, 10.0])
    np.testing.assert_allclose(gamma.igammac(np.ones(4), x), np.exp(-x), rtol=1e-13)


def test_incomplete_gamma_has_no_value_for_negative_arguments() -> None:
    assert np.isnan(gamma.igamma(np.array([-1.0, 1.0]), np.array([1.0, -1.0]))).all()
