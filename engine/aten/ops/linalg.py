"""Linear algebra: solving, inverting, norms, and products.

In: arrays (*batch, rows, columns) of float32, float64 or complex types.  Out: arrays.  Most operators are made of a few
that decompose a matrix (see `factorizations`), from which their gradients come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten import xp
from engine.aten.compose import run, where
from engine.aten.op import op, out_form
from engine.aten.promotion import result_type
from engine.aten.rules import check_same_dtype, wrap_dim, wrap_dims
from engine.aten.tensor import Tensor
from engine.aten.xp import Array
from engine.lang.errors import OperatorError

OUT: Final = "function out"
METHOD: Final = "function method out"
ALL: Final = "function method inplace out"

# ------------------------------------------------------------------ checks


def check_matrix(name: str, x: Array, argument: str = "A") -> None:
    """Raise OperatorError unless `x` is a batch of matrices of a type that can be decomposed."""
    if x.ndim < 2:
        raise OperatorError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    if x.dtype in xp.HALVES:
        raise OperatorError(f"{name}: Low precision dtypes not supported. Got {xp.ir_name(x.dtype)}")
    if x.dtype.kind not in "fc":
        raise OperatorError(
            f"{name}: Expected a floating point or complex tensor as input. Got {xp.ir_name(x.dtype)}"
        )


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
    singular = np.asarray(np.linalg.matrix_rank(A) < A.shape[-1])
    info = np.where(singular, A.shape[-1], 0).astype(np.int32)
    safe = np.where(singular[..., None, None], np.eye(A.shape[-1], dtype=A.dtype), A)
    result = np.where(singular[..., None, None], np.inf, np.linalg.solve(safe, B)).astype(A.dtype)
    return result, info


def refuse_singular(name: str, info: Array) -> None:
    if not np.any(info):
        return
    batch = f"(Batch element {int(np.flatnonzero(info)[0])}): " if info.ndim else ""
    raise OperatorError(
        f"{name}: {batch}The diagonal element {int(info.flat[np.flatnonzero(info)[0]])} is zero, "
        "the inversion could not be completed because the input matrix is singular."
        if name == "linalg.inv"
        else f"{name}: {batch}The solver failed because the input matrix is singular."
    )


def inv(A: Tensor) -> Tensor:
    inverse, info = run("linalg_inv_ex", A, False)
    refuse_singular("linalg.inv", info.array)
    result: Tensor = inverse
    return result


def _is_vector(A: Array, B: Array) -> bool:
    """Is B a batch of vectors, rather than of matrices?"""
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
        refuse_singular("linalg.solve", info.array)
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
    """NaN where the determinant is negative."""
    sign, logarithm = slogdet(self)
    return where(run("eq.Scalar", sign, -1), float("nan"), logarithm)


# ------------------------------------------------------------------ norms


def matrix_norm(self: Tensor, ord: Any, dim: Sequence[int], keepdim: bool, dtype: int | None) -> Tensor:
    if self.ndim < 2:
        raise OperatorError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    dims = wrap_dims(dim, self.ndim)
    if len(dims) != 2:
        raise OperatorError("linalg.matrix_norm: dim must be a 2-tuple. Got " + " ".join(map(str, dim)))
    if dtype is not None:
        self = run("to.dtype", self, dtype, False, False, None)
    if abs(ord) == 2:
        return _of_singular_values(self, dims, keepdim, "amax" if ord > 0 else "amin")
    if abs(ord) not in (1, math.inf):
        raise OperatorError(f"linalg.matrix_norm: Order {ord} not supported.")
    first, second = dims if abs(ord) == 1 else dims[::-1]
    sums = run("sum.dim_IntList", self.abs(), [first], True, None)
    result: Tensor = run("amax" if ord > 0 else "amin", sums, [second], True)
    return result if keepdim else result.squeeze(list(dims))


def matrix_norm_named(self: Tensor, ord: str, dim: Sequence[int], keepdim: bool, dtype: int | None) -> Tensor:
    if ord not in ("fro", "nuc"):
        raise OperatorError(f"linalg.matrix_norm: Order {ord} not supported.")
    if self.ndim < 2:
        raise OperatorError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if ord == "fro":
        result: Tensor = run("linalg_vector_norm", self, 2, list(dim), keepdim, dtype)
        return result
    if dtype is not None:
        self = run("to.dtype", self, dtype, False, False, None)
    return _of_singular_values(self, wrap_dims(dim, self.ndim), keepdim, "sum")


def _of_singular_values(self: Tensor, dims: tuple[int, ...], keepdim: bool, name: str) -> Tensor:
    values = run("linalg_svdvals", self.movedim(list(dims), [-2, -1]), None)
    result: Tensor = run("sum.dim_IntList", values, [-1], False, None) if name == "sum" else run(name, values, [-1], False)
    for dim in sorted(dims) if keepdim else ():
        result = result.unsqueeze(dim)
    return result


def norm(self: Tensor, ord: Any, dim: Sequence[int] | None, keepdim: bool, dtype: int | None) -> Tensor:
    """Of vectors or matrices: two dimensions and an order ask for matrices."""
    dims = list(dim) if dim is not None else None
    if ord is not None and ((dims is None and self.ndim == 2) or (dims is not None and len(dims) == 2)):
        return matrix_norm(self, ord, dims or [0, 1], keepdim, dtype)
    if ord is not None and dims is None and self.ndim != 1:
        raise OperatorError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
            f"Got {self.ndim}D."
        )
    result: Tensor = run("linalg_vector_norm", self, 2 if ord is None else ord, dims, keepdim, dtype)
    return result


def norm_named(self: Tensor, ord: str, dim: Sequence[int] | None, keepdim: bool, dtype: int | None) -> Tensor:
    if dim is None and self.ndim != 2:
        raise OperatorError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D."
        )
    return matrix_norm_named(self, ord, [0, 1] if dim is None else list(dim), keepdim, dtype)


def frobenius_norm(self: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
    result: Tensor = run("linalg_vector_norm", self, 2, list(dim) or None, keepdim, None)
    return result


def nuclear_norm(self: Tensor, keepdim: bool) -> Tensor:
    return matrix_norm_named(self, "nuc", [-2, -1], keepdim, None)


def nuclear_norm_dims(self: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
    return matrix_norm_named(self, "nuc", dim, keepdim, None)


def cond(self: Tensor, p: Any) -> Tensor:
    """How much solving with the matrix may magnify errors."""
    if p is None or abs(p) == 2:
        check_matrix("linalg.cond", self.array)
        values = run("linalg_svdvals", self, None)
        largest, smallest = values.select(-1, 0), values.select(-1, -1)
        ratio: Tensor = smallest / largest if p == -2 else largest / smallest
        return ratio
    return _cond_by(self, lambda x: matrix_norm(x, p, [-2, -1], False, None))


def cond_named(self: Tensor, p: str) -> Tensor:
    return _cond_by(self, lambda x: matrix_norm_named(x, p, [-2, -1], False, None))


def _cond_by(self: Tensor, measure: Callable[[Tensor], Tensor]) -> Tensor:
    check_square("linalg.cond", self.array)
    inverse, info = run("linalg_inv_ex", self, False)
    infinite: Tensor = where(run("eq.Scalar", info, 0), measure(self) * measure(inverse), math.inf)
    return infinite


def dist(self: Tensor, other: Tensor, p: float) -> Tensor:
    result: Tensor = run("norm.Scalar", self - other, p)
    return result


def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices along `dim` shrunk to a p-norm of at most `maxnorm`."""
    if self.ndim < 2:
        raise OperatorError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    axis = wrap_dim(dim, self.ndim)
    others = [i for i in range(self.ndim) if i != axis]
    size = run("linalg_vector_norm", self, p, others, True, None)
    factor = where(run("gt.Scalar", size, maxnorm), maxnorm / (size + 1e-7), 1.0)
    return self * factor.to(self.dtype)


