"""Matrix products.

In: arrays.  Half types are multiplied in float32.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

import math
import string
from functools import lru_cache
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import shapes
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import broadcast_shapes, check_same_dtype, no_kernel
from engine.aten.stepwise.language import worth
from engine.aten.stepwise.products import whole_products
from engine.aten.values import xp
from engine.aten.values.promotion import fit, promote_types, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

ALL: Final = "function method inplace out"


def multiply(a: Array, b: Array) -> Array:
    """`a @ b` in the common dtype, halves through float32."""
    d = a.dtype
    if a.ndim == 2 == b.ndim and d in xp.FLOATS:
        return np.asarray(a.dot(b))  # the same product, quicker to set up
    if d in xp.INTEGERS and d == b.dtype and _are_fitting(a, b) and worth(a):
        batch, rows, inner, columns = (*(1, *a.shape)[-3:], b.shape[-1])
        result = np.zeros((*a.shape[:-1], columns), d)
        given = np.ascontiguousarray(a), np.ascontiguousarray(b)
        if whole_products.run(a.size * columns, *given, result, batch, rows, inner, columns) is not None:
            return result
    if wide(d) is not d:
        single = (xp.cast(np.ascontiguousarray(each), wide(d)) for each in (a, b))
        return xp.cast(_in_order(np.matmul(*single)), d)
    return _in_order(np.matmul(a, b))


def _in_order(product: Array) -> Array:
    """The product in C order, whatever order numpy chose by that of the operands; a number as an array."""
    found = np.asarray(product)
    return found if found.flags.c_contiguous else found.copy()


def _are_fitting(a: Array, b: Array) -> bool:
    """True for two matrices, or two equal-sized batches of them, that can be multiplied."""
    return a.ndim == b.ndim and a.ndim in (2, 3) and a.shape[-1] == b.shape[-2] and a.shape[:-2] == b.shape[:-2]


def mm(self: Array, mat2: Array) -> Array:
    d = self.dtype
    is_float = (d is xp.FLOAT32 or d is xp.FLOAT64) and mat2.dtype is d
    if is_float and self.ndim == 2 == mat2.ndim and self.shape[1] == mat2.shape[0]:
        product: Array = self.dot(mat2)
        return product
    if self.ndim != 2:
        raise OperatorError("self must be a matrix")
    if mat2.ndim != 2:
        raise OperatorError("mat2 must be a matrix")
    check_product(self, mat2)
    return multiply(self, mat2)


def check_product(a: Array, b: Array) -> None:
    if a.shape[1] != b.shape[0]:
        raise OperatorError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype != b.dtype:
        check_same_dtype(a, b, "m1", "m2")


def mm_dtype(self: Array, mat2: Array, out_dtype: int) -> Array:
    return mm(*_in_dtype(out_dtype, self, mat2))


def _in_dtype(out_dtype: int, *operands: Array) -> list[Array]:
    """The operands in the dtype asked for: their own, or float32 for half types.  Raises OperatorError for others."""
    d = xp.numpy_dtype(out_dtype)
    if any(each.dtype != d and (d != xp.FLOAT32 or each.dtype not in xp.HALVES) for each in operands):
        raise OperatorError("out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs")
    return [xp.cast(each, d) for each in operands]


def bmm(self: Array, mat2: Array) -> Array:
    _check_batches(self, mat2, "batch1", "batch2")
    return multiply(self, mat2)


def _check_batches(a: Array, b: Array, first: str, second: str) -> None:
    for name, value in ((first, a), (second, b)):
        if value.ndim != 3:
            raise OperatorError(f"{name} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        expected = [a.shape[0], a.shape[2]]
        raise OperatorError(
            f"Expected size for first two dimensions of {second} tensor to be: {expected} "
            f"but got: {[b.shape[0], b.shape[1]]}."
        )
    if a.dtype != b.dtype:
        raise OperatorError(f"expected scalar type {xp.ir_name(a.dtype)} but found {xp.ir_name(b.dtype)}")


def bmm_dtype(self: Array, mat2: Array, out_dtype: int) -> Array:
    return bmm(*_in_dtype(out_dtype, self, mat2))


def mv(self: Array, vec: Array) -> Array:
    if self.ndim != 2 or vec.ndim != 1:
        raise OperatorError(
            f"vector + matrix @ vector expected, got {vec.ndim}, {self.ndim}, {vec.ndim}",
            hints=("mv multiplies a matrix by a vector",),
        )
    if self.shape[1] != vec.shape[0]:
        raise OperatorError(f"size mismatch, got input ({self.shape[0]}x{self.shape[1]}) and vec ({vec.shape[0]})")
    check_dtypes(vec, self, vec)
    return multiply(self, vec)


def check_dtypes(self: Array, mat: Array, vec: Array) -> None:
    """Raise OperatorError unless all three operands of addmv have the same dtype."""
    if not self.dtype == mat.dtype == vec.dtype:
        names = [xp.ir_name(a.dtype) for a in (self, mat, vec)]
        raise OperatorError(
            f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}"
        )


def dot(self: Array, tensor: Array) -> Array:
    if self.ndim != 1 or tensor.ndim != 1:
        raise OperatorError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.dtype != tensor.dtype:
        raise OperatorError(
            "dot : expected both vectors to have same dtype, but found "
            f"{xp.ir_name(self.dtype)} and {xp.ir_name(tensor.dtype)}"
        )
    if self.shape != tensor.shape:
        raise OperatorError(
            f"inconsistent tensor size, expected tensor [{self.shape[0]}] and src [{tensor.shape[0]}] "
            "to have the same number of elements, but got "
            f"{self.shape[0]} and {tensor.shape[0]} elements respectively"
        )
    return multiply(self, tensor)


def matmul(self: Array, other: Array) -> Array:
    if self.ndim == 2 == other.ndim and self.dtype in xp.FLOATING:
        return mm(self, other)
    if self.ndim == 0 or other.ndim == 0:
        raise OperatorError(
            f"both arguments to matmul need to be at least 1D, but they are {self.ndim}D and {other.ndim}D"
        )
    if self.dtype == xp.BOOL:
        raise no_kernel(_product_name(self.ndim, other.ndim), self.dtype)
    if self.ndim <= 2 and other.ndim <= 2:
        return _small_matmul(self, other)
    check_same_dtype(self, other)
    rows = self if self.ndim > 1 else self[np.newaxis]
    columns = other if other.ndim > 1 else other[:, np.newaxis]
    if rows.shape[-1] != columns.shape[-2]:
        _refuse_batched(self, other, rows, columns)
    broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    return multiply(self, other)


def _product_name(left: int, right: int) -> str:
    """Name of the product to which `matmul` reduces for these numbers of dimensions."""
    if left == right == 1:
        return "dot"
    if min(left, right) > 2:
        return "bmm"
    return "addmv_impl_cpu" if right == 1 else "addmm_impl_cpu_"


def _small_matmul(a: Array, b: Array) -> Array:
    if a.ndim == 1 and b.ndim == 1:
        return dot(a, b)
    if b.ndim == 1:
        return mv(a, b)
    return mm(a[np.newaxis], b)[0] if a.ndim == 1 else mm(a, b)


def _refuse_batched(a: Array, b: Array, rows: Array, columns: Array) -> None:
    """The refusal of two shapes one of which is a batch, in the words of the product they fold into."""
    if b.ndim <= 2:
        count = int(np.prod(rows.shape[:-1]))
        if b.ndim == 1:
            raise OperatorError(f"size mismatch, got input ({count}x{a.shape[-1]}) and vec ({b.shape[0]})")
        raise OperatorError(
            f"mat1 and mat2 shapes cannot be multiplied ({count}x{a.shape[-1]} and {b.shape[0]}x{b.shape[1]})"
        )
    batch = int(np.prod(broadcast_shapes(rows.shape[:-2], columns.shape[:-2])))
    raise OperatorError(
        f"Expected size for first two dimensions of batch2 tensor to be: {[batch, rows.shape[-1]]} "
        f"but got: {[batch, columns.shape[-2]]}."
    )


def outer(self: Tensor, vec2: Tensor) -> Tensor:
    for name, value in (("self", self), ("vec2", vec2)):
        if value.array.ndim != 1:
            raise OperatorError(f"outer: Expected 1-D argument {name}, but got {value.array.ndim}-D")
    result: Tensor = run("mul.Tensor", run("unsqueeze", self, 1), vec2)
    return result


def addmm(self: Array, mat1: Array, mat2: Array, beta: Any, alpha: Any) -> Array:
    for name, value in (("mat1", mat1), ("mat2", mat2)):
        if value.ndim != 2:
            raise OperatorError(f"{name} must be a matrix, got {value.ndim}-D tensor")
    if self.dtype != mat2.dtype:
        raise unlike(self, mat2)
    check_product(mat1, mat2)
    return scaled_sum(self, mat1, mat2, beta, alpha)


def scaled_sum(self: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
    """`beta * self + alpha * (a @ b)`; with beta 0, self is not looked at."""
    d = a.dtype
    if self.dtype != d:
        raise unlike(self, a)
    if a.ndim == 2 == b.ndim and d in xp.FLOATS and beta == 1 == alpha and self.shape[-1:] == b.shape[-1:]:
        product = np.asarray(a.dot(b))
        if self.ndim == 1 or self.shape == product.shape:
            return np.asarray(np.add(product, self, product))
    used = wide(d)
    if used in xp.INTEGERS:
        beta, alpha = fit(beta, used), fit(alpha, used)
    product = np.asarray(np.matmul(a.astype(used, copy=False), b.astype(used, copy=False)))
    shape = broadcast_shapes(self.shape, product.shape)
    if shape != product.shape:
        raise OperatorError(
            f"The expanded size of the tensor ({product.shape[-1]}) must match the existing size "
            f"({self.shape[-1] if self.ndim else 1}) at non-singleton dimension {product.ndim - 1}.  "
            f"Target sizes: {list(product.shape)}.  Tensor sizes: {list(self.shape)}"
        )
    result = product if alpha == 1 else alpha * product
    if beta != 0:
        base = self.astype(used, copy=False)
        result = result + (base if beta == 1 else beta * base)
    return np.asarray(result).astype(d, copy=False)


def addmm_dtype(self: Array, mat1: Array, mat2: Array, out_dtype: int, beta: Any, alpha: Any) -> Array:
    added, *factors = _in_dtype(out_dtype, self, mat1, mat2)
    return addmm(added, factors[0], factors[1], beta, alpha)


def baddbmm(self: Array, batch1: Array, batch2: Array, beta: Any, alpha: Any) -> Array:
    _check_batches(batch1, batch2, "batch1", "batch2")
    return scaled_sum(self, batch1, batch2, beta, alpha)


def baddbmm_dtype(self: Array, batch1: Array, batch2: Array, out_dtype: int, beta: Any, alpha: Any) -> Array:
    added, *factors = _in_dtype(out_dtype, self, batch1, batch2)
    return baddbmm(added, factors[0], factors[1], beta, alpha)


def linear(input: Array, weight: Array, bias: Array | None) -> Array:
    if input.ndim == 0 or weight.ndim == 0:
        raise OperatorError("both arguments to linear need to be at least 1D")
    if input.shape[-1] != weight.shape[-1]:
        _refuse_linear(input, weight)
    if input.dtype != weight.dtype and bias is not None and input.ndim > 1 and weight.ndim == 2:
        raise unlike(bias, weight) if bias.dtype != weight.dtype else _unlike_factors(input, weight)
    if input.dtype != weight.dtype:
        check_same_dtype(input, weight, "m1", "m2")
    if input.dtype in xp.FLOATS and weight.ndim == 2:
        return _linear_of_floats(input, weight, bias)
    used = wide(input.dtype)
    product = np.asarray(np.matmul(xp.cast(input, used), xp.cast(weight, used).T))
    if bias is None:
        return xp.cast(product, input.dtype)
    if bias.dtype != input.dtype:
        raise unlike(bias, weight)
    return xp.cast(np.asarray(product + bias.astype(product.dtype, copy=False)), input.dtype)


def _linear_of_floats(input: Array, weight: Array, bias: Array | None) -> Array:
    """One matrix product for the whole batch; the bias is added to its result in place."""
    rows = input if input.ndim <= 2 else input.reshape(-1, input.shape[-1])
    product = np.asarray(rows.dot(weight.T))
    if bias is not None:
        if bias.dtype != input.dtype:
            raise unlike(bias, weight)
        product = product + bias if bias.shape != product.shape[-1:] else np.add(product, bias, product)
    return product if input.ndim <= 2 else product.reshape(*input.shape[:-1], *product.shape[1:])


def unlike(self: Array, mat2: Array) -> OperatorError:
    """The error for a sum of operands of two dtypes."""
    return OperatorError(
        f"self and mat2 must have the same dtype, but got {xp.ir_name(self.dtype)} and {xp.ir_name(mat2.dtype)}"
    )


def _unlike_factors(mat1: Array, mat2: Array) -> OperatorError:
    return OperatorError(
        f"mat1 and mat2 must have the same dtype, but got {xp.ir_name(mat1.dtype)} and {xp.ir_name(mat2.dtype)}"
    )


def linear_to_input(of: Array, weight: Array) -> Array:
    """Gradient of `linear` for its input; the weight may be one-dimensional."""
    return multiply(of, weight) if weight.ndim == 2 else multiply(of[..., np.newaxis], weight[np.newaxis])


def linear_to_weight(of: Array, input: Array, weight: Array) -> Array:
    """Gradient of `linear` for its weight: one product for the whole batch."""
    if of.ndim == 2 == input.ndim == weight.ndim:
        return multiply(of.T, input)
    rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    columns = of.reshape(rows.shape[0], -1 if weight.ndim == 1 else weight.shape[0])
    return multiply(columns.T, rows).reshape(weight.shape)


def _refuse_linear(input: Array, weight: Array) -> None:
    rows = int(np.prod(input.shape[:-1]))
    if weight.ndim == 1:
        raise OperatorError(f"size mismatch, got input ({rows}x{input.shape[-1]}) and vec ({weight.shape[0]})")
    raise OperatorError(
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and {weight.shape[1]}x{weight.shape[0]})"
    )


def einsum(equation: str, tensors: list[Array], path: list[int] | None) -> Array:
    """The sum of products that `equation` names; letters of both cases, `...`, and an implied result."""
    spelled, result = _spelled(equation, tuple(t.shape for t in tensors))
    d = _sum_dtype(spelled, result, tensors)
    used = [t.astype(wide(d), copy=False) for t in tensors]
    product = by_matmul(spelled, result, used)
    if product is None:
        product = np.array(np.einsum(f"{','.join(spelled)}->{result}", *used, optimize=len(used) > 2))
    return product.astype(d, copy=False)


@lru_cache(1024)
def _spelled(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; raises OperatorError where they do not go with the shapes."""
    equation = equation.replace(" ", "")
    operands = equation.split("->")[0].split(",")
    if len(operands) != len(shapes):
        more = "fewer" if len(operands) > len(shapes) else "more"
        raise OperatorError(f"einsum(): {more} operands were provided than specified in the equation")
    seen: dict[str, int] = {}
    for i, (subscripts, shape) in enumerate(zip(operands, shapes, strict=True)):
        letters = subscripts.replace("...", "")
        _check_sizes(i, subscripts, shape, seen)
        if "..." not in subscripts and len(letters) != len(shape):
            raise OperatorError(
                f"einsum(): the number of subscripts in the equation ({len(letters)}) does not match the number of "
                f"dimensions ({len(shape)}) for operand {i} and no ellipsis was given"
            )
    return explicit_subscripts(equation, [len(shape) for shape in shapes])


