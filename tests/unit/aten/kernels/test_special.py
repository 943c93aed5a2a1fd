"""Special functions against values of the mathematical functions."""

from __future__ import annotations

import math

import numpy as np

from engine.aten.kernels.special import erf, erfc

X = np.concatenate([np.linspace(-6, 6, 241), [-1.0, 1.0, 0.0, 10.0, 20.0]])


def test_erf() -> None:
    np.testing.assert_allclose(erf(X), [math.erf(x) for x in X], rtol=1e-13, atol=0)


def test_erfc() -> None:
    np.testing.assert_allclose(erfc(X), [math.erfc(x) for x in X], rtol=2e-13, atol=0)


def test_edges_and_dtypes() -> None:
    assert erf(np.array([np.inf, -np.inf])).tolist() == [1.0, -1.0]
    assert np.isnan(erf(np.array(np.nan)))
    assert erf(np.ones(2, np.float32)).dtype == np.float32


def test_erf_of_single_precision_is_right_to_four_units_of_its_precision() -> None:
    x = np.linspace(-6, 6, 40_001).astype(np.float32)
    found, wanted = erf(x), np.array([math.erf(v) for v in x.tolist()])
    assert found.dtype == np.float32
    assert np.all(np.abs(found - wanted) <= 5e-7 * np.abs(wanted))
    assert np.all(np.abs(found) <= 1)
    assert np.all(np.abs(found[np.abs(x) >= 3.93]) == 1)
    ends = erf(np.array([np.inf, -np.inf, np.nan], np.float32))
    assert ends[:2].tolist() == [1, -1] and np.isnan(ends[2])
