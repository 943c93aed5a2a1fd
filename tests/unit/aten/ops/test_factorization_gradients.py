"""Gradients of matrices taken apart, against finite differences in float64 and against the reference's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import grad, gradcheck, gradgradcheck
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError


def run(name: str, *args: Any, **options: Any) -> Any:
    return call(name, args, options)


def matrix(*shape: int, seed: int = 0) -> Tensor:
    """Numbers far from special cases."""
    return Tensor(np.random.default_rng(seed).normal(size=shape), True)


def hermitian(x: Tensor) -> Tensor:
    return x + x.mT


def singular(x: Tensor, full: bool = False) -> Any:
    """What does not depend on the signs that singular vectors come with."""
    u, s, vh = run("linalg_svd", x, full)
    count = s.shape[-1]
    u, vh = u.narrow(-1, 0, count), vh.narrow(-2, 0, count)
    return (u * u, s, vh * vh, u.matmul(vh))


def square_reflections(x: Tensor) -> Tensor:
    factors = x.narrow(-1, 0, 2)
    made: Tensor = run("linalg_householder_product", factors, x.select(-2, 0).narrow(-1, 0, 2))
    return made


FUNCTIONS: dict[str, tuple[Callable[[Tensor], Any], tuple[int, ...]]] = {
    "exponential": (lambda x: run("linalg_matrix_exp", x), (2, 3, 3)),
    "svd": (singular, (2, 3, 3)), "svd tall": (singular, (4, 2)), "svd wide": (singular, (2, 4)),
    "svd full": (lambda x: singular(x, True), (4, 2)), "singular values": (lambda x: run("linalg_svdvals", x), (3, 2)),
    "eigenvalues": (lambda x: run("linalg_eigvals", x).abs(), (3, 3)),
    "eigenvectors": (lambda x: run("linalg_eig", x)[1].abs(), (3, 3)),
    "symmetric": (lambda x: (lambda e: (e[0], e[1] * e[1]))(run("linalg_eigh", hermitian(x))), (3, 3)),
    "qr": (lambda x: run("linalg_qr", x), (2, 4, 3)), "qr wide": (lambda x: run("linalg_qr", x), (2, 4)),
    "qr square": (lambda x: run("linalg_qr", x, "complete"), (3, 3)),
    "r of a wide qr": (lambda x: run("linalg_qr", x)[1], (2, 4)),
    "q of a wide qr": (lambda x: run("linalg_qr", x)[0], (2, 4)),
    "lu": (lambda x: run("linalg_lu", x)[1:], (2, 3, 3)), "lu tall": (lambda x: run("linalg_lu", x)[1:], (4, 2)),
    "lu wide": (lambda x: run("linalg_lu", x)[1:], (2, 4)), "l alone": (lambda x: run("linalg_lu", x)[1], (4, 2)),
    "u alone": (lambda x: run("linalg_lu", x)[2], (2, 4)),
    "factors": (lambda x: run("linalg_lu_factor", x)[0], (2, 3, 4)),
    "unpacked": (lambda x: run("lu_unpack", x, Tensor(np.array([2, 2], np.int32)))[1:], (3, 2)),
    "householder": (square_reflections, (3, 3)),
    "least squares": (lambda x: run("linalg_lstsq", x, matrix(4, 2, seed=5), driver="gels")[:2], (4, 3)),
    "log of the determinant": (lambda x: run("slogdet", x)[1], (3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_gradients_equal_finite_differences(name: str) -> None:
    function, shape = FUNCTIONS[name]
    x = matrix(*shape, seed=3)
    assert gradcheck(function, (x,), atol=1e-5)
    assert gradgradcheck(function, (x,), atol=1e-4)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_solving_with_factors(left: bool, adjoint: bool) -> None:
    factors, pivots = run("linalg_lu_factor", matrix(3, 3, seed=1).detach())
    a = Tensor(factors.array, True)
    b = matrix(3, 3, seed=2)
    assert gradcheck(lambda a, b: run("linalg_lu_solve", a, pivots, b, left=left, adjoint=adjoint), (a, b))


@pytest.mark.parametrize("reduce", ["mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_slices_reduced_by_index(reduce: str, include_self: bool) -> None:
    x, source, index = matrix(3, 2, seed=1), matrix(4, 2, seed=2), Tensor(np.array([0, 2, 0, 2]))
    assert gradcheck(lambda x, s: run("index_reduce", x, 0, index, s, reduce, include_self=include_self), (x, source))


def test_medians_share_their_gradient_among_equals() -> None:
    x = Tensor(np.array([2.0, np.nan, 1.0, 2.0, 3.0]), True)
    (found,) = grad(run("nanmedian", x), x)
    np.testing.assert_array_equal(found.array, [0.5, 0, 0, 0.5, 0])
    (found,) = grad(run("median", x), x)
    np.testing.assert_array_equal(found.array, [0, 1, 0, 0, 0])


def complex_matrix() -> Tensor:
    parts = np.random.default_rng(4).normal(size=(2, 3, 3))
    return Tensor(parts[0] + 1j * parts[1], True)


COMPLEX: dict[str, Callable[[Tensor], Tensor]] = {
    "norm": lambda z: run("linalg_vector_norm", z, 3), "largest": lambda z: run("linalg_vector_norm", z, float("inf")),
    "spread": lambda z: run("var", z), "deviation": lambda z: run("std", z),
    "sign of the determinant": lambda z: run("real", run("linalg_slogdet", z)[0]),
    "singular values": lambda z: run("linalg_svdvals", z), "angle": lambda z: run("angle", z),
    "log of the determinant": lambda z: run("imag", run("logdet", z)),
    "r": lambda z: run("real", run("linalg_qr", z)[1]), "u": lambda z: run("imag", run("linalg_lu", z)[2]),
    "exponential": lambda z: run("real", run("matrix_exp", z)),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_gradients_of_complex_numbers_have_both_parts(name: str) -> None:
    """The gradient of a real number is its slope along the real axis plus i times that along the imaginary one."""
    z, function = complex_matrix(), COMPLEX[name]
    weights = Tensor(np.random.default_rng(8).normal(size=function(z).array.shape))
    (found,) = grad(function(z), z, weights)
    expected = np.zeros(z.array.shape, np.complex128)
    for i in np.ndindex(*z.array.shape):
        for turn in (1, 1j):
            moved = [z.array.copy(), z.array.copy()]
            moved[0][i] += 1e-6 * turn
            moved[1][i] -= 1e-6 * turn
            above, below = (float((function(Tensor(m)).array * weights.array).sum()) for m in moved)
            expected[i] += turn * (above - below) / 2e-6
    np.testing.assert_allclose(found.array, expected, rtol=1e-5, atol=1e-6)


def test_what_no_gradient_goes_through_needs_none() -> None:
    p, lower, upper = run("linalg_lu", matrix(3, 3))
    assert (p.requires_grad, lower.requires_grad, upper.requires_grad) == (False, True, True)
    found = run("native_layer_norm", matrix(2, 3), [3], None, None, 1e-5)
    assert [t.requires_grad for t in found] == [True, False, False]


REFUSED: dict[str, Callable[[], Any]] = {
    "depends on Q, which is not computed": lambda: run("linalg_qr", matrix(3, 3), "r")[1],
    "not differentiable when mode='complete'": lambda: run("linalg_qr", matrix(4, 2), "complete")[0],
    "up to multiplication by e^": lambda: run("real", run("linalg_eig", complex_matrix())[1] * 1j),
    "singular vectors in the complex case": lambda: run("real", run("linalg_svd", complex_matrix())[0] * (1 + 2j)),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message: str) -> None:
    result = REFUSED[message]()
    with pytest.raises(OperatorError) as raised:
        result.sum().backward()
    assert message in str(raised.value)


def test_gradients_of_triangular_factors_are_those_of_whole_matrices() -> None:
    """The reference's numbers."""
    factor = Tensor(np.array([[2.0, 0.0], [0.5, 1.0]]), True)
    b = Tensor(np.array([[1.0], [2.0]]), True)
    of_b, of_factor = grad(run("cholesky_solve", b, factor), (b, factor), Tensor(np.array([[1.0], [-1.0]])))
    np.testing.assert_allclose(of_b.array, [[0.5625], [-1.25]])
    np.testing.assert_allclose(of_factor.array, [[-0.1875, -1.21875], [-0.25, 4.375]])
    (found,) = grad(run("cholesky_inverse", factor), factor, Tensor(np.array([[1.0, 2.0], [3.0, 4.0]])))
    np.testing.assert_allclose(found.array, [[0.3125, 0.28125], [-2.25, -5.625]])


def test_pivots_of_complex_matrices_are_chosen_as_lapack_does() -> None:
    """By the sum of both parts: 1.5 here is less than 1 + 1, though it is longer."""
    z = Tensor(np.array([[1.5 + 0j, 1], [1 + 1j, 2]]))
    _, pivots = run("linalg_lu_factor", z)
    assert pivots.array.tolist() == [2, 2]
