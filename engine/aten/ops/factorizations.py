"""Matrices as products of simpler ones: Cholesky, QR, LU, singular values, eigenvalues, least squares.

In: arrays (*batch, rows, columns) of float32, float64 or complex types.  Out: arrays.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.grad_mode import is_grad_enabled
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels import singular_values
from engine.aten.kernels.lu import eliminated, permutation
from engine.aten.kernels.refusals import no_code
from engine.aten.ops.linalg import adjoint, check_matrix, check_square, solve_kernel
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

OUT: Final = "function out"
METHOD: Final = "function method out"

# ------------------------------------------------------------------ Cholesky


def cholesky_ex(self: Array, upper: bool, check_errors: bool) -> tuple[Array, Array]:
    """A triangle L with L L^H = self, and for every matrix which leading part is not positive (0: none)."""
    check_square("linalg.cholesky", self)
    try:
        factor, info = np.linalg.cholesky(adjoint(self) if upper else self), np.zeros(self.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        info = np.array([_first_bad(m) for m in self.reshape(-1, *self.shape[-2:])], np.int32)
        info = info.reshape(self.shape[:-2])
        identity = np.eye(self.shape[-1], dtype=self.dtype)
        factor = np.linalg.cholesky(np.where(info[..., None, None] > 0, identity, self))
    if check_errors:
        refuse_indefinite("linalg.cholesky", info)
    return (adjoint(factor) if upper else factor), info


def _first_bad(matrix: Array) -> int:
    """Size of the smallest leading part that is not positive-definite; 0 if all are."""
    signs = (np.linalg.eigvalsh(matrix[:k, :k]).min() for k in range(1, len(matrix) + 1))
    return next((k for k, least in enumerate(signs, 1) if not least > 0), 0)


def refuse_indefinite(name: str, info: Array) -> None:
    if not np.any(info):
        return
    place = int(np.flatnonzero(info)[0])
    batch = f"(Batch element {place}): " if info.ndim else ""
    raise OperatorError(
        f"{name}: {batch}The factorization could not be completed because the input is not positive-definite "
        f"(the leading minor of order {int(info.flat[place])} is not positive-definite)."
    )


def linalg_cholesky(self: Tensor, upper: bool) -> Tensor:
    factor, info = run("linalg_cholesky_ex", self, upper, False)
    refuse_indefinite("linalg.cholesky", info.array)
    result: Tensor = factor
    return result


def cholesky(self: Tensor, upper: bool) -> Tensor:
    check_square("cholesky", self.array)
    factor, info = run("linalg_cholesky_ex", self, upper, False)
    refuse_indefinite("cholesky", info.array)
    result: Tensor = factor
    return result


def cholesky_solve(self: Tensor, input2: Tensor, upper: bool) -> Tensor:
    """X of A X = self, where `input2` is A's Cholesky factor."""
    if self.ndim < 2 or input2.ndim < 2:
        raise OperatorError(f"b should have at least 2 dimensions, but has {self.ndim} dimensions instead")
    first, second = (input2.mH, input2) if upper else (input2, input2.mH)
    half = run("linalg_solve_triangular", first, self, False, True, False)
    solution: Tensor = run("linalg_solve_triangular", second, half, True, True, False)
    return solution


def cholesky_inverse(self: Array, upper: bool) -> Array:
    check_square("cholesky_inverse", self)
    return np.asarray(np.linalg.inv(_restored(self, upper)))


def _restored(factor: Array, upper: bool) -> Array:
    triangle = np.triu(factor) if upper else np.tril(factor)
    return adjoint(triangle) @ triangle if upper else triangle @ adjoint(triangle)


# ------------------------------------------------------------------ QR


def linalg_qr(A: Array, mode: str) -> tuple[Array, Array]:
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise OperatorError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    if mode == "r":
        return np.empty(0, A.dtype), np.asarray(np.linalg.qr(A, mode="r"))
    q, r = np.linalg.qr(A, mode="reduced" if mode == "reduced" else "complete")
    return np.asarray(q), np.asarray(r)


def qr(self: Tensor, some: bool) -> tuple[Tensor, Tensor]:
    q, r = run("linalg_qr", self, "reduced" if some else "complete")
    return q, r


