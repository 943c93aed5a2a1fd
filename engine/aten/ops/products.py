"""Products of matrices and vectors beyond `matmul`: powers, exponentials, chains, outer and cross products.

In: tensors.  Out: tensors.  Most are made of other operators, from which their gradients come.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import cast, run, where, widened
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import wrap_dim, wrap_dims
from engine.aten.ops.linalg import check_square, inv
from engine.aten.ops.matmul import check_dtypes, unlike
from engine.aten.values import xp
from engine.aten.values.promotion import default_dtype, result_type, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

OUT: Final = "function out"
METHOD: Final = "function method out"
ALL: Final = "function method inplace out"


def vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    a, b = x.array.dtype, y.array.dtype
    if a not in xp.INEXACT:
        raise OperatorError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {xp.ir_name(a)}")
    if a != b:
        raise OperatorError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {xp.ir_name(a)} and y of "
            f"type {xp.ir_name(b)} instead"
        )
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
    if self.dtype != other.dtype:
        raise OperatorError(f"expected scalar type {xp.ir_name(self.dtype)} but found {xp.ir_name(other.dtype)}")
    a, b = (np.moveaxis(v, axis, 0) for v in (self, other))
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.stack(parts, axis=axis)


def cross(self: Tensor, other: Tensor, dim: int | None) -> Tensor:
    """Cross product along `dim`, by default the first dimension of size 3."""
    if dim is None:
        dim = next((i for i, size in enumerate(self.shape) if size == 3), None)
        if dim is None:
            raise OperatorError("no dimension of size 3 in input")
    result: Tensor = run("linalg_cross", self, other, dim)
    return result


def matrix_power(self: Tensor, n: int) -> Tensor:
    check_square("linalg.matrix_power", np.empty(self.array.shape, xp.FLOAT32))  # whatever the dtype
    if n == 0:
        identity: Tensor = self.clone().copy_(Tensor(np.eye(self.shape[-1], dtype=self.array.dtype)))
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
    check_square("linalg.matrix_exp", self.astype(wide(self.dtype), copy=False))
    if self.size == 0:
        return self.copy()
    size = np.max(np.sum(np.abs(self.astype(wide(self.dtype), copy=False)), axis=-2))
    if not np.isfinite(size):
        return np.full(self.shape, np.nan, self.dtype)
    squarings = max(0, math.ceil(math.log2(float(size) + 1e-300)) + 1)
    x = self.astype(np.complex128 if self.dtype in xp.COMPLEX else np.float64) / 2.0**squarings
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
    for i, (a, b) in enumerate(itertools.pairwise(tensors)):
        if a.shape[-1] != b.shape[0]:
            raise OperatorError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be "
                "multiplied"
            )
    chain = [first.unsqueeze(0) if first.ndim == 1 else first, *middle, last.unsqueeze(1) if last.ndim == 1 else last]
    result = _product(chain, _best_splits([chain[0].shape[0], *(t.shape[1] for t in chain)]), 0, len(chain) - 1)
    result = result.squeeze(0) if first.ndim == 1 else result
    return result.squeeze(-1) if last.ndim == 1 else result


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """For every interval of the chain, the factor after which to split it."""
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
    if self.dtype != other.dtype:
        raise OperatorError("both inputs should have same dtype")
    first, second = wrap_dims(dims_self, self.ndim), wrap_dims(dims_other, other.ndim)
    for a, b in zip(first, second, strict=True):
        if self.shape[a] != other.shape[b] and 1 not in (self.shape[a], other.shape[b]):
            raise OperatorError(
                f"contracted dimensions need to match, but first has size {self.shape[a]} in dim {a} and second has "
                f"size {other.shape[b]} in dim {b}"
            )
        if self.shape[a] != other.shape[b]:
            self = _summed(self, a) if self.shape[a] != 1 else self
            other = _summed(other, b) if other.shape[b] != 1 else other
    kept_a = [i for i in range(self.ndim) if i not in first]
    kept_b = [i for i in range(other.ndim) if i not in second]
    size = math.prod(self.shape[i] for i in first)
    rows = self.permute([*kept_a, *first]).reshape([math.prod(self.shape[i] for i in kept_a), size])
    columns = other.permute([*second, *kept_b]).reshape([size, math.prod(other.shape[i] for i in kept_b)])
    result: Tensor = rows.mm(columns).reshape([*(self.shape[i] for i in kept_a), *(other.shape[i] for i in kept_b)])
    return result


def _summed(x: Tensor, dim: int) -> Tensor:
    """The sum over a dimension, in the same dtype."""
    total: Tensor = run("sum.dim_IntList", x, [dim], True, x.dtype.number)
    return total


def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    if self.dtype != batch2.dtype:
        raise unlike(self.array, batch2.array)
    d = batch1.array.dtype
    product = run("sum.dim_IntList", widened(batch1).bmm(widened(batch2)), [0], False, xp.FROM_NUMPY[wide(d)].number)
    return cast(_scaled(widened(self), product, beta, alpha), d)


def _scaled(self: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * self + alpha * product; with beta 0, self is not looked at, though its gradient is zero."""
    if product.array.dtype in xp.INTEGERS:
        beta, alpha = int(beta), int(alpha)
    elif product.array.dtype == xp.BOOL:
        beta, alpha = bool(beta), bool(alpha)
    scaled: Tensor = product if alpha == 1 else product * alpha
    if beta == 0 and self.requires_grad:
        return where(Tensor(np.zeros((), np.bool_)), self, scaled)
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
    check_dtypes(self.array, mat.array, vec.array)
    return _scaled(self, mat.mv(vec), beta, alpha)