# ------------------------------------------------------------------ products


def vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    result: Tensor = run("sum.dim_IntList", x.conj() * y, [dim], False, None)
    return result


def cross_kernel(self: Array, other: Array, dim: int) -> Array:
    if self.ndim != other.ndim:
        raise OperatorError("linalg.cross: inputs must have the same number of dimensions.")
    axis = wrap_dim(dim, self.ndim)
    if self.shape[axis] != 3 or other.shape[axis] != 3:
        raise OperatorError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[axis]} and {other.shape[axis]}"
        )
    a, b = (np.moveaxis(v.astype(result_type((self, other)), copy=False), axis, 0) for v in (self, other))
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.stack(parts, axis=axis)


def cross(self: Tensor, other: Tensor, dim: int | None) -> Tensor:
    """Along the first dimension of size 3, if none is given."""
    if dim is None:
        dim = next((i for i, size in enumerate(self.shape) if size == 3), None)
        if dim is None:
            raise OperatorError("no dimension of size 3 in input")
    result: Tensor = run("linalg_cross", self, other, dim)
    return result


def matrix_power(self: Tensor, n: int) -> Tensor:
    check_square("linalg.matrix_power", self.array)
    if n == 0:
        identity: Tensor = run("zeros_like", self, None, None, None, None, None)
        identity.diagonal(0, -2, -1).fill_(1)
        return identity
    base = inv(self) if n < 0 else self
    n, result = abs(n), None
    while n:
        if n & 1:
            result = base if result is None else result.matmul(base)
        n >>= 1
        base = base.matmul(base) if n else base
    assert result is not None
    return result if result is not self else self.clone()


