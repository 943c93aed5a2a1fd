"""Pooling and unfolding.

In: arrays (batch?, channels, *space).  Out: arrays.  Loops run over the places of the kernel only; adaptive averages
are products with a matrix of averages for each dimension.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks, unboxed
from engine.aten.dispatch.compose import cast, mean_over, run, widened
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import pooling_checks, pooling_precomputed, shapes
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import no_kernel
from engine.aten.kernels.windows import Space, offsets, pad, scatter_windows, shifted, windows
from engine.aten.values import xp
from engine.aten.values.promotion import wide
from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

Sizes = tuple[int, ...]

# ------------------------------------------------------------------ sizes


def _spread(name: str, values: Sequence[int] | int, n: int) -> Sizes:
    listed = [values] if isinstance(values, int) else list(values)
    if len(listed) not in (1, n):
        raise OperatorError(f"{name} must either be a single int, or a tuple of {n} ints")
    return tuple(listed) * n if len(listed) == 1 else tuple(listed)


def _named(name: str, axes: Sequence[str], values: Sequence[int]) -> str:
    """`kH: 1 kW: 2`: a number for each of the last axes; one number alone is a row's."""
    shown = [1, *values] if len(values) == 1 else values
    return " ".join(f"{name}{axis}: {value}" for axis, value in zip(axes[-len(shown) :], shown, strict=True))


