"""Gradients of matrix decompositions: see `backward`.

In: gradients of the parts (None for those that nothing depends on), the parts.  Out: the gradient of the matrix.

Note [Gradients of decompositions]
A small change dA shows in the parts as what keeps them orthogonal, triangular or diagonal.  So each gradient is: turn
into the basis of the parts, keep what such a change can be (the skew half for an orthogonal part, a triangle for a
triangular one), divide by the gaps between values, turn back.  All speak of conjugates themselves.
"""

from __future__ import annotations

import numpy as np

from engine.aten.dispatch.compose import cast, run, where
from engine.aten.dispatch.table import op
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor, from_numpy
from engine.lang.errors import OperatorError

Part = Tensor | None


def _diagonal(x: Tensor) -> Tensor:
    part: Tensor = x.diagonal(0, -2, -1)
    return part


def _with_diagonal(x: Tensor, values: Tensor | float) -> Tensor:
    """The matrices with other numbers on their diagonal."""
    rows, columns = x.shape[-2:]
    mask = from_numpy(np.eye(rows, columns, dtype=np.bool_))
    if isinstance(values, Tensor):
        return where(mask, values.unsqueeze(-2) if rows >= columns else values.unsqueeze(-1), x)
    return where(mask, values, x)


def _gaps(values: Tensor) -> Tensor:
    """Pairwise differences of the values, with 1 on the diagonal."""
    return _with_diagonal(values.unsqueeze(-2) - values.unsqueeze(-1), 1)


def _lower(x: Tensor, offset: int = -1) -> Tensor:
    part: Tensor = run("tril", x, offset)
    return part


def _upper(x: Tensor) -> Tensor:
    part: Tensor = run("triu", x, 0)
    return part


def _scaled(x: Tensor, numbers: Tensor) -> Tensor:
    """Columns times real numbers."""
    scaled: Tensor = x * cast(numbers, x.array.dtype).unsqueeze(-2)
    return scaled


def _sum(*terms: Part) -> Tensor:
    given = [term for term in terms if term is not None]
    total = given[0]
    for term in given[1:]:
        total = total + term
    return total


def _refuse_phases(name: str, vectors: str, loss: Tensor) -> None:
    """Vectors are known up to a factor e^(i phi): raise OperatorError where a complex loss depends on it."""
    turning = np.asarray(loss.array)
    if turning.dtype in xp.COMPLEX and not np.allclose(turning.imag, 0, 1e-2, 1e-2):
        raise OperatorError(
            f"{name}: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. "
            "The specified loss function depends on this quantity, so it is ill-defined."
        )


# ------------------------------------------------------------------ singular values


def svd_backward(of_u: Part, of_s: Part, of_vh: Part, full: bool, u: Tensor, s: Tensor, vh: Tensor) -> Tensor:
    """Through A = U diag(S) Vh; of full bases only the part that belongs to singular values counts."""
    count = s.shape[-1]
    if full:
        u, vh = u.narrow(-1, 0, count), vh.narrow(-2, 0, count)
        of_u = None if of_u is None else of_u.narrow(-1, 0, count)
        of_vh = None if of_vh is None else of_vh.narrow(-2, 0, count)
    if of_u is None and of_vh is None:
        assert of_s is not None
        through: Tensor = _scaled(u, of_s).matmul(vh)
        return through
    turned_u = None if of_u is None else u.mH.matmul(of_u)
    turned_v = None if of_vh is None else vh.matmul(of_vh.mH)
    _refuse_phases("svd_backward", "singular vectors", _sum(*map(_diagonal_of, (turned_u, turned_v))))
    result: Tensor = u.matmul(_svd_inner(turned_u, of_s, turned_v, s)).matmul(vh)
    if of_u is not None and turned_u is not None and u.shape[-2] > count:
        result = result + _scaled(of_u - u.matmul(turned_u), s.reciprocal()).matmul(vh)
    if of_vh is not None and turned_v is not None and vh.shape[-1] > count:
        result = result + _scaled(u, s.reciprocal()).matmul(of_vh - turned_v.mH.matmul(vh))
    return result


def svdvals_backward(grad: Tensor, self: Tensor) -> Tensor:
    u, _, vh = run("_svd", self, False)
    result: Tensor = _scaled(u, grad).matmul(vh)
    return result


def _diagonal_of(x: Part) -> Part:
    return None if x is None else _diagonal(x)