def matrix_exp(self: Array) -> Array:
    """By scaling, a Taylor polynomial of degree 18, and squaring."""
    check_square("linalg.matrix_exp", self)
    if self.size == 0:
        return self.copy()
    size = np.max(np.sum(np.abs(self), axis=-2))
    squarings = max(0, int(math.ceil(math.log2(float(size) + 1e-300))) + 1)
    x = self.astype(np.complex128 if self.dtype.kind == "c" else np.float64) / 2.0**squarings
    identity = np.broadcast_to(np.eye(self.shape[-1], dtype=x.dtype), x.shape)
    total = identity
    for k in range(18, 0, -1):
        total = identity + (x @ total) / k
    for _ in range(squarings):
        total = total @ total
    return total.astype(self.dtype)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the order that takes fewest multiplications."""
    if len(tensors) < 2:
        raise OperatorError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    first, *middle, last = tensors
    if any(t.ndim != 2 for t in middle) or first.ndim not in (1, 2) or last.ndim not in (1, 2):
        raise OperatorError("multi_dot(): the tensors must be 2D, the first and last may be 1D")
    chain = [first.unsqueeze(0) if first.ndim == 1 else first, *middle, last.unsqueeze(1) if last.ndim == 1 else last]
    result = _product(chain, _best_splits([chain[0].shape[0], *(t.shape[1] for t in chain)]), 0, len(chain) - 1)
    result = result.squeeze(0) if first.ndim == 1 else result
    result = result.squeeze(-1) if last.ndim == 1 else result
    return result


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """For every stretch of the chain, after which factor to split it."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(options)
    return split


