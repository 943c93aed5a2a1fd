"""Norms of vectors and matrices, and how well a matrix can be solved with.

In: tensors.  Out: tensors.  All are made of other operators, from which their gradients come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run, sum_over, where
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import wrap_dim, wrap_dims
from engine.aten.ops.linalg import check_matrix, check_square
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError

OUT: Final = "function out"
METHOD: Final = "function method out"
ALL: Final = "function method inplace out"


def matrix_norm(self: Tensor, ord: Any, dim: Sequence[int], keepdim: bool, dtype: int | None) -> Tensor:
    if self.ndim < 2:
        raise OperatorError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    dims = wrap_dims(dim, self.ndim)
    if len(dims) != 2:
        raise OperatorError("linalg.matrix_norm: dim must be a 2-tuple. Got " + " ".join(map(str, dim)))
    if dtype is not None:
        self = run("to.dtype", self, dtype, False, False, None)
    if abs(ord) == 2:
        if ord > 0 and 0 in (self.shape[dims[0]], self.shape[dims[1]]):
            return sum_over(self.abs(), dims, keepdim)
        return _of_singular_values(self, dims, keepdim, "amax" if ord > 0 else "amin")
    if abs(ord) not in (1, math.inf):
        raise OperatorError(f"linalg.matrix_norm: Order {ord} not supported.")
    first, second = dims if abs(ord) == 1 else dims[::-1]
    sums = run("sum.dim_IntList", self.abs(), [first], True, None)
    if sums.shape[second] == 0:
        nothing: Tensor = run("sum.dim_IntList", sums, list(dims), keepdim, None)
        return nothing
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
    result: Tensor = (
        run("sum.dim_IntList", values, [-1], False, None) if name == "sum" else run(name, values, [-1], False)
    )
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
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D."
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
    """Condition number of the matrix with respect to the norm `p`."""
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
    result: Tensor = self * factor.to(self.dtype)
    return result


# ------------------------------------------------------------------ entries

_NUMBER: Final = "Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None"
_NORM: Final = "int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None"
op(f"aten::linalg_norm(Tensor self, Scalar? ord=None, {_NORM}) -> Tensor", python=norm, variants=OUT)
op(f"aten::linalg_norm.ord_str(Tensor self, str ord, {_NORM}) -> Tensor", python=norm_named, variants=OUT)
op(f"aten::linalg_matrix_norm(Tensor self, {_NUMBER}) -> Tensor", python=matrix_norm, variants=OUT)
op('aten::linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, '
   "ScalarType? dtype=None) -> Tensor", python=matrix_norm_named, variants=OUT)  # fmt: skip
op("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", python=frobenius_norm,
   variants="function out:out")  # fmt: skip
op("aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", python=nuclear_norm, variants=OUT,
   jit_autocast="full")  # fmt: skip
op("aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", python=nuclear_norm_dims,
   variants=OUT, jit_autocast="full")  # fmt: skip
op("aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor", python=cond, variants=OUT, autocast="full")
op("aten::linalg_cond.p_str(Tensor self, str p) -> Tensor", python=cond_named, variants=OUT, autocast="full")
op("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", python=dist, variants=METHOD, jit_autocast="full")
op("aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", python=renorm, variants=ALL,
   jit_autocast="full")  # fmt: skip


# ------------------------------------------------------------------ layouts

describe("renorm", layout="contiguous")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("linalg_cond", refuses=no_code("h", "linalg_svd_cpu", empty=False))
describe("dist.out renorm.out", out_check=out_checks.check_same)
describe(
    "linalg_matrix_norm.out linalg_matrix_norm.str_ord_out",
    out_check=out_checks.only_same("linalg.matrix_norm expected out tensor dtype {wanted} but got: {given}"),
)
describe(
    "linalg_norm.out linalg_norm.ord_str_out",
    out_check=out_checks.only_same("linalg.norm expected out tensor dtype {wanted} but got: {given}"),
)
