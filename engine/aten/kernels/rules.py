"""Rules shared by kernels: dimensions, shapes, and the wording of their errors.

In: numbers that a program gave as dimensions or sizes.  Out: the same, checked and counted from the
front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.aten.values import xp
from engine.aten.values.libraries import beside, is_array
from engine.aten.values.promotion import result_type
from engine.aten.values.storage import address
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorDtypeError, OperatorError, OperatorIndexError

Shape = tuple[int, ...]


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front; a 0-dim tensor has the dimensions 0 and -1.  Raises OperatorIndexError."""
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise OperatorIndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
        )
    return dim + count if dim < 0 else dim


def existing_dim(dim: int, ndim: int) -> int:
    """The same, but a 0-dim tensor has none."""
    if ndim == 0:
        raise OperatorIndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def wrap_dims(dims: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Several distinct dimensions counted from the front."""
    wrapped = tuple(wrap_dim(dim, ndim) for dim in dims)
    for dim in wrapped:
        if wrapped.count(dim) > 1:
            raise OperatorError(f"dim {dim} appears multiple times in the list of dims")
    return wrapped


def reduce_dims(dims: Sequence[int] | int | None, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce over; none given means all."""
    if dims is None or dims == []:
        return tuple(range(ndim))
    if type(dims) is list and len(dims) == 1:
        axis = wrap_dim(dims[0], ndim)
        return (axis,) if ndim else ()
    wrapped = wrap_dims([dims] if isinstance(dims, int) else dims, ndim)
    return wrapped if ndim else ()


def infer_size(shape: Sequence[int], numel: int) -> Shape:
    """A shape with its one -1 worked out; raises OperatorError when it does not hold `numel` elements."""
    known, unknown = 1, None
    for i, size in enumerate(shape):
        if size == -1:
            if unknown is not None:
                raise OperatorError("only one dimension can be inferred")
            unknown = i
        elif size < 0:
            raise OperatorError(f"invalid shape dimension {size} at index {i} of shape {list(shape)}")
        else:
            known *= size
    if unknown is None and known == numel:
        return tuple(shape)
    if unknown is not None and known == 0 and numel == 0:
        raise OperatorError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if unknown is None or known == 0 or numel % known:
        raise OperatorError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return (*shape[:unknown], numel // known, *shape[unknown + 1 :])


def broadcast_shapes(a: Shape, b: Shape) -> Shape:
    """The common shape; raises OperatorError."""
    if a == b or not b:
        return a
    if not a:
        return b
    message = broadcast_message(a, b)
    if message is not None:
        raise OperatorError(message)
    count = max(len(a), len(b))
    long_a, long_b = (1,) * (count - len(a)) + a, (1,) * (count - len(b)) + b
    return tuple(y if x == 1 else x for x, y in zip(long_a, long_b, strict=True))


def view_strides(array: Array, shape: Shape) -> tuple[int, ...] | None:
    """Byte strides that show `array` in another shape without copying, or None if a copy is needed."""
    if array.size == 0:
        return contiguous_strides(shape, array.itemsize)
    strides: list[int] = []
    sizes = list(shape)
    chunk_stride, chunk = array.itemsize, 1
    for dim in reversed(range(array.ndim)):
        if chunk == 1:
            chunk_stride = array.strides[dim]
        chunk *= array.shape[dim]
        ends = dim == 0 or (array.shape[dim - 1] != 1 and array.strides[dim - 1] != chunk * chunk_stride)
        if not ends:
            continue
        placed = 1
        while sizes and (placed < chunk or sizes[-1] == 1):
            strides.append(placed * chunk_stride)
            placed *= sizes.pop()
        if placed != chunk:
            return None
        chunk = 1
    while sizes:
        sizes.pop()
        strides.append(chunk_stride)
    return tuple(reversed(strides))


def common_dtype(arrays: Sequence[Array]) -> xp.NumpyDtype:
    """The dtype that arrays of different dtypes are joined in."""
    first = arrays[0].dtype
    return first if all(a.dtype is first for a in arrays) else result_type(arrays)


def contiguous_strides(shape: Shape, itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def are_within(places: Array, size: int) -> bool:
    """True if all indices lie in [0, size); one pass suffices, as negative numbers are huge when viewed as unsigned."""
    if not places.size:
        return True
    greatest: int = places.view(_UNSIGNED[places.dtype.itemsize]).max()
    return greatest < size


_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def steps(array: Array) -> tuple[int, ...]:
    """The strides in elements.  An array without elements that numpy gave none has those of a contiguous one."""
    if array.size == 0 and not any(array.strides):
        return contiguous_strides(array.shape, 1)
    return tuple(stride // array.itemsize for stride in array.strides)


def is_dense(array: Array) -> bool:
    """True if the array fills a block of memory without gaps or overlaps, with its dimensions in any order."""
    steps = sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1)
    expected = array.itemsize
    for stride, size in steps:
        if stride != expected:
            return False
        expected *= size
    return True


def ordered_like(result: Array, operands: Sequence[Array]) -> Array:
    """The result of a pointwise operator, laid out as its operands ask for: the first that tells two dimensions apart.

    Where numpy would also go by dimensions that an operand repeats (stride 0), those say nothing here.
    """
    first = operands[0]
    if first.strides == result.strides and first.shape == result.shape and is_dense(first):
        return result
    order = _fastest_first(result.shape, [_spread_strides(a, result.shape) for a in operands if is_array(a)])
    strides, step = [0] * result.ndim, result.itemsize
    for dim in order:
        strides[dim] = step
        step *= result.shape[dim]
    if result.size == 0 or tuple(strides) == result.strides:
        return result
    slowest_first = order[::-1]
    turned = result.transpose(slowest_first)
    ordered = turned if turned.flags.c_contiguous else beside((turned,), turned.copy, "C")
    return ordered.transpose(np.argsort(slowest_first).tolist())


def _spread_strides(array: Array, shape: Shape) -> tuple[int, ...]:
    """The byte strides of an operand in the shape of the result: 0 along dimensions that it is repeated along."""
    missing = len(shape) - array.ndim
    pairs = zip(array.strides, array.shape, shape[missing:], strict=True)
    return (0,) * missing + tuple(0 if n != size else stride for stride, n, size in pairs)


def _fastest_first(shape: Shape, strides: Sequence[tuple[int, ...]]) -> list[int]:
    """Dimensions by stride, in a stable insertion sort, so that ambiguous ones stay in C order."""
    order = list(range(len(shape)))[::-1]
    for i in range(1, len(order)):
        here = i
        for before in range(i - 1, -1, -1):
            verdict = _compared(shape, strides, order[before], order[here])
            if verdict > 0:
                order[before], order[here] = order[here], order[before]
                here = before
            elif verdict < 0:
                break
    return order


def _compared(shape: Shape, strides: Sequence[tuple[int, ...]], a: int, b: int) -> int:
    """1 if dimension `a` is slower than `b` in the first operand that tells, -1 if it is faster, else 0."""
    for steps in strides:
        if steps[a] == 0 or steps[b] == 0:
            continue
        if steps[a] != steps[b]:
            return -1 if steps[a] < steps[b] else 1
        if shape[a] > shape[b]:
            return 1
    return 0


def overlaps_partly(a: Array, b: Array) -> bool:
    """True if two dense arrays share memory without being the same view of it; False for arrays that are not dense."""
    if not (a.size and b.size and is_dense(a) and is_dense(b)):
        return False
    start_a, start_b = address(a), address(b)
    if start_a == start_b and a.nbytes == b.nbytes:
        return a.strides != b.strides
    return start_a < start_b + b.nbytes and start_b < start_a + a.nbytes


def no_kernel(name: str, d: xp.NumpyDtype) -> OperatorDtypeError:
    """The refusal of a dtype that an operator has no code for."""
    return OperatorDtypeError(f"\"{name}\" not implemented for '{xp.ir_name(d)}'")


def check_mask(mask: Array) -> None:
    """Raise OperatorError unless the mask is of bools: those of bytes choose, but do not fill."""
    if mask.dtype != xp.BOOL:
        raise OperatorError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {c_name(mask.dtype)}",
            hints=("`mask.bool()` is a mask of bools",),
        )


def check_same_dtype(a: Array, b: Array, first: str = "self", second: str = "mat2") -> None:
    if a.dtype != b.dtype:
        raise OperatorError(
            f"expected {first} and {second} to have the same dtype, but got: {c_name(a.dtype)} != {c_name(b.dtype)}"
        )


def tensor_type(d: xp.NumpyDtype) -> str:
    """The legacy name of a type of tensors; those without one are named otherwise."""
    name = xp.ir_name(d)
    return f"CPU{name}Type" if d not in xp.REAL or d.name == "bfloat16" else f"torch.{name}Tensor"


_C_NAMES = {
    "float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int",
    "int8": "signed char", "uint8": "unsigned char", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>", "bool": "bool",
}  # fmt: skip


def c_name(d: xp.NumpyDtype) -> str:
    """A dtype as C++ names it: matrix products report so."""
    return _C_NAMES[d.name]


def broadcast_message(a: tuple[int, ...], b: tuple[int, ...]) -> str | None:
    """PyTorch's error message for two shapes that do not broadcast; None if they do."""
    count = max(len(a), len(b))
    long_a, long_b = (1,) * (count - len(a)) + a, (1,) * (count - len(b)) + b
    for dim in reversed(range(count)):
        x, y = long_a[dim], long_b[dim]
        if x != y and x != 1 and y != 1:
            return f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {dim}"
    return None


def shapes_message(shapes: Sequence[tuple[int, ...]]) -> str | None:
    """PyTorch's error message for shapes that do not broadcast together; None if they do."""
    known: tuple[int, ...] = ()
    for shape in shapes:
        message = broadcast_message(known, shape)
        if message is not None:
            return message
        known = np.broadcast_shapes(known, shape)
    return None
