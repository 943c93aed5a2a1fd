"""Resampling and padding.

In: arrays (batch, channels, *space).  Out: arrays.  Every way of resampling is, along each dimension, a sum of a few
elements ("taps") with weights; its gradient is the product with the matrix of those weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks, unboxed
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import no_kernel
from engine.aten.kernels.windows import pad as pad_zeros
from engine.aten.stepwise.language import worth
from engine.aten.stepwise.sampling import blended
from engine.aten.values import xp
from engine.aten.values.promotion import converted, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorDtypeError, OperatorError

Sizes = tuple[int, ...]
Taps = Sequence[tuple[Array, Any]]
TapRule = Callable[[int, int, bool, float | None, xp.NumpyDtype], Taps]

# ------------------------------------------------------------------ taps along one dimension

_KEPT: Final = 64
"""Sizes of which taps are kept: models ask for the same ones again."""


def _scale(size: int, count: int, align: bool, scale: float | None) -> float:
    """Distance in the input between neighbouring elements of the output."""
    if align:
        return (size - 1) / (count - 1) if count > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0 else size / count


def _positions(size: int, count: int, align: bool, scale: float | None, d: xp.NumpyDtype) -> Array:
    """Coordinates in the input of each element of the output, in the computation's dtype."""
    step, half = d.type(_scale(size, count, align, scale)), d.type(0.5)
    i = np.arange(count, dtype=d)
    return np.asarray(i * step if align else (i + half) * step - half)


@lru_cache(_KEPT)
def _nearest(size: int, count: int, align: bool, scale: float | None, d: xp.NumpyDtype) -> Taps:
    if size == count:
        return _as_they_are(size)
    step = np.float32(_scale(size, count, False, scale))
    index = np.floor(np.arange(count, dtype=np.float32) * step).astype(np.int64)
    return [(np.minimum(index, size - 1), None)]


def _as_they_are(size: int) -> Taps:
    """Taps of the identity: elements are copied, so that inf and nan do not spread, whatever the factor."""
    return [(np.arange(size), None)]


@lru_cache(_KEPT)
def _nearest_exact(size: int, count: int, align: bool, scale: float | None, d: xp.NumpyDtype) -> Taps:
    if size == count:
        return _as_they_are(size)
    step = np.float32(_scale(size, count, False, scale))
    index = np.floor((np.arange(count, dtype=np.float32) + np.float32(0.5)) * step).astype(np.int64)
    return [(np.minimum(index, size - 1), None)]


@lru_cache(_KEPT)
def _linear(size: int, count: int, align: bool, scale: float | None, d: xp.NumpyDtype) -> Taps:
    if size == count:
        return _as_they_are(size)
    position = np.maximum(_positions(size, count, align, scale, d), d.type(0))
    low = np.minimum(position.astype(np.int64), size - 1)
    part = np.clip(position - low.astype(d), 0, 1)
    return [(low, 1 - part), (np.minimum(low + 1, size - 1), part)]


@lru_cache(_KEPT)
def _cubic(size: int, count: int, align: bool, scale: float | None, d: xp.NumpyDtype) -> Taps:
    position = _positions(size, count, align, scale, d)
    low = np.floor(position)
    part = position - low
    weights = (_cubic_far(part + 1), _cubic_near(part), _cubic_near(1 - part), _cubic_far(2 - part))
    base = low.astype(np.int64)
    return [(np.clip(base + i - 1, 0, size - 1), w) for i, w in enumerate(weights)]


def _cubic_near(x: Array) -> Array:
    a = -0.75
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _cubic_far(x: Array) -> Array:
    a = -0.75
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


# ------------------------------------------------------------------ kernels


def _apply(x: Array, taps: Taps, axis: int) -> Array:
    if taps[0][1] is not None and len(taps) == 2 and worth(x):
        done = _blended(x, taps, axis)
        if done is not None:
            return done
    shape = [1] * x.ndim
    shape[axis] = -1
    parts = (
        x.take(i, axis=axis) if w is None else x.take(i, axis=axis) * w.reshape(shape).astype(x.dtype) for i, w in taps
    )
    total = next(parts)
    for part in parts:
        total += part
    return total