def geqrf(self: Array) -> tuple[Array, Array]:
    """R above the diagonal, Householder vectors below it, and their factors."""
    check_matrix("geqrf", self)
    matrices = self.reshape(math.prod(self.shape[:-2]), *self.shape[-2:])
    count = min(self.shape[-2:])
    a, tau = np.empty_like(matrices), np.empty((len(matrices), count), self.dtype)
    for i, matrix in enumerate(matrices if count else ()):
        h, tau[i] = np.linalg.qr(matrix, mode="raw")
        a[i] = h.T
    return a.reshape(self.shape), tau.reshape(*self.shape[:-2], count)


def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections that `input` holds below its diagonal."""
    if input.ndim < 2:
        raise OperatorError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    rows, columns = input.shape[-2:]
    if rows < columns:
        raise OperatorError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if columns < tau.shape[-1]:
        raise OperatorError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    identity = np.broadcast_to(np.eye(rows, columns, dtype=input.array.dtype), input.shape)
    product = Tensor(np.array(identity))
    vectors = run("tril", input, -1) + Tensor(np.array(identity))
    for k in reversed(range(tau.shape[-1])):
        v = vectors.narrow(-1, k, 1)
        factor = tau.narrow(-1, k, 1).unsqueeze(-1)
        product = product - factor * v.matmul(v.mH.matmul(product))
    return product


# ------------------------------------------------------------------ singular values


def linalg_svd(A: Tensor, full_matrices: bool, driver: str | None) -> tuple[Tensor, Tensor, Tensor]:
    check_matrix("linalg.svd", A.array)
    _check_driver("torch.linalg.svd", driver)
    u, s, vh = run("_svd", A, full_matrices)
    return u, s, vh


def _check_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise OperatorError(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


def svdvals(A: Tensor, driver: str | None) -> Tensor:
    check_matrix("linalg.svd", A.array)
    _check_driver("torch.linalg.svdvals", driver)
    values: Tensor = run("_svdvals", A)
    return values


def svd(self: Tensor, some: bool, compute_uv: bool) -> tuple[Tensor, Tensor, Tensor]:
    """U, S, V; zeros for U and V when they are not wanted."""
    if self.ndim < 2:
        raise OperatorError("linalg.svd: The input tensor A must have at least 2 dimensions.")
    if compute_uv:
        u, s, vh = linalg_svd(self, not some, None)
        return u, s, vh.mH
    rows, columns = self.shape[-2:]
    batch = self.array.shape[:-2]
    zeros = [Tensor(np.zeros((*batch, n, n), self.array.dtype)) for n in (rows, columns)]
    return zeros[0], svdvals(self, None), zeros[1]


def pinv(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    """The pseudo-inverse, with singular values below a tolerance left out."""
    if self.ndim < 2:
        raise OperatorError("linalg.pinv: Expected a tensor with 2 or more dimensions")
    _check_limits(atol, rtol)
    if self.array.size == 0:
        empty: Tensor = self.transpose(-2, -1).clone()
        return empty
    if rtol is None and self.array.dtype not in _EXACT:
        raise OperatorError("This function doesn't handle types other than float and double")
    limits = [Tensor(np.asarray(t, np.float64)) if isinstance(t, float) else t for t in (atol, rtol)]
    inverse: Tensor = run("_pinv", self, *limits, hermitian)
    return inverse


_EXACT: Final = frozenset({xp.FLOAT32, xp.FLOAT64, xp.COMPLEX64, xp.COMPLEX128})


def _check_limits(atol: Any, rtol: Any) -> None:
    for name, limit in (("atol", atol), ("rtol", rtol)):
        if not isinstance(limit, Tensor):
            continue
        if limit.array.dtype in xp.COMPLEX:
            raise _complex_limit(name, limit)
        if limit.requires_grad and is_grad_enabled():
            raise OperatorError(
                f"The function 'linalg_pinv' is not differentiable with respect to argument '{name}'. "
                "This input cannot have requires_grad True."
            )


def _complex_limit(name: str, limit: Tensor) -> OperatorError:
    given = xp.ir_name(limit.array.dtype)
    return OperatorError(f"torch.linalg.pinv: {name} tensor of complex type is not supported. Got {given}")


def pinv_kernel(self: Array, atol: Array | None, rtol: Array | None, hermitian: bool) -> Array:
    check_matrix("linalg.pinv", self)
    if hermitian:
        values, vectors = np.linalg.eigh(self)
        left, right = vectors, adjoint(vectors)
    else:
        u, values, vh = singular_values.svd(self, False)
        left, right = adjoint(vh), adjoint(u)
    sizes = np.abs(values)
    kept = sizes > _tolerance(self, np.max(sizes, axis=-1, keepdims=True), atol, rtol)
    factors = np.where(kept, 1 / np.where(kept, values, 1), 0)
    return np.asarray((left * factors[..., None, :]) @ right).astype(self.dtype)


def pinv_backward(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """Gradient of the pseudo-inverse X of A at constant rank: a term of X dA X, and terms of A's complements."""
    x, g = result.mH, grad.mH
    rows = g.matmul(result)
    columns = result.matmul(g)
    through = -x.matmul(grad).matmul(x)
    outside = rows.matmul(x) - self.matmul(result).matmul(rows).matmul(x)
    inside: Tensor = x.matmul(columns) - x.matmul(columns).matmul(result).matmul(self)
    total: Tensor = through + outside + inside
    return total


