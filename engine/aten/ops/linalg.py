"""Linear algebra: solving, inverting, norms, and products.

In: arrays (*batch, rows, columns) of float32, float64 or complex types.  Out: arrays.  Most operators are made of a few
that decompose a matrix (see `factorizations`), from which their gradients come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run, where
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels.lu import eliminated, substituted, zero_pivots
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import check_same_dtype, wrap_dims
from engine.aten.values import xp
from engine.aten.values.promotion import wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

OUT: Final = "function out"
METHOD: Final = "function method out"
ALL: Final = "function method inplace out"

# ------------------------------------------------------------------ checks


def check_matrix(name: str, x: Array, argument: str = "A") -> None:
    """Raise OperatorError unless `x` is a batch of matrices of a type that can be decomposed."""
    if x.ndim < 2:
        raise OperatorError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    if wide(x.dtype) is not x.dtype:
        raise OperatorError(f"{name}: Low precision dtypes not supported. Got {xp.ir_name(x.dtype)}")
    if x.dtype not in xp.INEXACT:
        raise OperatorError(f"{name}: Expected a floating point or complex tensor as input. Got {xp.ir_name(x.dtype)}")


def check_square(name: str, x: Array, argument: str = "A") -> None:
    check_matrix(name, x, argument)
    if x.shape[-1] != x.shape[-2]:
        raise OperatorError(
            f"{name}: {argument} must be batches of square matrices, but they are "
            f"{x.shape[-2]} by {x.shape[-1]} matrices"
        )


def adjoint(x: Array) -> Array:
    """The conjugate transpose of every matrix."""
    return np.conj(np.swapaxes(x, -1, -2))


def _transposed(x: Tensor) -> Tensor:
    result: Tensor = x.transpose(-2, -1)
    return result


# ------------------------------------------------------------------ solving


def inv_ex(A: Array, check_errors: bool) -> tuple[Array, Array]:
    """The inverse, and for every matrix which step failed (0: none)."""
    check_square("linalg.inv", A)
    inverse, info = _solved(A, np.broadcast_to(np.eye(A.shape[-1], dtype=A.dtype), A.shape))
    if check_errors:
        refuse_singular("linalg.inv", info)
    return inverse, info


def _solved(A: Array, B: Array) -> tuple[Array, Array]:
    """Solutions of A X = B, and of every matrix the first pivot that is zero, counted from 1."""
    try:
        return np.asarray(np.linalg.solve(A, B)), np.zeros(A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        pass
    factors, pivots = eliminated(A)
    return substituted(factors, pivots, B), zero_pivots(factors)


def refuse_singular(name: str, info: Array) -> None:
    if not info.any():
        return
    batch = f"(Batch element {int(np.flatnonzero(info)[0])}): " if info.ndim else ""
    raise OperatorError(
        f"{name}: {batch}The diagonal element {int(info.flat[np.flatnonzero(info)[0]])} is zero, "
        "the inversion could not be completed because the input matrix is singular."
        if name == "linalg.inv"
        else f"torch.{name}: {batch}The solver failed because the input matrix is singular."
    )


def inv(A: Tensor) -> Tensor:
    inverse, info = run("linalg_inv_ex", A, False)
    refuse_singular("linalg.inv", info.array)
    result: Tensor = inverse
    return result


def _is_vector(A: Array, B: Array) -> bool:
    """True if B is a batch of vectors, rather than of matrices."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def solve_ex(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> tuple[Tensor, Tensor]:
    """X of A X = B (`left`) or X A = B."""
    check_square("linalg.solve", A.array)
    check_same_dtype(A.array, B.array, "A", "B")
    vector = _is_vector(A.array, B.array)
    if vector and not left:
        raise OperatorError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    columns = B.unsqueeze(-1) if vector else B
    _check_fits("linalg.solve", A.array, columns.array, left)
    solution, info = run("_solve", A if left else _transposed(A), columns if left else _transposed(columns))
    if check_errors:
        refuse_singular("linalg.solve_ex", info.array)
    solution = solution if left else _transposed(solution)
    return (solution.squeeze(-1) if vector else solution), info


def _check_fits(name: str, A: Array, B: Array, left: bool) -> None:
    if B.ndim < 2:
        raise OperatorError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise OperatorError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )


def solve_kernel(A: Array, B: Array) -> tuple[Array, Array]:
    if A.shape[:-2] == B.shape[:-2]:
        return _solved(A, B)
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return _solved(np.broadcast_to(A, (*batch, *A.shape[-2:])), np.broadcast_to(B, (*batch, *B.shape[-2:])))


def solve(A: Tensor, B: Tensor, left: bool) -> Tensor:
    solution, info = solve_ex(A, B, left, False)
    refuse_singular("linalg.solve", info.array)
    return solution