def _blended(x: Array, taps: Taps, axis: int) -> Array | None:
    """The same for two taps in machine code; None if it is not compiled."""
    (low, of_low), (high, of_high) = taps
    result = np.empty((*x.shape[:axis], low.size, *x.shape[axis + 1 :]), x.dtype)
    weights = (each.astype(x.dtype, copy=False) for each in (of_low, of_high))
    sizes = (math.prod(x.shape[:axis]), x.shape[axis], low.size, math.prod(x.shape[axis + 1 :]))
    done = blended.run(result.size, np.ascontiguousarray(x), low, high, *weights, result, *sizes)
    return None if done is None else result


def _matrix(size: int, count: int, taps: Taps, d: xp.NumpyDtype) -> Array:
    """The taps as a matrix (count, size)."""
    matrix = np.zeros((count, size), d)
    for index, weight in taps:
        np.add.at(matrix, (np.arange(count), index), 1 if weight is None else weight)
    return matrix


def _check(name: str, n: int, shape: Sequence[int], output_size: Sequence[int]) -> None:
    if len(output_size) != n:
        raise OperatorError(f"It is expected output_size equals to {n}, but got size {len(output_size)}")
    if len(shape) != n + 2:
        raise OperatorError(f"It is expected input_size equals to {n + 2}, but got size {len(shape)}")
    if min(*shape[2:], *output_size) < 1:
        given, wanted = (
            ", ".join(f"{axis}: {size}" for axis, size in zip("DHW"[-n:], sizes, strict=True))
            for sizes in (shape[2:], output_size)
        )
        raise OperatorError(
            f"Input and output sizes should be greater than 0, but got input ({given}) output ({wanted})"
        )


def _upsample(name: str, n: int, rule: TapRule) -> Callable[..., Array]:
    def kernel(self: Array, output_size: Sequence[int], align: bool, *scales: float | None) -> Array:
        _check(name, n, self.shape, output_size)
        if self.dtype not in xp.REAL or (self.dtype in xp.INTEGERS and self.dtype != xp.UINT8):
            raise no_kernel(name, self.dtype)
        result = self if rule in (_nearest, _nearest_exact) else self.astype(_working(self.dtype), copy=False)
        by_steps = n == 2 and self.dtype == xp.UINT8 and result is not self
        for axis in range(n + 1, 1, -1):  # rows come last, as they are copied in one piece
            taps = rule(self.shape[axis], output_size[axis - 2], align, scales[axis - 2], _working(self.dtype))
            result = _apply(result, taps, axis)
            if by_steps:
                result = np.clip(np.floor(result + 0.5), 0, 255)
        return _back(result, self.dtype)

    return kernel


def _working(d: xp.NumpyDtype) -> xp.NumpyDtype:
    return xp.FLOAT32 if d == xp.UINT8 else wide(d)


def _back(result: Array, d: xp.NumpyDtype) -> Array:
    if d == xp.UINT8 and result.dtype != d:
        return np.clip(np.rint(result), 0, 255).astype(d)
    return result.astype(d, copy=False)


def _upsample_backward(n: int, rule: TapRule) -> Callable[..., Array]:
    def kernel(
        grad_output: Array, output_size: Sequence[int], input_size: Sequence[int], align: bool, *scales: float | None
    ) -> Array:
        d = grad_output.dtype
        grad = grad_output.astype(wide(d), copy=False)
        for axis, (count, scale) in enumerate(zip(output_size, scales, strict=True), start=2):
            size = input_size[axis]
            matrix = _matrix(size, count, rule(size, count, align, scale, grad.dtype), grad.dtype)
            grad = np.moveaxis(np.matmul(np.moveaxis(grad, axis, -1), matrix), -1, axis)
        return grad.astype(d)

    return kernel


def _computed_size(
    shape: Sequence[int], output_size: Sequence[int] | None, factors: Sequence[float] | None
) -> list[int]:
    """The wanted space, or the input's times the factors; exactly one of the two is given."""
    if (output_size is None) == (factors is None):
        raise OperatorError("Must specify exactly one of output_size and scale_factors")
    if output_size is not None:
        return list(output_size)
    assert factors is not None
    if len(factors) != len(shape) - 2:
        raise OperatorError(f"expected {len(shape) - 2} scale factors, but got {len(factors)}")
    return [math.floor(size * factor) for size, factor in zip(shape[2:], factors, strict=True)]


