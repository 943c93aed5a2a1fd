"""Special functions against values of the mathematical functions."""

from __future__ import annotations

import math

import numpy as np

from engine.aten.special import erf, erfc

X = np.concatenate([np.linspace(-6, 6, 241), [-1.0, 1.0, 0.0, 10.0, 20.0]])


def test_erf() -> None:
    np.testing.assert_allclose(erf(X), [math.erf(x) for x in X], rtol=1e-13, atol=0)


def test_erfc() -> None:
    np.testing.assert_allclose(erfc(X), [math.erfc(x) for x in X], rtol=2e-13, atol=0)


def test_edges_and_dtypes() -> None:
    assert erf(np.array([np.inf, -np.inf])).tolist() == [1.0, -1.0]
    assert np.isnan(erf(np.array(np.nan)))
    assert erf(np.ones(2, np.float32)).dtype == np.float32