def addr(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any) -> Tensor:
    for name, vec in (("vec1", vec1), ("vec2", vec2)):
        if vec.ndim != 1:
            raise OperatorError(f"addr: Expected 1-D argument {name}, but got {vec.ndim}-D")
    d = result_type([self.array, vec1.array, vec2.array])
    for label, number in (("beta", beta), ("alpha", alpha)):
        if d in xp.INTEGRAL and isinstance(number, float):
            raise OperatorError(f"For integral input tensors, argument {label} must not be a floating point number.")
    if d not in xp.HALVES:
        return _scaled(self, vec1.outer(vec2), beta, alpha)
    # Rounded after every step, as element by element.
    b, a = (Tensor(np.asarray(number, d)) for number in (beta, alpha))
    product: Tensor = (cast(vec1, d) * a).outer(cast(vec2, d))
    return product if beta == 0 else self * b + product


def trace(self: Tensor) -> Tensor:
    if self.ndim != 2:
        raise OperatorError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
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
    if x.ndim != 1:
        raise OperatorError(f"vander takes one-dimensional tensors, not {x.ndim}-dimensional ones")
    powers = vandermonde(x, N)
    return powers if increasing else powers.flip([-1])


def linalg_vander(x: Tensor, N: int | None) -> Tensor:
    if N is not None and N <= 1:
        raise OperatorError("N must be greater than 1.")
    if x.array.dtype in xp.HALVES or x.array.dtype == xp.BOOL:
        raise OperatorError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {xp.ir_name(x.array.dtype)}"
        )
    return vandermonde(x.unsqueeze(0) if x.ndim == 0 else x, N)


def vandermonde(x: Tensor, count: int | None) -> Tensor:
    """Rows of powers 0, 1, 2, ..."""
    size = x.shape[-1] if count is None else count
    whole = x.to(result_whole(x))
    ones = run("ones_like", whole.unsqueeze(-1), None, None, None, None, None)
    if size < 2:
        few: Tensor = ones.narrow(-1, 0, size)
        return few
    repeated = whole.unsqueeze(-1).expand([*x.shape, size - 1])
    powers: Tensor = run("cat", [ones, repeated.cumprod(-1)], -1)
    return powers


def result_whole(x: Tensor) -> Any:
    """The dtype that products of the tensor's numbers take: whole numbers become int64."""
    return xp.FROM_NUMPY[xp.INT64] if x.array.dtype in xp.INTEGRAL else x.dtype