def _tolerance(A: Array, largest: Array, atol: Any, rtol: Any) -> Array:
    a, r = (t[..., None] if isinstance(t, np.ndarray) else t for t in (atol, rtol))
    if r is None:
        default = float(xp.limits(A.dtype).eps) * max(A.shape[-2:])
        r = default if a is None else np.where(np.asarray(a) > 0, 0.0, default)
    return np.asarray(np.maximum(0 if a is None else a, np.asarray(r) * largest))


def pinv_of_rcond(self: Tensor, rcond: Any, hermitian: bool) -> Tensor:
    if isinstance(rcond, Tensor) and rcond.array.dtype in xp.COMPLEX:
        raise _complex_limit("rcond", rcond)
    return pinv(self, 0.0, rcond, hermitian)


def pinverse(self: Tensor, rcond: float) -> Tensor:
    return pinv(self, 0.0, rcond, False)


def matrix_rank(self: Array, atol: Any, rtol: Any, hermitian: bool) -> Array:
    """Number of singular values above a tolerance."""
    if self.ndim < 2:
        raise OperatorError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    for name, limit in (("atol", atol), ("rtol", rtol)):
        if isinstance(limit, np.ndarray) and limit.dtype in xp.COMPLEX:
            raise OperatorError(f"torch.linalg.matrix_rank: {name} tensor of complex type is not supported. "
                                f"Got {xp.ir_name(limit.dtype)}")  # fmt: skip
    if self.size == 0:
        return np.zeros(self.shape[:-2], np.int64)
    check_matrix("linalg.eigh" if hermitian else "linalg.svd", self)
    values = np.abs(np.linalg.eigvalsh(self)) if hermitian else singular_values.singular_values(self)
    limit = _tolerance(self, np.max(values, axis=-1, keepdims=True), atol, rtol)
    return np.asarray(np.sum(values > limit, axis=-1)).astype(np.int64)


def matrix_rank_of_tol(self: Array, tol: Any, hermitian: bool) -> Array:
    return matrix_rank(self, tol, 0.0, hermitian)


# ------------------------------------------------------------------ eigenvalues


def eigh_kernel(self: Array, UPLO: str) -> tuple[Array, Array]:
    check_square("linalg.eigh", self)
    if UPLO.upper() not in ("L", "U"):
        raise OperatorError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    values, vectors = np.linalg.eigh(self, UPLO="L" if UPLO.upper() == "L" else "U")
    return np.asarray(values), np.asarray(vectors)


def eigvalsh(self: Tensor, UPLO: str) -> Tensor:
    values, _ = run("linalg_eigh", self, UPLO)
    result: Tensor = values
    return result


def eig(self: Array) -> tuple[Array, Array]:
    check_square("linalg.eig", self)
    d = xp.COMPLEX128 if self.dtype in (xp.FLOAT64, xp.COMPLEX128) else xp.COMPLEX64
    if not np.isfinite(self).all():
        raise OperatorError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = np.linalg.eig(self)
    return np.asarray(values).astype(d), np.asarray(vectors).astype(d)


def eigvals(self: Tensor) -> Tensor:
    values, _ = run("linalg_eig", self)
    result: Tensor = values
    return result


# ------------------------------------------------------------------ LU


def lu_factor(A: Array, pivot: bool) -> tuple[Array, Array]:
    """L below the diagonal and U above, and with which row each step changed places, counted from 1."""
    if A.ndim < 2:
        raise OperatorError(
            "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: " + str(list(A.shape))
        )
    check_matrix("torch.lu_factor", A)
    if not pivot and A.size:
        raise OperatorError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return eliminated(A)