def _sum_dtype(spelled: list[str], result: str, tensors: list[Array]) -> xp.NumpyDtype:
    """The dtype to compute in: letters of one operand alone are summed first, integers as int64; those of two are a
    product of matrices, which takes one dtype."""
    dtypes, before = [], ""
    for i, (letters, tensor) in enumerate(zip(spelled, tensors, strict=True)):
        others = result + "".join(other for j, other in enumerate(spelled) if j != i)
        is_summed = tensor.dtype in xp.INTEGRAL and any(c not in others for c in letters)
        dtypes.append(xp.INT64 if is_summed else tensor.dtype)
        if i and any(c in before and c not in result for c in letters):
            if dtypes[i] != dtypes[i - 1]:
                names = xp.ir_name(dtypes[i - 1]), xp.ir_name(dtypes[i])
                raise OperatorError(f"expected scalar type {names[0]} but found {names[1]}")
            if dtypes[i] == xp.BOOL:
                raise no_kernel("bmm", dtypes[i])
        dtypes[i] = promote_types(dtypes[i], dtypes[i - 1]) if i else dtypes[i]
        before += letters
    return dtypes[-1]


def by_matmul(spelled: list[str], result: str, operands: list[Array]) -> Array | None:
    """The sum of products of two arrays as one product of matrices; None where it is not one."""
    if len(operands) != 2 or operands[0].dtype not in xp.INEXACT:
        return None
    (left, right), (a, b) = spelled, operands
    sizes = dict(zip(left + right, a.shape + b.shape, strict=True))
    is_odd = any(len(set(letters)) < len(letters) for letters in (left, right))
    is_odd = is_odd or any(c not in result and (c not in left or c not in right) for c in left + right)
    if is_odd or any(sizes[c] != n for c, n in zip(left, a.shape, strict=True)):
        return None
    batch = [c for c in result if c in left and c in right]
    rows, columns = ([c for c in result if c in s and c not in batch] for s in (left, right))
    inner = [c for c in left if c in right and c not in result]

    def matrices(x: Array, letters: str, first: list[str], second: list[str]) -> Array:
        order = [letters.index(c) for c in (*batch, *first, *second)]
        shape = (math.prod(sizes[c] for c in part) for part in (batch, first, second))
        return x.transpose(order).reshape(*shape)

    if not inner:
        return _spread_product(spelled, result, operands)
    product = np.matmul(matrices(a, left, rows, inner), matrices(b, right, inner, columns))
    found = [*batch, *rows, *columns]
    shaped: Array = product.reshape([sizes[c] for c in found])
    return np.asarray(shaped.transpose([found.index(c) for c in result]), order="C")