def _space(
    name: str, n: int, x: Array, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int],
) -> Space:  # fmt: skip
    """The checked geometry; without a stride the kernel's size is the stride."""
    k = _spread("kernel_size", kernel, n)
    space = Space(k, _spread("stride", stride, n) if stride else k, _spread("padding", padding, n),
                  _spread("dilation", dilation, n))  # fmt: skip
    if min(space.kernel) < 1:
        raise OperatorError(f"kernel size should be greater than zero, but got {_named('k', 'THW', space.kernel)}")
    if 0 in space.stride:
        raise OperatorError("stride should not be zero")
    if min(space.stride) < 0:
        raise OperatorError(f"stride should be greater than zero, but got {_named('d', 'THW', space.stride)}")
    if min(space.dilation) < 1:
        raise OperatorError(
            f"dilation should be greater than zero, but got {_named('dilation', 'THW', space.dilation)}"
        )
    if min(space.padding) < 0:
        raise OperatorError(f"pad must be non-negative, but got pad: {min(space.padding)}")
    if any(p > e // 2 for p, e in zip(space.padding, space.extent(), strict=True)):
        raise OperatorError(
            f"pad should be at most half of effective kernel size, but got pad={max(space.padding)}, "
            f"kernel_size={max(space.kernel)} and dilation={max(space.dilation)}"
        )
    if x.ndim not in (n + 1, n + 2):
        raise OperatorError(
            f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input, but got: {list(x.shape)}"
        )
    pooling_checks.space_is_there(name, n, x.shape)
    return space


def _places(sizes: Sizes, space: Space, ceil_mode: bool, channels: int) -> Sizes:
    """Output sizes: the number of windows that fit; with `ceil_mode` a last one may overhang, if it starts inside."""
    found = []
    for size, extent, step, p in zip(sizes, space.extent(), space.stride, space.padding, strict=True):
        span = size + 2 * p - extent
        count = (-(-span // step) if ceil_mode else span // step) + 1
        if ceil_mode and (count - 1) * step >= size + p:
            count -= 1
        found.append(count)
    if min(found) < 1:
        before, after = ("x".join(map(str, (channels, *s))) for s in (sizes, found))
        raise OperatorError(
            f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small"
        )
    return tuple(found)


def _overhang(sizes: Sizes, space: Space, places: Sizes) -> Sizes:
    """Padding that the windows need after the end of each dimension."""
    reach = ((c - 1) * s + e for c, s, e in zip(places, space.stride, space.extent(), strict=True))
    return tuple(max(r - size - p, 0) for r, size, p in zip(reach, sizes, space.padding, strict=True))


# ------------------------------------------------------------------ greatest


def _lowest(d: xp.NumpyDtype) -> Any:
    return np.iinfo(d).min if d in xp.INTEGERS else -math.inf


def _greatest(
    n: int, self: Array, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil_mode: bool,
) -> Array:  # fmt: skip
    """Greatest of each window, without its place, which costs much more to find."""
    key = pooling_precomputed.key_of(f"max{n}", self, kernel_size, stride, padding, dilation, ceil_mode)
    quick = pooling_precomputed.known(key)
    if quick is not None:
        return quick(self)
    if self.dtype not in xp.REAL:
        raise no_kernel(f"max_pool{n}d", self.dtype)
    space = _space(f"max_pool{n}d_with_indices_out_cpu_template", n, self, kernel_size, stride, padding, dilation)
    sizes = self.shape[-n:]
    places = _places(sizes, space, ceil_mode, self.shape[-n - 1])
    work = pooling_precomputed.greatest(space, places, _overhang(sizes, space, places), _lowest(self.dtype))
    return pooling_precomputed.keep(key, work)(self)


def _max_pool(n: int) -> Callable[..., tuple[Array, Array]]:
    """Greatest of each window, and where in the space it is."""

    def kernel(
        self: Array, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
        dilation: Sequence[int], ceil_mode: bool,
    ) -> tuple[Array, Array]:  # fmt: skip
        if self.dtype not in xp.REAL:
            raise no_kernel(f"max_pool{n}d", self.dtype)
        space = _space(f"max_pool{n}d_with_indices_out_cpu_template", n, self, kernel_size, stride, padding, dilation)
        sizes = self.shape[-n:]
        places = _places(sizes, space, ceil_mode, self.shape[-n - 1])
        after = _overhang(sizes, space, places)
        padded = pad(self, space.padding, after, _lowest(self.dtype))
        where = pad(np.arange(math.prod(sizes)).reshape(sizes), space.padding, after, -1)
        best = index = None
        for offset in offsets(space):
            values, spots = (shifted(a, offset, space.stride, places) for a in (padded, where))
            if best is None or index is None:
                best, index = values.copy(), np.broadcast_to(spots, values.shape).copy()
                continue
            better = (values > best) | (values != values) | ((index < 0) & (spots >= 0))
            np.copyto(best, values, where=better)
            np.copyto(index, spots, where=better)
        assert best is not None
        assert index is not None
        return best, index

    return kernel


def _max_only(n: int) -> Callable[..., Tensor]:
    def pool(self: Tensor, *args: Any) -> Tensor:
        if n == 1 and self.array.dtype not in xp.FLOATING:
            raise no_kernel("max_pool1d_impl", self.array.dtype)
        if n == 1:
            pooling_checks.max_pool1d(self.array.shape, *args)
        if not (MODE.enabled and self.requires_grad):
            return Tensor(_greatest(n, self.array, *args))
        pooled: Tensor = run(f"max_pool{n}d_with_indices", self, *args)[0]
        return pooled

    return pool


def put_back(grad: Tensor, self: Tensor, places: Tensor, n: int) -> Tensor:
    """Gradient of a choice: each place's goes where the chosen element came from."""
    lead, shape = list(self.shape[: self.ndim - n]), list(self.shape)
    zeros = from_numpy(np.zeros((*lead, math.prod(shape[self.ndim - n :])), grad.array.dtype))
    flat = [t.reshape([*lead, math.prod(t.shape[t.ndim - n :])]) for t in (places, grad)]
    spread: Tensor = run("scatter_add", zeros, -1, *flat).reshape(shape)
    return spread


def take_back(grad: Tensor, places: Tensor, n: int) -> Tensor:
    """The inverse of `put_back`: the elements gathered from their positions."""
    lead = list(grad.shape[: grad.ndim - n])
    flat = grad.reshape([*lead, math.prod(grad.shape[grad.ndim - n :])])
    index = places.reshape([*lead, math.prod(places.shape[places.ndim - n :])])
    taken: Tensor = flat.gather(-1, index).reshape(list(places.shape))
    return taken


op("aten::_put_back(Tensor grad, Tensor self, Tensor places, int n) -> Tensor", python=put_back,
   gradient={"grad": "_take_back(grad, places, n)", "self": "zeros_like(self)"})  # fmt: skip
op("aten::_take_back(Tensor grad, Tensor places, int n) -> Tensor", python=take_back)


def _put_back(n: int) -> str:
    return f"_put_back(grad, self, result1, {n})"


for _n, _zero, _one in ((1, "[0]", "[1]"), (2, "0", "1"), (3, "0", "1")):
    _args = (f"(Tensor self, int[{_n}] kernel_size, int[{_n}] stride=[], int[{_n}] padding={_zero}, "
             f"int[{_n}] dilation={_one}, bool ceil_mode=False")  # fmt: skip
    op(f"aten::max_pool{_n}d{_args}) -> Tensor", python=_max_only(_n), shape=shapes.pooled(_n), dtype="floats",
       unboxed=unboxed.on_tensors, recorded_as=f"max_pool{_n}d_with_indices",
       autocast="full" if _n == 3 else "")  # fmt: skip
    op(f"aten::max_pool{_n}d_with_indices{_args}) -> (Tensor, Tensor)", kernel=_max_pool(_n),
       gradient={"self": _put_back(_n)})  # fmt: skip
    if _n > 1:
        op(f"aten::max_pool{_n}d_with_indices.out{_args}, *, Tensor(a!) out, Tensor(b!) indices) -> "
           "(Tensor(a!), Tensor(b!))", kernel=_max_pool(_n))  # fmt: skip

# ------------------------------------------------------------------ averages


def _divisor(
    sizes: Sizes, space: Space, places: Sizes, include_pad: bool, override: int | None, d: xp.NumpyDtype
) -> Any:
    """Divisor of each window's sum: its number of elements, including those of the padding with `include_pad`."""
    if override is not None:
        if override == 0:
            raise OperatorError("divisor must be not zero")
        return override
    after = _overhang(sizes, space, places)
    counts = np.ones((), d)
    for i, size in enumerate(sizes):
        p, extra = space.padding[i], after[i]
        inside = np.zeros(p + size + extra, d)
        inside[slice(0, p + size + min(p, extra)) if include_pad else slice(p, p + size)] = 1
        one = Space(space.kernel[i : i + 1], space.stride[i : i + 1], (0,), (1,))
        counts = counts[..., None] * windows(inside, one)[: places[i]].sum(axis=-1)
    return counts


def _avg_pool(n: int) -> Callable[..., Array]:
    def kernel(
        self: Array, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil_mode: bool,
        count_include_pad: bool, divisor_override: int | None = None,
    ) -> Array:  # fmt: skip
        key = pooling_precomputed.key_of(
            f"average{n}", self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
        quick = pooling_precomputed.known(key)
        if quick is not None:
            return quick(self)
        if self.dtype not in xp.REAL:
            raise no_kernel(f"avg_pool{n}d", self.dtype)
        space = _space(f"avg_pool{n}d", n, self, kernel_size, stride, padding, [1])
        sizes = self.shape[-n:]
        places = _places(sizes, space, ceil_mode, self.shape[-n - 1])
        used = wide(self.dtype)
        divisor = _divisor(sizes, space, places, count_include_pad, divisor_override, used)
        after = _overhang(sizes, space, places)
        if used is self.dtype and used in xp.FLOATS:
            return pooling_precomputed.keep(key, pooling_precomputed.averages(space, places, after, divisor))(self)
        padded = pad(self.astype(used, copy=False), space.padding, after)
        total = np.zeros((*self.shape[:-n], *places), used)
        for offset in offsets(space):
            total += shifted(padded, offset, space.stride, places)
        result = np.trunc(total / divisor) if used in xp.INTEGERS else np.asarray(total / divisor)
        return result.astype(self.dtype, copy=False)

    return kernel


def _avg_pool_backward(n: int) -> Callable[..., Array]:
    def kernel(
        grad_output: Array, self: Array, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
        ceil_mode: bool, count_include_pad: bool, divisor_override: int | None = None,
    ) -> Array:  # fmt: skip
        space = _space(f"avg_pool{n}d", n, self, kernel_size, stride, padding, [1])
        sizes, places, used = self.shape[-n:], grad_output.shape[-n:], wide(self.dtype)
        share = grad_output.astype(used, copy=False) / _divisor(
            sizes, space, places, count_include_pad, divisor_override, used
        )
        batched = share.reshape(-1, 1, *[1] * n, *places)
        cols = np.broadcast_to(batched, (batched.shape[0], 1, *space.kernel, *places))
        return scatter_windows(cols, (batched.shape[0], 1, *sizes), space).reshape(self.shape).astype(self.dtype)

    return kernel


for _n, _zero in ((1, "[0]"), (2, "0"), (3, "0")):
    _sizes = f"int[{_n}] kernel_size, int[{_n}] stride"
    _rest = "bool ceil_mode=False, bool count_include_pad=True" + (", int? divisor_override=None" if _n > 1 else "")
    _plain = _rest.replace("=False", "").replace("=True", "").replace("=None", "")
    _names = "kernel_size, stride, padding, ceil_mode, count_include_pad" + (", divisor_override" if _n > 1 else "")
    op(f"aten::avg_pool{_n}d(Tensor self, {_sizes}=[], int[{_n}] padding={_zero}, {_rest}) -> Tensor",
       kernel=_avg_pool(_n), variants="function out",
       gradient={"self": f"avg_pool{_n}d_backward(grad, self, {_names})"}, shape=shapes.pooled(_n),
       dtype="floats", autocast="full" if _n == 3 else "")  # fmt: skip
    op(f"aten::avg_pool{_n}d_backward(Tensor grad_output, Tensor self, {_sizes}, int[{_n}] padding, {_plain}) "
       "-> Tensor", kernel=_avg_pool_backward(_n),
       gradient={"grad_output": f"avg_pool{_n}d(grad, {_names})", "self": "zeros_like(self)"})  # fmt: skip

# ------------------------------------------------------------------ adaptive


def _bounds(size: int, count: int) -> tuple[Array, Array]:
    """Starts and ends of `count` adaptive windows over `size` elements."""
    i = np.arange(count)
    return i * size // count, -(-(i + 1) * size // count)


def _averages(size: int, count: int, d: xp.NumpyDtype) -> Array:
    """A matrix (count, size) whose product with a column is its adaptive average."""
    start, end = _bounds(size, count)
    place = np.arange(size)
    member = (place >= start[:, None]) & (place < end[:, None])
    return np.asarray(member / (end - start)[:, None], d)


def _average_along(x: Tensor, axis: int, count: int) -> Tensor:
    """The averages of a dimension's windows, each of its own elements alone: zero times infinity is not zero."""
    size = x.shape[axis]
    start, end = _bounds(size, count)
    taken = start[:, None] + np.arange(max(1, int((end - start).max())))
    rows = x.transpose(axis, -1)
    picked = run("index_select", rows, -1, from_numpy(np.minimum(taken, size - 1).ravel()))
    picked = picked.reshape([*rows.shape[:-1], *taken.shape])
    kept = run("where.ScalarOther", from_numpy(taken < end[:, None]), picked, 0.0)
    sums = run("sum.dim_IntList", kept, [-1], False, None)
    averages: Tensor = (sums / from_numpy((end - start).astype(x.array.dtype))).transpose(axis, -1)
    return averages


def _means_of_tiles(x: Tensor, counts: Sequence[int], reach: Sequence[int]) -> Tensor:
    """The averages of windows that cover the last dimensions side by side, one dimension after the other."""
    lead = list(x.array.shape[: x.ndim - len(counts)])
    result: Tensor = x.reshape([*lead, *itertools.chain.from_iterable(zip(counts, reach, strict=True))])
    for i in range(len(counts)):
        result = run("mean.dim", result, [len(lead) + i + 1], False, None)
    return result


def _adaptive_avg(n: int) -> Callable[[Tensor, list[int]], Tensor]:
    def pool(self: Tensor, output_size: list[int]) -> Tensor:
        d = self.array.dtype
        wanted = pooling_checks.adaptive("avg", n, self.array.shape, output_size)
        if d not in xp.FLOATING:
            raise no_kernel(f"adaptive_avg_pool{n}d", d)
        result = widened(self)
        if set(wanted) == {1}:
            lead = list(self.array.shape[:-n])
            rows = result.reshape([*lead, math.prod(self.array.shape[-n:])])
            return cast(mean_over(rows, [-1]).reshape([*lead, *wanted]), d)
        sizes = self.array.shape[-n:]
        if all(size and count and size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
            reach = [size // count for size, count in zip(sizes, wanted, strict=True)]
            if result.array.flags.c_contiguous:
                return cast(_means_of_tiles(result, wanted, reach), d)
            even = run(f"avg_pool{n}d", result, reach, reach, [0] * n, False, True, *([None] * (n > 1)))
            return cast(even, d)
        is_finite = bool(np.isfinite(result.array).all())
        for axis, count in enumerate(wanted, start=-n):
            if not is_finite:
                result = _average_along(result, axis, count)
                continue
            matrix = from_numpy(_averages(self.array.shape[axis], count, result.array.dtype))
            result = result.transpose(axis, -1).matmul(matrix.t()).transpose(axis, -1)
        return cast(result.contiguous(), d)

    return pool


def _adaptive_max(n: int) -> Callable[[Array, Sequence[int]], tuple[Array, Array]]:
    def kernel(self: Array, output_size: Sequence[int]) -> tuple[Array, Array]:
        wanted = pooling_checks.adaptive("max", n, self.shape, output_size)
        if self.dtype not in xp.FLOATING:
            raise no_kernel(f"adaptive_max_pool{n}d", self.dtype)
        sizes, lead = self.shape[-n:], self.shape[:-n]
        spots = np.arange(math.prod(sizes)).reshape(sizes)
        values = self
        for i, (size, count) in enumerate(zip(sizes, wanted, strict=True)):
            start, end = _bounds(size, count)
            reach = np.arange(max(1, int((end - start).max())) if len(start) else 1)
            taken = np.minimum(start[:, None] + reach, end[:, None] - 1)
            values = values.take(taken, axis=len(lead) + 2 * i)
            spots = spots.take(taken, axis=2 * i)
        order = [*range(0, 2 * n, 2), *range(1, 2 * n, 2)]
        window = math.prod(values.shape[len(lead) + 1 :: 2])
        spots = spots.transpose(order).reshape(*wanted, window)
        values = values.transpose([*range(len(lead)), *(len(lead) + i for i in order)]).reshape(*lead, *wanted, window)
        chosen = values.argmax(axis=-1)
        index = np.take_along_axis(np.broadcast_to(spots, values.shape), chosen[..., None], -1)[..., 0]
        return np.take_along_axis(values, chosen[..., None], -1)[..., 0], index

    return kernel


for _n in (1, 2, 3):
    _int = "int" if _n == 1 else "SymInt"
    op(f"aten::adaptive_avg_pool{_n}d(Tensor self, {_int}[{_n}] output_size) -> Tensor", python=_adaptive_avg(_n),
       shape=shapes.adaptive(_n), dtype="floats", unboxed=unboxed.average(_n),
       autocast="full" if _n == 3 else "")  # fmt: skip
    op(f"aten::adaptive_avg_pool{_n}d.out(Tensor self, {_int}[{_n}] output_size, *, Tensor(a!) out) -> Tensor(a!)",
       kernel=lambda self, size, n=_n: _adaptive_avg(n)(from_numpy(self), size).array,
       shape=shapes.adaptive(_n), dtype="floats")  # fmt: skip
    op(f"aten::adaptive_max_pool{_n}d(Tensor self, int[{_n}] output_size) -> (Tensor, Tensor)",
       kernel=_adaptive_max(_n), gradient={"self": _put_back(_n)}, autocast="full" if _n == 3 else "")  # fmt: skip
    if _n > 1:
        op(f"aten::adaptive_max_pool{_n}d.out(Tensor self, int[{_n}] output_size, *, Tensor(a!) out, "
           "Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))", kernel=_adaptive_max(_n))  # fmt: skip

# ------------------------------------------------------------------ unfolding


def im2col(
    self: Array, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Array:
    """Each window as a column: (batch?, channels * kernel, places)."""
    space = _unfold_space(kernel_size, dilation, padding, stride)
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise OperatorError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(self.shape)}"
        )
    x = self if self.ndim == 4 else self[None]
    padded = pad(x, space.padding)
    if any(e > s for e, s in zip(space.extent(), padded.shape[2:], strict=True)):
        raise OperatorError("the kernel is greater than the padded input: the sliding blocks' shape is too small")
    view = windows(padded, space).transpose(0, 1, 4, 5, 2, 3)
    columns = view.copy().reshape(x.shape[0], x.shape[1] * math.prod(space.kernel), math.prod(view.shape[4:]))
    return columns if self.ndim == 4 else columns[0]


def col2im(
    self: Array, output_size: Sequence[int], kernel_size: Sequence[int], dilation: Sequence[int],
    padding: Sequence[int], stride: Sequence[int],
) -> Array:  # fmt: skip
    """Columns added up where their windows were."""
    space = _unfold_space(kernel_size, dilation, padding, stride)
    if self.ndim not in (2, 3) or self.shape[-2] % math.prod(space.kernel):
        raise OperatorError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input of "
            f"size {list(self.shape)} and kernel_size={list(space.kernel)}"
        )
    sizes = _spread("output_size", output_size, 2)
    steps = zip(sizes, space.padding, space.extent(), space.stride, strict=True)
    places = tuple((size + 2 * p - e) // s + 1 for size, p, e, s in steps)
    if min(places) < 1 or self.shape[-1] != math.prod(places):
        settings = ("kernel_size", space.kernel), ("dilation", space.dilation), ("padding", space.padding)
        shown = [
            f"{name}={tuple(values)}" for name, values in (("output_size", sizes), *settings, ("stride", space.stride))
        ]
        raise OperatorError(
            f"Given {', '.join(shown)}, expected size of input's dimension 2 to match the calculated number of sliding "
            f"blocks {' * '.join(map(str, places))} = {math.prod(places)}, but got input.size(2)={self.shape[-1]}."
        )
    x = self if self.ndim == 3 else self[None]
    channels = x.shape[1] // math.prod(space.kernel)
    cols = x.reshape(x.shape[0], channels, *space.kernel, *places)
    image = scatter_windows(cols, (x.shape[0], channels, *sizes), space)
    return image if self.ndim == 3 else image[0]


def _unfold_space(
    kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Space:
    space = Space(_spread("kernel_size", kernel, 2), _spread("stride", stride, 2), _spread("padding", padding, 2),
                  _spread("dilation", dilation, 2))  # fmt: skip
    axes = ("_height", "_width")
    for name, values, shown in (
        ("kernel", space.kernel, "kernel size"),
        ("dilation", space.dilation, "dilation"),
        ("stride", space.stride, "stride"),
    ):
        if min(values) < 1:
            raise OperatorError(f"{shown} should be greater than zero, but got {_named(name, axes, values)}")
    if min(space.padding) < 0:
        raise OperatorError(f"padding should be non-negative, but got {_named('pad', axes, space.padding)}")
    return space


_UNFOLD: Final = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"
op(f"aten::im2col(Tensor self, {_UNFOLD}) -> Tensor", kernel=im2col, variants="function out",
   gradient={"self": "col2im(grad, self.size()[-2:], kernel_size, dilation, padding, stride)"})  # fmt: skip
op(f"aten::col2im(Tensor self, SymInt[2] output_size, {_UNFOLD}) -> Tensor", kernel=col2im, variants="function out",
   gradient={"self": "im2col(grad, kernel_size, dilation, padding, stride)"})  # fmt: skip


# ------------------------------------------------------------------ layouts

describe("avg_pool2d max_pool2d_with_indices adaptive_max_pool2d", layout="channels last: self")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("avg_pool1d avg_pool2d", refuses=no_code("n", "avg_pool2d"))
describe("avg_pool3d", refuses=no_code("nh", "avg_pool3d_out_frame"))
describe("im2col", refuses=no_code("i", "im2col_out_cpu"))
describe("col2im", refuses=no_code("i", "col2im_out_cpu"))
describe("adaptive_avg_pool1d.out avg_pool1d.out avg_pool2d.out avg_pool3d.out", out_check=out_checks.check_same)
describe(
    "adaptive_avg_pool2d.out adaptive_avg_pool3d.out",
    out_check=out_checks.only_same("expected dtype {c} for `output` but got dtype {c_given}"),
)
describe("im2col.out col2im.out", out_check=out_checks.only_same("expected scalar type {wanted} but found {given}"))