def lu_unpack(LU: Array, pivots: Array, unpack_data: bool, unpack_pivots: bool) -> tuple[Array, Array, Array]:
    rows, columns = LU.shape[-2:]
    none = np.empty(0, LU.dtype)
    lower = upper = p = none
    if unpack_data:
        count = min(rows, columns)
        lower = np.tril(LU[..., :count], -1) + np.eye(rows, count, dtype=LU.dtype)
        upper = np.triu(LU[..., :count, :])
    if unpack_pivots:
        if pivots.dtype != np.int32:
            raise OperatorError(
                "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
            )
        p = np.swapaxes(np.eye(rows, dtype=LU.dtype)[permutation(pivots, rows)], -1, -2)
    return p, lower, upper


def lu(A: Array, pivot: bool) -> tuple[Array, Array, Array]:
    factors, pivots = lu_factor(A, pivot)
    p, lower, upper = lu_unpack(factors, pivots, True, pivot)
    return p, lower, upper


def lu_solve(LU: Array, pivots: Array, B: Array, left: bool, adjoint_: bool) -> Array:
    """X of A X = B (`left`) or X A = B, from the LU factorization of A and its pivots."""
    check_matrix("torch.linalg.lu_solve", LU)
    p, lower, upper = lu_unpack(LU, pivots, True, True)
    whole = p @ lower @ upper
    whole = adjoint(whole) if adjoint_ else whole
    if left:
        return solve_kernel(whole, B)[0]
    return np.swapaxes(solve_kernel(np.swapaxes(whole, -1, -2), np.swapaxes(B, -1, -2))[0], -1, -2)