def _spread_product(spelled: list[str], result: str, operands: list[Array]) -> Array:
    """Nothing is added up: each operand is spread over the result's letters."""
    first, second = (
        x.transpose([letters.index(c) for c in result if c in letters])[
            tuple(slice(None) if c in letters else None for c in result)
        ]
        for letters, x in zip(spelled, operands, strict=True)
    )
    return np.asarray(np.multiply(first, second), order="C")


LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def explicit_subscripts(equation: str, ndims: list[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with letters for the dimensions of `...`."""
    left, arrow, right = equation.partition("->")
    operands = left.split(",")
    free = [letter for letter in LETTERS if letter not in equation]
    counts = [n - len(s.replace("...", "")) if "..." in s else 0 for s, n in zip(operands, ndims, strict=True)]
    dots = "".join(free[: max(counts)])
    operands = [s.replace("...", dots[len(dots) - n :]) for s, n in zip(operands, counts, strict=True)]
    if not arrow:
        letters = "".join(operands)
        right = "..." + "".join(sorted(c for c in set(letters) - set(dots) if letters.count(c) == 1))
    return operands, right.replace("...", dots)


def _check_sizes(place: int, subscripts: str, shape: tuple[int, ...], seen: dict[str, int]) -> None:
    """Every letter stands for one size, or for 1."""
    before, dots, after = subscripts.partition("...")
    named = [*zip(before, shape, strict=False)]
    if dots and after:
        named += zip(after, shape[-len(after) :], strict=False)
    for letter, size in named:
        known = seen.setdefault(letter, size)
        if known == 1:
            seen[letter] = size
        elif size not in (1, known):
            raise OperatorError(
                f"einsum(): subscript {letter} has size {size} for operand {place} which does not broadcast with "
                f"previously seen size {known}"
            )


op("aten::matmul(Tensor self, Tensor other) -> Tensor", kernel=matmul, variants="function method out",
   gradient={"self": "_matmul_backward(grad, self, other, [True, False])[0]",
             "other": "_matmul_backward(grad, self, other, [False, True])[1]"},
   shape=shapes.product("self", "other"), dtype="same", jit_autocast="fast", autocast="fast")  # fmt: skip
op("aten::mm(Tensor self, Tensor mat2) -> Tensor", kernel=mm, variants="function method out",
   gradient={"self": "grad.mm(mat2.t())", "mat2": "self.t().mm(grad)"},
   shape=shapes.product("self", "mat2"), dtype="same", jit_autocast="fast", autocast="fast")  # fmt: skip
op("aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", kernel=mm_dtype,
   variants="function method out", shape=shapes.product("self", "mat2"), dtype="same", jit_autocast="fast")  # fmt: skip
op("aten::bmm(Tensor self, Tensor mat2) -> Tensor", kernel=bmm, variants="function method out",
   gradient={"self": "grad.bmm(mat2.transpose(1, 2))", "mat2": "self.transpose(1, 2).bmm(grad)"},
   shape=shapes.product("self", "mat2"), dtype="same", jit_autocast="fast", autocast="fast")  # fmt: skip
op("aten::bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", kernel=bmm_dtype,
   variants="function method out", shape=shapes.product("self", "mat2"), dtype="same", jit_autocast="fast")  # fmt: skip
op("aten::mv(Tensor self, Tensor vec) -> Tensor", kernel=mv, variants="function method out",
   gradient={"self": "grad.outer(vec)", "vec": "self.t().mv(grad)"}, shape=shapes.product("self", "vec"),
   jit_autocast="fast")  # fmt: skip
op("aten::dot(Tensor self, Tensor tensor) -> Tensor", kernel=dot, variants="function method out",
   gradient={"self": "grad * tensor", "tensor": "grad * self"}, shape=shapes.product("self", "tensor"),
   jit_autocast="widest")  # fmt: skip
op("aten::outer(Tensor self, Tensor vec2) -> Tensor", python=outer, variants="function method out",
   gradient={"self": "grad.mv(vec2)", "vec2": "grad.t().mv(self)"})  # fmt: skip
op("aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", kernel=addmm,
   variants=ALL, gradient={"self": "grad * beta", "mat1": "grad.mm(mat2.t()) * alpha",
                           "mat2": "mat1.t().mm(grad) * alpha"}, shape=shapes.product("mat1", "mat2"),
   dtype="floats", jit_autocast="fast", autocast="fast")  # fmt: skip
op("aten::addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, "
   "Scalar alpha=1) -> Tensor", kernel=addmm_dtype, variants="function method out",
   shape=shapes.product("mat1", "mat2"), dtype="floats", jit_autocast="fast")  # fmt: skip
op("aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
   kernel=baddbmm, variants=ALL,
   gradient={"self": "grad * beta", "batch1": "grad.bmm(batch2.transpose(1, 2)) * alpha",
             "batch2": "batch1.transpose(1, 2).bmm(grad) * alpha"}, dtype="floats", jit_autocast="fast",
   autocast="fast")  # fmt: skip
op("aten::baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, "
   "Scalar alpha=1) -> Tensor", kernel=baddbmm_dtype, variants="function method out", dtype="floats",
   jit_autocast="fast")  # fmt: skip
op("aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", kernel=linear, variants="function out",
   gradient={"input": "_linear_to_input(grad, weight)", "weight": "_linear_to_weight(grad, input, weight)",
             "bias": "grad"}, shape=shapes.linear, dtype="floats", jit_autocast="fast", autocast="fast")  # fmt: skip
op("aten::_linear_to_input(Tensor of, Tensor weight) -> Tensor", kernel=linear_to_input,
   gradient={"of": "linear(grad, weight)", "weight": "_linear_to_weight(of, grad, weight)"})  # fmt: skip
op("aten::_linear_to_weight(Tensor of, Tensor input, Tensor weight) -> Tensor", kernel=linear_to_weight,
   gradient={"of": "linear(input, grad)", "input": "_linear_to_input(of, grad)",
             "weight": "zeros_like(weight)"})  # fmt: skip


def einsum_of_lists(*args: Any) -> Any:
    """`einsum(a, [0, 1], b, [1, 2], [0, 2])`: numbers in place of letters, the last list names the result."""
    tensors, lists = args[:-1:2] if len(args) % 2 else args[::2], args[1::2]
    result = [args[-1]] if len(args) % 2 else []
    if not all(isinstance(t, Tensor) for t in tensors) or not all(isinstance(x, list) for x in (*lists, *result)):
        raise OperatorError("einsum(): expected a tensor and the list of its subscripts by turns")
    letters = string.ascii_uppercase + string.ascii_lowercase
    spelled = ["".join("..." if n is Ellipsis else letters[n] for n in subscripts) for subscripts in lists]
    equation = ",".join(spelled) + "".join("->" + "".join(letters[n] for n in subscripts) for subscripts in result)
    return run("einsum", equation, list(tensors), None)


op("aten::einsum.sublist(Tensor a, ...) -> Tensor", python=einsum_of_lists)
op("aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", kernel=einsum,
   gradient={"tensors": "_einsum_backward(grad, equation, tensors)"}, autocast="contracting")  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("mm addmm linear", refuses=no_code("b", "addmm_impl_cpu_"))
describe("mv", refuses=no_code("b", "addmv_impl_cpu"))
describe("bmm einsum", refuses=no_code("b", "bmm"))
describe("baddbmm", refuses=no_code("b", "baddbmm"))
describe("dot", refuses=no_code("b", "dot"))
describe("addmm.out baddbmm.out bmm.out linear.out matmul.out mm.out", out_check=out_checks.check_same)
describe("dot.out", out_check=out_checks.only_same("result dtype {given} does not match input dtype {wanted}"))
describe(
    "mv.out",
    out_check=out_checks.only_same(
        "addmv input tensors must have the same dtype, but got {given}, {wanted}, and {wanted}"
    ),
)