def _vector_form(name: str, n: int, has_align: bool) -> Callable[..., Tensor]:
    """The overload that takes sizes or factors as lists."""

    def upsample(input: Tensor, output_size: list[int] | None, *rest: Any) -> Tensor:
        *align, factors = rest
        size = _computed_size(input.shape, output_size, factors)
        result: Tensor = run(name, input, size, *align, *(factors or [None] * n))
        return result

    return upsample


def _without_align(kernel: Callable[..., Array], at: int) -> Callable[..., Array]:
    """The kernel for operators without that argument."""
    return lambda *args: kernel(*args[:at], False, *args[at:])


_KINDS: Final = (
    # name, dimensions, taps, has align_corners
    ("upsample_nearest1d", 1, _nearest, False),
    ("upsample_nearest2d", 2, _nearest, False),
    ("upsample_nearest3d", 3, _nearest, False),
    ("_upsample_nearest_exact1d", 1, _nearest_exact, False),
    ("_upsample_nearest_exact2d", 2, _nearest_exact, False),
    ("_upsample_nearest_exact3d", 3, _nearest_exact, False),
    ("upsample_linear1d", 1, _linear, True),
    ("upsample_bilinear2d", 2, _linear, True),
    ("upsample_trilinear3d", 3, _linear, True),
    ("upsample_bicubic2d", 2, _cubic, True),
)
_VECTOR_OUT: Final = ("upsample_nearest2d", "upsample_bilinear2d")
_SCALES: Final = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}

for _name, _n, _rule, _has_align in _KINDS:
    _forward, _backward = _upsample(_name, _n, _rule), _upsample_backward(_n, _rule)
    _align = ", bool align_corners" if _has_align else ""
    _scales = "".join(f", float? {s}=None" for s in _SCALES[_n])
    _given = (", align_corners" if _has_align else "") + "".join(f", {s}" for s in _SCALES[_n])
    _vector = op(f"aten::{_name}.vec(Tensor input, SymInt[]? output_size{_align}, float[]? scale_factors) -> Tensor",
                 python=_vector_form(_name, _n, _has_align))  # fmt: skip
    op(f"aten::{_name}(Tensor self, SymInt[{_n}] output_size{_align}{_scales}) -> Tensor",
       kernel=_forward if _has_align else _without_align(_forward, 2), variants="function out",
       gradient={"self": f"{_name}_backward(grad, output_size, self.size(){_given})"})  # fmt: skip
    if _name in _VECTOR_OUT:
        out_form(_vector, "vec_out", "out")
    op(f"aten::{_name}_backward(Tensor grad_output, SymInt[{_n}] output_size, SymInt[{_n + 2}] input_size{_align}"
       f"{_scales}) -> Tensor", kernel=_backward if _has_align else _without_align(_backward, 3),
       gradient={"grad_output": f"{_name}(grad, output_size{_given})"})  # fmt: skip

# ------------------------------------------------------------------ padding


def constant_pad_nd(self: Array, pad: Sequence[int], value: Any) -> Array:
    """Pairs (before, behind) from the last dimension on; negative ones cut."""
    if len(pad) % 2:
        raise OperatorError("Padding length must be divisible by 2", hints=(f"its length is {len(pad)}",))
    n = len(pad) // 2
    if n > self.ndim:
        raise OperatorError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {self.ndim}"
        )
    before, after = list(pad[0::2])[::-1], list(pad[1::2])[::-1]
    for size, b, a in zip(self.shape[self.ndim - n :], before, after, strict=True):
        if size + b + a < 0:
            raise OperatorError(
                "narrow(): length must be non-negative.",
                hints=(f"a size of {size} with {b} before it and {a} behind is negative",),
            )
    cut: list[Any] = [slice(max(-b, 0), size - max(-a, 0))
           for size, b, a in zip(self.shape[self.ndim - n :], before, after, strict=True)]  # fmt: skip
    inner = self[(..., *cut)]
    padded = pad_zeros(inner, [max(b, 0) for b in before], [max(a, 0) for a in after], converted(value, self.dtype))
    return padded.copy() if padded is inner else padded