def solve_of_factors(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    solution: Tensor = run("linalg_lu_solve", LU_data, LU_pivots, self, True, False)
    return solution


# ------------------------------------------------------------------ entries

_QR: Final = "-> (Tensor Q, Tensor R)"
_EIGEN: Final = "-> (Tensor eigenvalues, Tensor eigenvectors)"
_LU: Final = "-> (Tensor P, Tensor L, Tensor U)"

out_form(op("aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> "
            "(Tensor L, Tensor info)", kernel=cholesky_ex,
            gradient={"self": "_cholesky_backward(grad, result0, upper)"}, autocast="full"), "L", "L info")  # fmt: skip
op("aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", python=linalg_cholesky, variants=OUT,
   autocast="full")  # fmt: skip
op("aten::cholesky(Tensor self, bool upper=False) -> Tensor", python=cholesky, variants=METHOD, autocast="full")
_SOLVED: Final = "_cholesky_solve_backward(grad, input2, upper, result)"
op("aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", python=cholesky_solve,
   variants=METHOD, gradient={"self": f"{_SOLVED}[0]", "input2": f"{_SOLVED}[1]"}, autocast="full")  # fmt: skip
op("aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor", kernel=cholesky_inverse, variants=METHOD,
   gradient={"self": "_cholesky_inverse_backward(grad, self, upper, result)"}, autocast="full")  # fmt: skip

out_form(op(f'aten::linalg_qr(Tensor A, str mode="reduced") {_QR}', kernel=linalg_qr, gradient={
    "A": "_qr_backward(grads[0], grads[1], Q, R, mode)"}, autocast="full"), "out", "Q R")  # fmt: skip
out_form(op(f"aten::qr(Tensor self, bool some=True) {_QR}", python=qr, variants="function method",
            autocast="full"), "Q", "Q R")  # fmt: skip
out_form(op("aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)", kernel=geqrf, variants="function method",
            autocast="full"),
         "a", "a tau")  # fmt: skip
op("aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor", python=householder_product, variants=OUT,
   autocast="full")  # fmt: skip

op("aten::_svd(Tensor A, bool full_matrices) -> (Tensor U, Tensor S, Tensor Vh)", kernel=singular_values.svd,
   gradient={"A": "_svd_backward(grads[0], grads[1], grads[2], full_matrices, U, S, Vh)"})  # fmt: skip
op("aten::_svdvals(Tensor A) -> Tensor", kernel=singular_values.singular_values,
   gradient={"A": "_svdvals_backward(grad, A)"})  # fmt: skip
out_form(op("aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> "
            "(Tensor U, Tensor S, Tensor Vh)", python=linalg_svd, autocast="full"), "U", "U S Vh")  # fmt: skip
op("aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", python=svdvals, variants=OUT, autocast="full")
out_form(op("aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
            python=svd, variants="function method", autocast="full"), "U", "U S V")  # fmt: skip
op("aten::_pinv_backward(Tensor grad, Tensor self, Tensor result) -> Tensor", python=pinv_backward)
op("aten::_pinv(Tensor self, Tensor? atol, Tensor? rtol, bool hermitian) -> Tensor", kernel=pinv_kernel,
   gradient={"self": "_pinv_backward(grad, self, result)"})  # fmt: skip
op("aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", python=pinv_of_rcond, variants=OUT)
op("aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) "
   "-> Tensor", python=pinv, variants=OUT)  # fmt: skip
op("aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) "
   "-> Tensor", python=pinv, variants=OUT)  # fmt: skip
op("aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor", python=pinv_of_rcond,
   variants="function out:out_rcond_tensor")  # fmt: skip
op("aten::pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor", python=pinverse,
   variants="function method", autocast="full")  # fmt: skip
op("aten::linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", kernel=matrix_rank_of_tol,
   variants=OUT, autocast="full")  # fmt: skip
op("aten::linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
   kernel=matrix_rank_of_tol, variants="function out:out_tol_tensor", autocast="full")  # fmt: skip
op("aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
   "bool hermitian=False) -> Tensor", kernel=matrix_rank, variants=OUT, autocast="full")  # fmt: skip
op("aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
   "bool hermitian=False) -> Tensor", kernel=matrix_rank, variants=OUT, autocast="full")  # fmt: skip

out_form(op(f'aten::linalg_eigh(Tensor self, str UPLO="L") {_EIGEN}', kernel=eigh_kernel, gradient={
    "self": "_eigh_backward(grads[0], grads[1], eigenvalues, eigenvectors)"
}, autocast="full"), "eigvals", "eigvals eigvecs")  # fmt: skip
op('aten::linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor', python=eigvalsh, variants=OUT, autocast="full")
out_form(op(f"aten::linalg_eig(Tensor self) {_EIGEN}", kernel=eig, gradient={
    "self": "_eig_backward(grads[0], grads[1], eigenvalues, eigenvectors)"
}, autocast="full"), "out", "eigenvalues eigenvectors")  # fmt: skip
op("aten::linalg_eigvals(Tensor self) -> Tensor", python=eigvals, variants=OUT, autocast="full")

out_form(op(f"aten::linalg_lu(Tensor A, *, bool pivot=True) {_LU}", kernel=lu, gradient={
    "A": "_lu_backward(grads[1], grads[2], P, L, U)"
}), "out", "P L U")  # fmt: skip
out_form(op("aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", kernel=lu_factor,
            gradient={"A": "_lu_factor_backward(grad, LU, pivots, pivot)"}), "out", "LU pivots")  # fmt: skip
_LU_SOLVED: Final = "_lu_solve_backward(grad, LU, pivots, result, left, adjoint)"
op("aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
   kernel=lu_solve, variants=OUT, gradient={"LU": f"{_LU_SOLVED}[0]", "B": f"{_LU_SOLVED}[1]"})  # fmt: skip
op("aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", python=solve_of_factors, variants=METHOD,
   autocast="full")  # fmt: skip
out_form(op(f"aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) {_LU}",
            kernel=lu_unpack, gradient={"LU_data": "_lu_unpack_backward(grads[1], grads[2], LU_data)"}),
         "out", "P L U")  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("linalg_householder_product", refuses=no_code("bih", "orgqr_cpu"))
describe("cholesky", refuses=no_code("bih", "cholesky_cpu", empty=False))
describe("linalg_cholesky linalg_cholesky_ex", refuses=no_code("h", "cholesky_cpu", empty=False))
describe("cholesky_inverse", refuses=no_code("bih", "cholesky_inverse_out_cpu", empty=False))
describe("cholesky_solve", refuses=no_code("bih", "cholesky_solve_cpu", empty=False))
describe("geqrf", refuses=no_code("bih", "geqrf_cpu", empty=False))
describe("linalg_qr qr", refuses=no_code("h", "geqrf_cpu", empty=False))
describe("linalg_lu linalg_lu_factor", refuses=no_code("bih", "lu_cpu", empty=False))
describe("linalg_lu_solve", refuses=no_code("h", "linalg.lu_solve_cpu", empty=False))
describe("linalg_eigh linalg_eigvalsh", refuses=no_code("bih", "linalg_eigh_cpu", empty=False))
describe("linalg_eig linalg_eigvals", refuses=no_code("h", "linalg_eig_out_cpu", empty=False))
describe("linalg_svd linalg_svdvals svd linalg_matrix_rank", refuses=no_code("h", "linalg_svd_cpu", empty=False))
describe(
    "linalg_cholesky.out linalg_eigvalsh.out linalg_lu_solve.out linalg_svdvals.out lu_solve.out",
    out_check=out_checks.check_same,
)