def _product(chain: Sequence[Tensor], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return chain[i]
    k = split[i, j]
    result: Tensor = _product(chain, split, i, k).mm(_product(chain, split, k + 1, j))
    return result


def chain_matmul(matrices: Sequence[Tensor]) -> Tensor:
    if any(m.ndim != 2 for m in matrices):
        raise OperatorError("chain_matmul: expected 2-D matrices")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


def tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    if len(dims_self) != len(dims_other):
        raise OperatorError("both dimension lists should have same length")
    first, second = wrap_dims(dims_self, self.ndim), wrap_dims(dims_other, other.ndim)
    for a, b in zip(first, second, strict=True):
        if self.shape[a] != other.shape[b] and 1 not in (self.shape[a], other.shape[b]):
            raise OperatorError(
                f"contracted dimensions need to match, but first has size {self.shape[a]} in dim {a} and second has "
                f"size {other.shape[b]} in dim {b}"
            )
        if self.shape[a] != other.shape[b]:
            self = run("sum.dim_IntList", self, [a], True, None) if self.shape[a] != 1 else self
            other = run("sum.dim_IntList", other, [b], True, None) if other.shape[b] != 1 else other
    kept_a = [i for i in range(self.ndim) if i not in first]
    kept_b = [i for i in range(other.ndim) if i not in second]
    size = math.prod(self.shape[i] for i in first)
    rows = self.permute([*kept_a, *first]).reshape([math.prod(self.shape[i] for i in kept_a), size])
    columns = other.permute([*second, *kept_b]).reshape([size, math.prod(other.shape[i] for i in kept_b)])
    result: Tensor = rows.mm(columns).reshape([*(self.shape[i] for i in kept_a), *(other.shape[i] for i in kept_b)])
    return result


def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    product = run("sum.dim_IntList", batch1.bmm(batch2), [0], False, None).to(batch1.dtype)
    return _scaled(self, product, beta, alpha)


def _scaled(self: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * self + alpha * product; with beta 0, self is not looked at."""
    scaled: Tensor = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled if tuple(scaled.shape) == tuple(product.shape) and scaled is not self else scaled.clone()
    result: Tensor = (self if beta == 1 else self * beta) + scaled
    return result


def addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> Tensor:
    if mat.ndim != 2 or vec.ndim != 1:
        raise OperatorError(
            f"vector + matrix @ vector expected, got {self.ndim}, {mat.ndim}, {vec.ndim}",
        )
    if mat.shape[1] != vec.shape[0]:
        raise OperatorError(
            f"size mismatch, got input ({self.shape[0] if self.ndim else 1}), mat ({mat.shape[0]}x{mat.shape[1]}), "
            f"vec ({vec.shape[0]})"
        )
    return _scaled(self, mat.mv(vec), beta, alpha)


def addr(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any) -> Tensor:
    for name, vec in (("vec1", vec1), ("vec2", vec2)):
        if vec.ndim != 1:
            raise OperatorError(f"addr: Expected 1-D argument {name}, but got {vec.ndim}-D")
    return _scaled(self, vec1.outer(vec2), beta, alpha)


def trace(self: Tensor) -> Tensor:
    if self.ndim != 2:
        raise OperatorError("trace: expected a matrix")
    result: Tensor = run("diagonal", self, 0, 0, 1).sum()
    return result


def kron(self: Tensor, other: Tensor) -> Tensor:
    """Every element of `self` times all of `other`."""
    ndim = max(self.ndim, other.ndim)
    a, b = ([1] * (ndim - t.ndim) + list(t.shape) for t in (self, other))
    left = self.reshape([size for n in a for size in (n, 1)])
    right = other.reshape([size for n in b for size in (1, n)])
    result: Tensor = (left * right).reshape([m * n for m, n in zip(a, b, strict=True)])
    return result


def inner(self: Tensor, other: Tensor) -> Tensor:
    if self.ndim == 0 or other.ndim == 0:
        return self * other
    if self.shape[-1] != other.shape[-1]:
        raise OperatorError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and "
            f"{list(other.shape)}"
        )
    return tensordot(self, other, [-1], [-1])


def vdot(self: Tensor, other: Tensor) -> Tensor:
    result: Tensor = self.conj().dot(other)
    return result


def vander(x: Tensor, N: int | None, increasing: bool) -> Tensor:
    powers = vandermonde(x, N)
    return powers if increasing else powers.flip([-1])


def linalg_vander(x: Tensor, N: int | None) -> Tensor:
    if N is not None and N <= 1:
        raise OperatorError("N must be greater than 1.")
    return vandermonde(x, N)


def vandermonde(x: Tensor, count: int | None) -> Tensor:
    """Rows of powers 0, 1, 2, ..."""
    size = x.shape[-1] if count is None else count
    whole = x.to(result_whole(x))
    ones = run("ones_like", whole.unsqueeze(-1), None, None, None, None, None)
    if size < 2:
        return ones.narrow(-1, 0, size)
    repeated = whole.unsqueeze(-1).expand([*x.shape, size - 1])
    powers: Tensor = run("cat", [ones, repeated.cumprod(-1)], -1)
    return powers


def result_whole(x: Tensor) -> Any:
    """The dtype that products of the tensor's numbers take: whole numbers become int64."""
    return xp.FROM_NUMPY[xp.INT64] if x.array.dtype.kind in "iub" else x.dtype


def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """Matrices along the diagonal, zeros elsewhere."""
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise OperatorError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions"
            )
    blocks = [t.reshape([1, -1]) if t.ndim < 2 else t for t in tensors]
    d = result_type([b.array for b in blocks])
    width, before, rows = sum(b.shape[1] for b in blocks), 0, []
    for block in blocks:
        after = width - before - block.shape[1]
        rows.append(run("constant_pad_nd", block.to(xp.FROM_NUMPY[d]), [before, after], 0))
        before += block.shape[1]
    result: Tensor = run("cat", rows, 0)
    return result


# ------------------------------------------------------------------ entries

_NUMBER: Final = "Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None"
_NORM: Final = "int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None"
_SCALES: Final = "*, Scalar beta=1, Scalar alpha=1"
op(f"aten::linalg_norm(Tensor self, Scalar? ord=None, {_NORM}) -> Tensor", python=norm, variants=OUT)
op(f"aten::linalg_norm.ord_str(Tensor self, str ord, {_NORM}) -> Tensor", python=norm_named, variants=OUT)
op(f"aten::linalg_matrix_norm(Tensor self, {_NUMBER}) -> Tensor", python=matrix_norm, variants=OUT)
op('aten::linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, '
   "ScalarType? dtype=None) -> Tensor", python=matrix_norm_named, variants=OUT)  # fmt: skip
op("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", python=frobenius_norm,
   variants="function out:out")  # fmt: skip
op("aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", python=nuclear_norm, variants=OUT)
op("aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", python=nuclear_norm_dims,
   variants=OUT)  # fmt: skip
op("aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor", python=cond, variants=OUT)
op("aten::linalg_cond.p_str(Tensor self, str p) -> Tensor", python=cond_named, variants=OUT)
op("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", python=dist, variants=METHOD)
op("aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", python=renorm, variants=ALL)

out_form(op("aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
            kernel=inv_ex, gradient={"A": "-result0.mH.matmul(grad).matmul(result0.mH)"}),
         "inverse", "inverse info")  # fmt: skip
op("aten::linalg_inv(Tensor A) -> Tensor", python=inv, variants=OUT)
op("aten::_solve(Tensor A, Tensor B) -> (Tensor result, Tensor info)", kernel=solve_kernel,
   gradient={"A": "-linalg_solve(A.mH, grad).matmul(result0.mH)", "B": "linalg_solve(A.mH, grad)"})  # fmt: skip
out_form(op("aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
            "(Tensor result, Tensor info)", python=solve_ex), "out", "result info")  # fmt: skip
op("aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", python=solve, variants=OUT)
op("aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) "
   "-> Tensor", kernel=solve_triangular, variants=OUT)  # fmt: skip
out_form(op("aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
            "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)", python=triangular_solve,
            variants="function method"), "X", "X M")  # fmt: skip
op("aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor", python=tensorinv, variants=OUT)
op("aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", python=tensorsolve, variants=OUT)

op("aten::_det(Tensor A) -> Tensor", kernel=lambda A: np.asarray(np.linalg.det(A)),
   gradient={"A": "(grad * result.conj()).unsqueeze(-1).unsqueeze(-1) * linalg_inv(A).mH"})  # fmt: skip
op("aten::linalg_det(Tensor A) -> Tensor", python=det, variants=OUT)
op("aten::_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", kernel=slogdet_kernel,
   gradient={"A": "grads[1].unsqueeze(-1).unsqueeze(-1) * linalg_inv(A).mH"})  # fmt: skip
_SLOGDET: Final = "-> (Tensor sign, Tensor logabsdet)"
out_form(op(f"aten::linalg_slogdet(Tensor A) {_SLOGDET}", python=slogdet), "out", "sign logabsdet")
out_form(op(f"aten::slogdet(Tensor self) {_SLOGDET}", python=slogdet, variants="function method"),
         "out", "sign logabsdet")  # fmt: skip
op("aten::logdet(Tensor self) -> Tensor", python=logdet, variants="function method")

op("aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", python=vecdot, variants=OUT)
op("aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", kernel=cross_kernel, variants=OUT,
   gradient={"self": "linalg_cross(other.conj(), grad, dim=dim)",
             "other": "linalg_cross(grad, self.conj(), dim=dim)"})  # fmt: skip
op("aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor", python=cross, variants=METHOD)
op("aten::linalg_matrix_power(Tensor self, int n) -> Tensor", python=matrix_power, variants=OUT)
op("aten::linalg_matrix_exp(Tensor self) -> Tensor", kernel=matrix_exp, variants=OUT)
op("aten::linalg_multi_dot(Tensor[] tensors) -> Tensor", python=multi_dot, variants=OUT)
op("aten::chain_matmul(Tensor[] matrices) -> Tensor", python=chain_matmul, variants=OUT)
op("aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", python=tensordot,
   variants=OUT)  # fmt: skip
op(f"aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, {_SCALES}) -> Tensor", python=addbmm, variants=ALL)
op(f"aten::addmv(Tensor self, Tensor mat, Tensor vec, {_SCALES}) -> Tensor", python=addmv, variants=ALL)
op(f"aten::addr(Tensor self, Tensor vec1, Tensor vec2, {_SCALES}) -> Tensor", python=addr, variants=ALL)
op("aten::trace(Tensor self) -> Tensor", python=trace, variants=METHOD)
op("aten::kron(Tensor self, Tensor other) -> Tensor", python=kron, variants=METHOD)
op("aten::inner(Tensor self, Tensor other) -> Tensor", python=inner, variants=METHOD)
op("aten::vdot(Tensor self, Tensor other) -> Tensor", python=vdot, variants=METHOD)
op("aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", python=vander)
op("aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", python=linalg_vander)
op("aten::block_diag(Tensor[] tensors) -> Tensor", python=block_diag, variants=OUT)
op("aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
   python=lambda A, offset, dim1, dim2: A.diagonal(offset, dim1, dim2))  # fmt: skip