def _reflected(size: int, before: int, after: int) -> Array:
    place = np.abs(np.arange(-before, size + after))
    return np.where(place >= size, 2 * (size - 1) - place, place)


def _repeated(size: int, before: int, after: int) -> Array:
    return np.clip(np.arange(-before, size + after), 0, size - 1)


def _by_index(name: str, n: int, rule: Callable[[int, int, int], Array]) -> Callable[..., Array]:
    """Padding with the input's own elements."""

    def kernel(self: Array, padding: Sequence[int]) -> Array:
        _check_padding(name, n, self, padding)
        if n > 1 and min(padding) >= 0:
            return _framed(self, padding, rule)
        result = self
        for i in range(n):
            axis = self.ndim - 1 - i
            result = result.take(rule(self.shape[axis], padding[2 * i], padding[2 * i + 1]), axis=axis)
        return result

    return kernel


def _framed(x: Array, padding: Sequence[int], rule: Callable[[int, int, int], Array]) -> Array:
    """The padded array: its middle is copied at once, then the frame is filled from it, one dimension at a time."""
    n = len(padding) // 2
    before, after = padding[0::2][::-1], padding[1::2][::-1]
    inner = x.shape[-n:]
    result = np.empty((*x.shape[:-n], *(b + s + a for b, s, a in zip(before, inner, after, strict=True))), x.dtype)
    inside: list[Any] = [slice(b, b + s) for b, s in zip(before, inner, strict=True)]
    result[(..., *inside)] = x
    for axis in range(n - 1, -1, -1):
        size, start, end = inner[axis], before[axis], before[axis] + inner[axis]
        source = rule(size, start, after[axis]) + start
        lead, rest = inside[:axis], inside[:0] + [slice(None)] * (n - 1 - axis)
        for places in (range(start), range(end, end + after[axis])):
            for place in places:
                into, of = [*lead, place, *rest], [*lead, int(source[place]), *rest]
                result[(..., *into)] = result[(..., *of)]
    return result


def _by_index_backward(n: int, rule: Callable[[int, int, int], Array]) -> Callable[..., Array]:
    def kernel(grad_output: Array, self: Array, padding: Sequence[int]) -> Array:
        grad = grad_output.astype(wide(self.dtype), copy=False)
        for i in range(n):
            axis = self.ndim - 1 - i
            index = rule(self.shape[axis], padding[2 * i], padding[2 * i + 1])
            matrix = _matrix(self.shape[axis], len(index), [(index, None)], grad.dtype)
            grad = np.moveaxis(np.matmul(np.moveaxis(grad, axis, -1), matrix), -1, axis)
        return grad.astype(self.dtype)

    return kernel


def _check_padding(name: str, n: int, self: Array, padding: Sequence[int]) -> None:
    if len(padding) != 2 * n:
        raise OperatorError(f"padding size is expected to be {2 * n}")
    if self.ndim not in (n + 1, n + 2) or 0 in self.shape[-n - 1 :]:
        raise OperatorError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(self.shape)}"
        )
    if self.dtype == xp.BOOL:
        raise no_kernel(name, self.dtype)
    for i in range(n if name.startswith("reflection") else 0):
        if max(padding[2 * i : 2 * i + 2]) >= self.shape[-1 - i]:
            raise OperatorError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({padding[2 * i]}, {padding[2 * i + 1]}) at dimension {self.ndim - 1 - i} of input "
                f"{list(self.shape)}"
            )
    for i in range(n):
        size = self.shape[-1 - i] + padding[2 * i] + padding[2 * i + 1]
        if size < 1:
            raise OperatorError(
                f"input ({'DHW'[2 - i]}: {self.shape[-1 - i]}) is too small. Calculated output {'DHW'[2 - i]}: {size}"
            )


op("aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", kernel=constant_pad_nd,
   variants="function out", gradient={"self": "constant_pad_nd(grad, [-p for p in pad], 0)"})  # fmt: skip