def _svd_inner(turned_u: Part, of_s: Part, turned_v: Part, s: Tensor) -> Tensor:
    """The gradient in the basis of the singular vectors."""
    gaps = _gaps(s * s)
    terms: list[Part] = []
    if turned_u is not None:
        terms.append(_scaled((turned_u - turned_u.mH) / gaps, s))
        if turned_u.array.dtype in xp.COMPLEX:
            skew = _diagonal(turned_u - turned_u.mH) / (s * 2)
            terms.append(run("diag_embed", skew, 0, -2, -1))
    if turned_v is not None:
        terms.append((turned_v - turned_v.mH) / gaps * cast(s, turned_v.array.dtype).unsqueeze(-1))
    inner = _sum(*terms)
    return inner if of_s is None else inner + run("diag_embed", cast(of_s, inner.array.dtype), 0, -2, -1)


# ------------------------------------------------------------------ eigenvalues


def eig_backward(of_values: Part, of_vectors: Part, values: Tensor, vectors: Tensor) -> Tensor:
    """Through A V = V diag(L), where the columns of V have length 1."""
    turned = vectors.mH
    if of_vectors is None:
        assert of_values is not None
        inner = of_values.unsqueeze(-1) * turned
    else:
        pushed = turned.matmul(of_vectors)
        diagonal = _diagonal(pushed)
        _refuse_phases("linalg_eig_backward", "eigenvectors", diagonal)
        tangent = pushed - _scaled(turned.matmul(vectors), run("real", diagonal))
        middle = tangent / _gaps(values).conj()
        zeros = diagonal * 0
        inner = _with_diagonal(middle, zeros if of_values is None else of_values).matmul(turned)
    result: Tensor = run("linalg_solve", turned, inner, True)
    return result


def eigh_backward(of_values: Part, of_vectors: Part, values: Tensor, vectors: Tensor) -> Tensor:
    """Through eigenvalues and eigenvectors of a Hermitian matrix; equal eigenvalues have no gradient."""
    turned = vectors.mH
    if of_vectors is None:
        assert of_values is not None
        through: Tensor = _scaled(vectors, of_values).matmul(turned)
        return through
    pushed = turned.matmul(of_vectors)
    _refuse_phases("linalg_eigh_backward", "eigenvectors", _diagonal(pushed))
    inner = (pushed - pushed.mH) / 2 / _gaps(values)
    diagonal = _diagonal(inner) * 0 if of_values is None else cast(of_values, inner.array.dtype)
    result: Tensor = vectors.matmul(_with_diagonal(inner, diagonal)).matmul(turned)
    return result


# ------------------------------------------------------------------ QR


def qr_backward(of_q: Part, of_r: Part, q: Tensor, r: Tensor, mode: str) -> Tensor:
    """Through A = Q R; the columns beyond a square depend on the first ones."""
    if mode == "r":
        raise OperatorError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients"
        )
    rows, columns = q.shape[-2], r.shape[-1]
    if mode == "complete" and rows > columns:
        raise OperatorError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.",
            hints=("use mode='reduced'",),
        )
    if rows >= columns:
        return _tall_qr_backward(of_q, of_r, q, r)
    square, rest = r.narrow(-1, 0, rows), r.narrow(-1, rows, columns - rows)
    if of_r is None:
        first = _tall_qr_backward(of_q, None, q, square)
        return run("cat", [first, rest * 0], -1) if of_q is not None else first
    of_rest = of_r.narrow(-1, rows, columns - rows)
    through = q.matmul(rest).matmul(of_rest.mH)
    first = _tall_qr_backward(_sum(of_q, through), of_r.narrow(-1, 0, rows), q, square)
    whole: Tensor = run("cat", [first, q.matmul(of_rest)], -1)
    return whole


def _tall_qr_backward(of_q: Part, of_r: Part, q: Tensor, r: Tensor) -> Tensor:
    of_both = _sum(
        None if of_r is None else of_r.matmul(r.mH), None if of_q is None else -q.mH.matmul(of_q)
    )  # fmt: skip
    triangle = _upper(of_both)
    diagonal = run("real", _diagonal(triangle)) if triangle.array.dtype in xp.COMPLEX else _diagonal(triangle)
    both = _with_diagonal(triangle + triangle.mH, cast(diagonal, triangle.array.dtype))
    inner = _sum(of_q, q.matmul(both))
    result: Tensor = run("linalg_solve_triangular", r.mH, inner, False, False, False)
    return result


# ------------------------------------------------------------------ LU