def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """Matrices along the diagonal, zeros elsewhere."""
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise OperatorError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions"
            )
    if not tensors:
        return Tensor(np.zeros((1, 0), default_dtype()))
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

_SCALES: Final = "*, Scalar beta=1, Scalar alpha=1"
op("aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", python=vecdot, variants=OUT, autocast="fast")
op("aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", kernel=cross_kernel, variants=OUT,
   gradient={"self": "linalg_cross(other.conj(), grad, dim=dim)",
             "other": "linalg_cross(grad, self.conj(), dim=dim)"})  # fmt: skip
op("aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor", python=cross, variants=METHOD,
   jit_autocast="widest")  # fmt: skip
op("aten::linalg_matrix_power(Tensor self, int n) -> Tensor", python=matrix_power, variants=OUT)
op("aten::linalg_matrix_exp(Tensor self) -> Tensor", kernel=matrix_exp, variants=OUT,
   gradient={"self": "_matrix_exp_backward(grad, self)"})  # fmt: skip
op("aten::linalg_multi_dot(Tensor[] tensors) -> Tensor", python=multi_dot, variants=OUT)
op("aten::chain_matmul(Tensor[] matrices) -> Tensor", python=chain_matmul, variants=OUT, hands_on=True)
op("aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", python=tensordot,
   variants=OUT, jit_autocast="widest")  # fmt: skip
op(f"aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, {_SCALES}) -> Tensor", python=addbmm, variants=ALL,
   jit_autocast="fast", autocast="fast")  # fmt: skip
op(f"aten::addmv(Tensor self, Tensor mat, Tensor vec, {_SCALES}) -> Tensor", python=addmv, variants=ALL,
   jit_autocast="fast")  # fmt: skip
op(f"aten::addr(Tensor self, Tensor vec1, Tensor vec2, {_SCALES}) -> Tensor", python=addr, variants=ALL,
   jit_autocast="fast")  # fmt: skip
op("aten::trace(Tensor self) -> Tensor", python=trace, variants=METHOD, autocast="full")
op("aten::kron(Tensor self, Tensor other) -> Tensor", python=kron, variants=METHOD)
op("aten::inner(Tensor self, Tensor other) -> Tensor", python=inner, variants=METHOD)
op("aten::vdot(Tensor self, Tensor other) -> Tensor", python=vdot, variants=METHOD)
op("aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", python=vander)
op("aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", python=linalg_vander)
op("aten::block_diag(Tensor[] tensors) -> Tensor", python=block_diag, variants=OUT)
op("aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
   python=lambda A, offset, dim1, dim2: A.diagonal(offset, dim1, dim2))  # fmt: skip


# ------------------------------------------------------------------ layouts

describe("addbmm", layout="contiguous")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("addbmm inner tensordot", refuses=no_code("b", "addmm_impl_cpu_"))
describe("addmv", refuses=no_code("b", "addmv_impl_cpu"))
describe("vdot", refuses=no_code("b", "dot"))
describe("cross linalg_cross", refuses=no_code("b", "cross"))
describe("trace", refuses=no_code("b", "trace"))
describe(
    "addmv.out block_diag.out cross.out linalg_cross.out linalg_matrix_exp.out linalg_matrix_power.out trace.out",
    out_check=out_checks.check_same,
)
describe("vdot.out", out_check=out_checks.only_same("result dtype {given} does not match input dtype {wanted}"))
describe(
    "linalg_multi_dot.out chain_matmul.out",
    out_check=out_checks.only_same("multi_dot(): expected out tensor to have dtype {c} but got {c_given}"),
)
describe(
    "linalg_vecdot.out",
    out_check=out_checks.only_same("linalg.vecdot: Expected out of dtype{wanted} but found {given}"),
)
describe(
    "tensordot.out",
    out_check=out_checks.only_same(
        "tensordot: Expected the output tensor to have dtype {wanted}, but got an output tensor with dtype {given}"
    ),
)
describe(
    "addbmm.out",
    out_check=out_checks.only_same("self and mat2 must have the same dtype, but got {given} and {wanted}"),
)