for _mode, _index_rule in (("reflection", _reflected), ("replication", _repeated)):
    for _n in (1, 2, 3):
        _name = f"{_mode}_pad{_n}d"
        op(f"aten::{_name}(Tensor self, SymInt[{2 * _n}] padding) -> Tensor", kernel=_by_index(_name, _n, _index_rule),
           variants="function out", gradient={"self": f"{_name}_backward(grad, self, padding)"},
           autocast="" if _name == "reflection_pad3d" else "full")  # fmt: skip
        op(f"aten::{_name}_backward(Tensor grad_output, Tensor self, SymInt[{2 * _n}] padding) -> Tensor",
           kernel=_by_index_backward(_n, _index_rule), gradient={"grad_output": f"{_name}(grad, padding)",
                                                              "self": "zeros_like(self)"})  # fmt: skip


def pad(self: Tensor, pad: list[int], mode: str, value: float | None) -> Tensor:
    """Padding by the name of its mode."""
    n = len(pad) // 2
    rest: tuple[float, ...]
    name, rest = "constant_pad_nd", (0.0 if value is None else value,)
    if mode != "constant":
        if value is not None and value != 0:
            raise OperatorError(f'Padding mode "{mode}" doesn\'t take in value argument')
        kind = {"reflect": "reflection", "replicate": "replication", "circular": "circular"}.get(mode)
        if kind is None:
            raise OperatorDtypeError(
                f"Unrecognised padding mode {mode}", hints=("constant, reflect, replicate, circular",)
            )
        if len(pad) % 2:
            raise OperatorError("Padding length must be divisible by 2")
        if len(pad) not in (2, 4, 6) or self.ndim not in (n + 1, n + 2):
            raise OperatorDtypeError(
                f"Padding size {len(pad)} is not supported for {self.ndim}D input tensor.",
                hints=("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now",),
            )
        if kind == "circular":
            return _circular(self, pad)
        name, rest = f"{kind}_pad{n}d", ()
    padded: Tensor = run(name, self, pad, *rest)
    return padded


def _circular(self: Tensor, pad: list[int]) -> Tensor:
    result = self
    for i in range(len(pad) // 2):
        axis, before, after = self.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        size = self.shape[axis]
        if before > size or after > size:
            raise OperatorError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise OperatorError("Negative padding value is resulting in an empty dimension")
        start = max(-before, 0)
        count = size - start - max(-after, 0)
        middle = result.narrow(axis, start, count)
        parts = [middle.narrow(axis, count - before, before)] if before > 0 else []
        parts += [middle, middle.narrow(axis, 0, after)] if after > 0 else [middle]
        result = run("cat", parts, axis)
    return result


op('aten::pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor', python=pad,
   unboxed=unboxed.pad)  # fmt: skip


# ------------------------------------------------------------------ layouts

describe(
    "upsample_nearest2d _upsample_nearest_exact2d upsample_bilinear2d upsample_bicubic2d reflection_pad2d "
    "replication_pad2d upsample_nearest2d_backward _upsample_nearest_exact2d_backward upsample_bilinear2d_backward",
    layout="channels last",
)
describe(
    "reflection_pad2d_backward reflection_pad3d_backward replication_pad2d_backward replication_pad3d_backward",
    layout="channels last: self",
)

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("upsample_linear1d upsample_trilinear3d", refuses=no_code("i", "compute_indices_weights_linear"))
describe(
    "_upsample_nearest_exact1d.out _upsample_nearest_exact2d.out _upsample_nearest_exact3d.out "
    "constant_pad_nd.out reflection_pad1d.out reflection_pad3d.out replication_pad1d.out "
    "replication_pad2d.out replication_pad3d.out upsample_bicubic2d.out upsample_bilinear2d.out "
    "upsample_linear1d.out upsample_nearest1d.out upsample_nearest2d.out upsample_nearest3d.out "
    "upsample_trilinear3d.out",
    out_check=out_checks.check_same,
)
describe("reflection_pad2d.out", out_check=out_checks.only_same("expected scalar type {wanted} but found {given}"))