def lu_backward(of_lower: Part, of_upper: Part, p: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Through A = P L U, of which one may be longer than square."""
    rows, columns, count = lower.shape[-2], upper.shape[-1], lower.shape[-1]
    l1, u1 = lower.narrow(-2, 0, count), upper.narrow(-1, 0, count)
    below = None if of_lower is None else l1.mH.matmul(of_lower.narrow(-2, 0, count))
    above = None if of_upper is None else of_upper.narrow(-1, 0, count).matmul(u1.mH)
    if columns > count and of_upper is not None:
        rest = upper.narrow(-1, count, columns - count)
        of_rest = of_upper.narrow(-1, count, columns - count)
        below = _sum(below, -of_rest.matmul(rest.mH))
    if rows > count and of_lower is not None:
        rest = lower.narrow(-2, count, rows - count)
        of_rest = of_lower.narrow(-2, count, rows - count)
        above = _sum(above, -rest.mH.matmul(of_rest))
    inner = _sum(None if below is None else _lower(below), None if above is None else _upper(above))
    whole = _solved_left(l1, _solved_right(u1, inner))
    if columns > count:
        more = upper.narrow(-1, count, columns - count) * 0 if of_upper is None else _solved_left(
            l1, of_upper.narrow(-1, count, columns - count))  # fmt: skip
        whole = run("cat", [whole, more], -1)
    if rows > count:
        more = lower.narrow(-2, count, rows - count) * 0 if of_lower is None else _solved_right(
            u1, of_lower.narrow(-2, count, rows - count))  # fmt: skip
        whole = run("cat", [whole, more], -2)
    return p.matmul(whole) if p.array.size or not whole.array.size else whole


def _solved_left(lower: Tensor, x: Tensor) -> Tensor:
    """L^-H X, with ones on the diagonal of L."""
    result: Tensor = run("linalg_solve_triangular", lower.mH, x, True, True, True)
    return result


def _solved_right(upper: Tensor, x: Tensor) -> Tensor:
    """X U^-H."""
    result: Tensor = run("linalg_solve_triangular", upper.mH, x, False, False, False)
    return result


def lu_factor_backward(grad: Tensor, factors: Tensor, pivots: Tensor, pivot: bool) -> Tensor:
    """The same where L and U are stored in one matrix."""
    count = min(factors.shape[-2:])
    p, lower, upper = run("lu_unpack", factors, pivots, True, pivot)
    return lu_backward(_lower(grad.narrow(-1, 0, count)), _upper(grad.narrow(-2, 0, count)), p, lower, upper)


def lu_unpack_backward(of_lower: Part, of_upper: Part, factors: Tensor) -> Tensor:
    """Both triangles in one matrix."""
    rows, columns = factors.shape[-2:]
    lower = None if of_lower is None else _widened(_lower(of_lower), rows, columns)
    upper = None if of_upper is None else _widened(_upper(of_upper), rows, columns)
    return factors * 0 if lower is None and upper is None else _sum(lower, upper)


def _widened(x: Tensor, rows: int, columns: int) -> Tensor:
    """The matrices with zeros on the right and below."""
    more = [0, columns - x.shape[-1], 0, rows - x.shape[-2]]
    padded: Tensor = run("constant_pad_nd", x, more, 0) if any(more) else x
    return padded


def lu_solve_backward(
    grad: Tensor, factors: Tensor, pivots: Tensor, result: Tensor, left: bool, adjoint: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the factors and of the right hand side."""
    of_b = run("linalg_lu_solve", factors, pivots, grad, left, not adjoint)
    of_matrix = -of_b.matmul(result.mH) if left else -result.mH.matmul(of_b)
    of_matrix = of_matrix.mH if adjoint else of_matrix
    p, lower, upper = run("lu_unpack", factors, pivots, True, True)
    turned = p.mT.matmul(of_matrix)
    of_factors = _lower(turned.matmul(upper.mH)) + _upper(lower.mH.matmul(turned))
    return of_factors, of_b


# ------------------------------------------------------------------ triangles, least squares, exponentials


def cholesky_backward(grad: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """Through A = L L^H."""
    lower, slope = (factor.mH, grad.mH) if upper else (factor, grad)
    triangle = _lower(lower.mH.matmul(slope), 0)
    inner = (triangle + _lower(triangle).mH) / 2
    half = run("linalg_solve_triangular", lower.mH, inner, True, True, False)
    whole: Tensor = run("linalg_solve_triangular", lower, half, False, False, False)
    return whole


def cholesky_solve_backward(
    grad: Tensor, input2: Tensor, upper: bool, result: Tensor
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients of the right hand side and of the factor."""
    of_b = run("cholesky_solve", grad, input2, upper)
    common = of_b.matmul(result.mH)
    both = common + common.mH
    return of_b, -(input2.matmul(both) if upper else both.matmul(input2))


def cholesky_inverse_backward(grad: Tensor, self: Tensor, upper: bool, result: Tensor) -> Tensor:
    both = result.matmul(grad + grad.mH).matmul(result)
    of_factor: Tensor = -(self.matmul(both) if upper else both.matmul(self))
    return of_factor


def lstsq_backward(
    of_solution: Part, of_residuals: Part, self: Tensor, b: Tensor, solution: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the matrix and of the right hand side: the solution is pinv(A) B."""
    vector = b.ndim == self.ndim - 1 and b.shape == self.shape[:-1]
    columns, x = (t.unsqueeze(-1) if vector else t for t in (b, solution))
    of_matrix: Part = None
    of_columns: Part = None
    if of_solution is not None:
        slope = of_solution.unsqueeze(-1) if vector else of_solution
        inverse = run("linalg_pinv.atol_rtol_float", self, None, None, False)
        of_matrix = run("_pinv_backward", slope.matmul(columns.mH), self, inverse)
        of_columns = inverse.mH.matmul(slope)
    if of_residuals is not None and of_residuals.array.size:
        missed = _scaled(self.matmul(x) - columns, of_residuals * 2)
        of_matrix = _sum(of_matrix, missed.matmul(x.mH))
        of_columns = _sum(of_columns, -missed)
    if of_matrix is None or of_columns is None:
        return self * 0, b * 0
    return of_matrix, of_columns.squeeze(-1) if vector else of_columns


def matrix_exp_backward(grad: Tensor, self: Tensor) -> Tensor:
    """The derivative in a direction is the upper right block of the exponential of [[A, direction], [0, A]]."""
    n = self.shape[-1]
    turned = self.mH
    above = run("cat", [turned, grad.expand(list(turned.shape))], -1)
    below = run("cat", [turned * 0, turned], -1)
    whole = run("linalg_matrix_exp", run("cat", [above, below], -2))
    block: Tensor = whole.narrow(-2, 0, n).narrow(-1, n, n)
    return block


_GIVEN = "Tensor? of_values, Tensor? of_vectors"
op("aten::_svd_backward(Tensor? of_u, Tensor? of_s, Tensor? of_vh, bool full, Tensor u, Tensor s, Tensor vh) -> Tensor",
   python=svd_backward)  # fmt: skip
op("aten::_svdvals_backward(Tensor grad, Tensor self) -> Tensor", python=svdvals_backward)
op(f"aten::_eig_backward({_GIVEN}, Tensor values, Tensor vectors) -> Tensor", python=eig_backward)
op(f"aten::_eigh_backward({_GIVEN}, Tensor values, Tensor vectors) -> Tensor", python=eigh_backward)
op("aten::_qr_backward(Tensor? of_q, Tensor? of_r, Tensor q, Tensor r, str mode) -> Tensor", python=qr_backward)
op("aten::_lu_backward(Tensor? of_lower, Tensor? of_upper, Tensor p, Tensor lower, Tensor upper) -> Tensor",
   python=lu_backward)  # fmt: skip
op("aten::_lu_factor_backward(Tensor grad, Tensor factors, Tensor pivots, bool pivot) -> Tensor",
   python=lu_factor_backward)  # fmt: skip
op("aten::_lu_unpack_backward(Tensor? of_lower, Tensor? of_upper, Tensor factors) -> Tensor",
   python=lu_unpack_backward)  # fmt: skip
op("aten::_lu_solve_backward(Tensor grad, Tensor factors, Tensor pivots, Tensor result, bool left, bool adjoint) "
   "-> (Tensor, Tensor)", python=lu_solve_backward)  # fmt: skip
op("aten::_cholesky_backward(Tensor grad, Tensor factor, bool upper) -> Tensor", python=cholesky_backward)
op("aten::_cholesky_solve_backward(Tensor grad, Tensor input2, bool upper, Tensor result) -> (Tensor, Tensor)",
   python=cholesky_solve_backward)  # fmt: skip
op("aten::_cholesky_inverse_backward(Tensor grad, Tensor self, bool upper, Tensor result) -> Tensor",
   python=cholesky_inverse_backward)  # fmt: skip
op("aten::_lstsq_backward(Tensor? of_solution, Tensor? of_residuals, Tensor self, Tensor b, Tensor solution) "
   "-> (Tensor, Tensor)", python=lstsq_backward)  # fmt: skip
op("aten::_matrix_exp_backward(Tensor grad, Tensor self) -> Tensor", python=matrix_exp_backward)