def solve_triangular(self: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    """X of A X = B where only one triangle of A is looked at; with `unitriangular` its diagonal counts as ones."""
    check_square("linalg.solve_triangular", self)
    check_same_dtype(self, B, "A", "B")
    _check_fits("linalg.solve_triangular", self, B, left)
    triangle = np.triu(self) if upper else np.tril(self)
    if unitriangular:
        np.einsum("...ii->...i", triangle)[...] = 1
    if not left:
        triangle, B = np.swapaxes(triangle, -1, -2), np.swapaxes(B, -1, -2)
    solution = solve_kernel(triangle, B)[0]
    return solution if left else np.swapaxes(solution, -1, -2)


def solve_triangular_backward(
    grad: Tensor, self: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of A, in its triangle only, and of B."""
    of_b = run("linalg_solve_triangular", self.mH, grad, not upper, left, unitriangular)
    product = of_b.matmul(result.mH) if left else result.mH.matmul(of_b)
    offset = int(unitriangular)
    of_a = run("triu", -product, offset) if upper else run("tril", -product, -offset)
    return of_a, of_b


def triangular_solve(
    self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Tensor, Tensor]:
    check_square("triangular_solve", A.array)
    matrix = _transposed(A) if transpose else A
    solution = run("linalg_solve_triangular", matrix, self, upper != transpose, True, unitriangular)
    return solution, A.clone()


def tensorinv(self: Tensor, ind: int) -> Tensor:
    if ind <= 0:
        raise OperatorError("Expected a strictly positive integer for 'ind'")
    first, last = list(self.shape[:ind]), list(self.shape[ind:])
    if math.prod(first) != math.prod(last):
        raise OperatorError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(last)} != {math.prod(first)}"
        )
    inverse: Tensor = inv(self.reshape([math.prod(last), -1])).reshape([*last, *first])
    return inverse


def tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None) -> Tensor:
    if dims is not None:
        chosen = wrap_dims(dims, self.ndim)
        self = self.movedim(list(chosen), list(range(self.ndim - len(chosen), self.ndim)))
    rest = list(self.shape[other.ndim :])
    if math.prod(rest) != other.array.size:
        raise OperatorError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {math.prod(rest)} != {other.array.size}"
        )
    solution: Tensor = solve(self.reshape([other.array.size, -1]), other.reshape([-1]), True).reshape(rest)
    return solution


# ------------------------------------------------------------------ determinants


def det(A: Tensor) -> Tensor:
    check_square("linalg.det", A.array)
    result: Tensor = run("_det", A)
    return result


def slogdet(A: Tensor) -> tuple[Tensor, Tensor]:
    check_square("linalg.slogdet", A.array)
    sign, logarithm = run("_slogdet", A)
    return sign, logarithm


def slogdet_kernel(A: Array) -> tuple[Array, Array]:
    sign, logarithm = np.linalg.slogdet(A)
    return np.asarray(sign), np.asarray(logarithm)


def logdet(self: Tensor) -> Tensor:
    """NaN where the determinant is negative; of a complex one any of its logarithms."""
    sign, logarithm = slogdet(self)
    if sign.array.dtype in xp.COMPLEX:
        turned: Tensor = sign.log()
        return turned + logarithm
    return where(run("eq.Scalar", sign, -1), float("nan"), logarithm)


# ------------------------------------------------------------------ entries

out_form(op("aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
            kernel=inv_ex, gradient={"A": "-result0.mH.matmul(grad).matmul(result0.mH)"}, autocast="full"),
         "inverse", "inverse info")  # fmt: skip
op("aten::linalg_inv(Tensor A) -> Tensor", python=inv, variants=OUT, autocast="full")
op("aten::_solve(Tensor A, Tensor B) -> (Tensor result, Tensor info)", kernel=solve_kernel,
   gradient={"A": "-linalg_solve(A.mH, grad).matmul(result0.mH)", "B": "linalg_solve(A.mH, grad)"})  # fmt: skip
out_form(op("aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
            "(Tensor result, Tensor info)", python=solve_ex), "out", "result info")  # fmt: skip
op("aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", python=solve, variants=OUT, autocast="full")
op("aten::_solve_triangular_backward(Tensor grad, Tensor self, Tensor result, bool upper, bool left, "
   "bool unitriangular) -> (Tensor, Tensor)", python=solve_triangular_backward)  # fmt: skip
_TRIANGULAR: Final = "_solve_triangular_backward(grad, self, result, upper, left, unitriangular)"
op("aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) "
   "-> Tensor", kernel=solve_triangular, variants=OUT,
   gradient={"self": f"{_TRIANGULAR}[0]", "B": f"{_TRIANGULAR}[1]"})  # fmt: skip
out_form(op("aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
            "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)", python=triangular_solve,
            variants="function method", autocast="full"), "X", "X M")  # fmt: skip
op("aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor", python=tensorinv, variants=OUT, autocast="full")
op("aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", python=tensorsolve, variants=OUT,
   autocast="full")  # fmt: skip

op("aten::_det(Tensor A) -> Tensor", kernel=lambda A: np.asarray(np.linalg.det(A)),
   gradient={"A": "(grad * result.conj()).unsqueeze(-1).unsqueeze(-1) * linalg_inv(A).mH"})  # fmt: skip
op("aten::linalg_det(Tensor A) -> Tensor", python=det, variants=OUT)
op("aten::_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", kernel=slogdet_kernel,
   gradient={"A": "_slogdet_backward(grads[0], grads[1], A, sign)"})  # fmt: skip
_SLOGDET: Final = "-> (Tensor sign, Tensor logabsdet)"
out_form(op(f"aten::linalg_slogdet(Tensor A) {_SLOGDET}", python=slogdet), "out", "sign logabsdet")
out_form(op(f"aten::slogdet(Tensor self) {_SLOGDET}", python=slogdet, variants="function method"),
         "out", "sign logabsdet")  # fmt: skip
op("aten::logdet(Tensor self) -> Tensor", python=logdet, variants="function method")


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("linalg_solve_triangular triangular_solve", refuses=no_code("bih", "triangular_solve_cpu", empty=False))
describe("linalg_det linalg_solve linalg_solve_ex linalg_tensorsolve", refuses=no_code("h", "lu_cpu", empty=False))
describe("linalg_det.out linalg_inv.out linalg_solve.out", out_check=out_checks.check_same)
describe(
    "linalg_solve_triangular.out",
    out_check=out_checks.only_same("expected scalar type {wanted} but found {given}"),
)
