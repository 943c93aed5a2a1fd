"""Convolutions of one, two and three dimensions, forward, transposed and backward.

In: arrays (batch, channels, *space).  Out: arrays.  Windows of the input become the columns of a matrix, one product
of matrices does the work; loops run over the places of the kernel only.  The backward operator is bilinear like the
convolution, so its gradient is made of the same two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.aten import depthwise, xp
from engine.aten.compose import run
from engine.aten.op import op
from engine.aten.promotion import wide
from engine.aten.rules import c_name
from engine.aten.tensor import Tensor
from engine.aten.windows import Space, pad, scatter_windows, windows
from engine.aten.xp import Array
from engine.lang.errors import OperatorError

Sizes = tuple[int, ...]


class Geometry(NamedTuple):
    """Stride, padding, dilation and output padding along each dimension, and the number of groups."""

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    output_padding: Sizes
    groups: int

    def space(self, kernel: Sizes) -> Space:
        return Space(kernel, self.stride, self.padding, self.dilation)


# ------------------------------------------------------------------ kernels


def convolution(
    input: Array, weight: Array, bias: Array | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    n = weight.ndim - 2
    g = _geometry(n, stride, padding, dilation, output_padding, groups)
    _check(input, weight, bias, g, transposed)
    used = wide(input.dtype)
    x, w = input.astype(used, copy=False), weight.astype(used, copy=False)
    result = _transposed(x, w, g) if transposed else _forward(x, w, g)
    if bias is not None:
        result += bias.astype(used, copy=False).reshape(-1, *[1] * n)
    return result.astype(input.dtype, copy=False)


def _forward(x: Array, w: Array, g: Geometry, places: Sizes | None = None) -> Array:
    kernel = w.shape[2:]
    if _is_depthwise(w, g) and x.dtype.kind == "f":
        space = g.space(kernel)
        fitting = zip(x.shape[2:], g.padding, space.extent(), g.stride, strict=True)
        out = places or tuple((size + 2 * p - e) // s + 1 for size, p, e, s in fitting)
        repeated = x if w.shape[0] == x.shape[1] else x.repeat(w.shape[0] // x.shape[1], axis=1)
        return depthwise.forward(repeated, w[:, 0], space, out)
    cols, out = _columns(x, kernel, g, places)
    matrix = w.reshape(g.groups, w.shape[0] // g.groups, -1)
    return np.asarray(np.matmul(matrix, cols)).reshape(x.shape[0], w.shape[0], *out)


def _is_depthwise(w: Array, g: Geometry) -> bool:
    """Has every channel kernels of its own?"""
    return g.groups > 1 and w.shape[1] == 1 and math.prod(w.shape[2:]) > 1


def _columns(x: Array, kernel: Sizes, g: Geometry, places: Sizes | None = None) -> tuple[Array, Sizes]:
    """(batch, groups, channels of a group * kernel, places) and the space of the places, the first ones if given."""
    n, batch, groups = len(kernel), x.shape[0], g.groups
    if math.prod(kernel) == 1 and set(g.stride) <= {1} and not any(g.padding):
        return x.reshape(batch, groups, x.shape[1] // groups, math.prod(x.shape[2:])), x.shape[2:]
    view = windows(pad(x, g.padding), g.space(kernel))
    if places is not None:
        view = view[(slice(None), slice(None), *map(slice, places))]
    out = view.shape[2 : 2 + n]
    order = (0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
    rows = x.shape[1] // groups * math.prod(kernel)
    return view.transpose(order).reshape(batch, groups, rows, math.prod(out)), out


def _transposed(x: Array, w: Array, g: Geometry) -> Array:
    kernel = w.shape[2:]
    out = tuple(
        (size - 1) * s - 2 * p + d * (k - 1) + extra + 1
        for size, s, p, d, k, extra in zip(
            x.shape[2:], g.stride, g.padding, g.dilation, kernel, g.output_padding, strict=True
        )
    )
    return _spread_back(x, w, (x.shape[0], w.shape[1] * g.groups, *out), g)


def _spread_back(x: Array, w: Array, shape: Sizes, g: Geometry) -> Array:
    """Each place of x, times the kernel, added up where its window was in an array of `shape`."""
    kernel, batch = w.shape[2:], x.shape[0]
    if _is_depthwise(w, g) and w.shape[0] == g.groups and x.dtype.kind == "f":
        return depthwise.to_input(x, w[:, 0], g.space(kernel), shape)
    matrix = w.reshape(g.groups, w.shape[0] // g.groups, -1).swapaxes(1, 2)
    places = x.reshape(batch, g.groups, x.shape[1] // g.groups, math.prod(x.shape[2:]))
    cols = np.matmul(matrix, places).reshape(batch, shape[1], *kernel, *x.shape[2:])
    return scatter_windows(cols, shape, g.space(kernel))


def _weight_gradient(grad: Array, x: Array, w: Array, g: Geometry) -> Array:
    """What the kernel's gradient is: places of `grad` times the windows of x they came from."""
    if _is_depthwise(w, g) and w.shape[0] == g.groups and x.dtype.kind == "f":
        return depthwise.to_kernels(grad, x, w.shape[2:], g.space(w.shape[2:]))[:, None]
    cols, _ = _columns(x, w.shape[2:], g, grad.shape[2:])
    batch, groups, rows, places = cols.shape
    left = grad.reshape(batch, groups, w.shape[0] // groups, places).transpose(1, 2, 0, 3)
    product = np.matmul(left.reshape(groups, -1, batch * places), cols.transpose(1, 0, 3, 2).reshape(groups, -1, rows))
    return np.asarray(product).reshape(w.shape)


def convolution_backward(
    grad_output: Array, input: Array, weight: Array, bias_sizes: Sequence[int] | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
    output_mask: Sequence[bool],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Gradients of input, weight and bias; of those not asked for, an empty array."""
    n, d = weight.ndim - 2, input.dtype
    g = _geometry(n, stride, padding, dilation, output_padding, groups)
    grad, x, w = (a.astype(wide(d), copy=False) for a in (grad_output, input, weight))
    results = [np.empty(0, d)] * 3
    if output_mask[0]:
        results[0] = _forward(grad, w, g, x.shape[2:]) if transposed else _spread_back(grad, w, x.shape, g)
    if output_mask[1]:
        results[1] = _weight_gradient(x, grad, w, g) if transposed else _weight_gradient(grad, x, w, g)
    if output_mask[2]:
        results[2] = grad.sum(axis=(0, *range(2, grad.ndim)))
    return results[0].astype(d, copy=False), results[1].astype(d, copy=False), results[2].astype(d, copy=False)


def convolution_double_backward(
    of_input: Tensor | None, of_weight: Tensor | None, of_bias: Tensor | None, grad_output: Tensor, weight: Tensor,
    input: Tensor, *geometry: Any,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """Gradients of `convolution_backward`, which is linear in each of its three tensors."""
    *shape, _ = geometry
    to_grad: list[Tensor] = []
    to_input = to_weight = None
    if of_input is not None:
        to_grad.append(run("convolution", of_input, weight, None, *shape))
        to_weight = run("convolution_backward", grad_output, of_input, weight, None, *shape, [False, True, False])[1]
    if of_weight is not None:
        to_grad.append(run("convolution", input, of_weight, None, *shape))
        to_input = run("convolution_backward", grad_output, input, of_weight, None, *shape, [True, False, False])[0]
    if of_bias is not None:
        to_grad.append(of_bias.reshape([-1] + [1] * (weight.ndim - 2)).expand(list(grad_output.shape)))
    total = sum(to_grad[1:], to_grad[0]) if to_grad else None
    return total, to_input, to_weight


# ------------------------------------------------------------------ checks


def _geometry(
    n: int, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], output_padding: Sequence[int],
    groups: int,
) -> Geometry:  # fmt: skip
    return Geometry(_spread(stride, n), _spread(padding, n), _spread(dilation, n), _spread(output_padding, n), groups)


def _spread(values: Sequence[int], n: int) -> Sizes:
    """One number for all dimensions, or one for each."""
    if len(values) not in (1, n):
        raise OperatorError(f"expected 1 value or a list of {n} values, but got {list(values)}")
    return tuple(values) * n if len(values) == 1 else tuple(values)


def _check(x: Array, w: Array, bias: Array | None, g: Geometry, transposed: bool) -> None:
    if g.groups < 1:
        raise OperatorError("non-positive groups is not supported")
    for name, values, least in (("padding", g.padding, 0), ("stride", g.stride, 1), ("dilation", g.dilation, 1)):
        if min(values) < least:
            kind = "negative" if least == 0 else "non-positive"
            words = "dilation should be greater than zero" if name == "dilation" else f"{kind} {name} is not supported"
            raise OperatorError(words)
    if x.dtype != w.dtype:
        raise OperatorError(f"Input type ({c_name(x.dtype)}) and weight type ({c_name(w.dtype)}) should be the same")
    if bias is not None and bias.dtype != x.dtype:
        raise OperatorError(f"Input type ({c_name(x.dtype)}) and bias type ({c_name(bias.dtype)}) should be the same")
    if x.dtype.kind == "b":
        raise OperatorError(f"convolution is not implemented for {xp.ir_name(x.dtype)}")
    _check_shapes(x, w, bias, g, transposed)


def _check_shapes(x: Array, w: Array, bias: Array | None, g: Geometry, transposed: bool) -> None:
    given = f"Given groups={g.groups}, weight of size {list(w.shape)}"
    channels = w.shape[0] if transposed else w.shape[1] * g.groups
    if x.ndim != w.ndim:
        raise _refused_dims(x, w)
    if w.shape[0] < g.groups or w.shape[0] % g.groups:
        raise OperatorError(f"{given}, expected weight to be at least {g.groups} at dimension 0 and divisible by it")
    if x.shape[1] != channels:
        raise OperatorError(f"{given}, expected input{list(x.shape)} to have {channels} channels, "
                            f"but got {x.shape[1]} channels instead")  # fmt: skip
    produced = w.shape[1] * g.groups if transposed else w.shape[0]
    if bias is not None and bias.shape != (produced,):
        raise OperatorError(
            f"Given weight of size {list(w.shape)}, expected bias to be 1-dimensional with {produced} elements, "
            f"but got bias of size {list(bias.shape)} instead"
        )
    padded = [size + 2 * p for size, p in zip(x.shape[2:], g.padding, strict=True)]
    extent = [d * (k - 1) + 1 for d, k in zip(g.dilation, w.shape[2:], strict=True)]
    if not transposed and any(e > p for e, p in zip(extent, padded, strict=True)):
        inside, reach = " x ".join(map(str, padded)), " x ".join(map(str, extent))
        raise OperatorError(
            f"Calculated padded input size per channel: ({inside}). Kernel size: ({reach}). "
            "Kernel size can't be greater than actual input size"
        )


# ------------------------------------------------------------------ as programs call them


def _convolve(n: int, input: Tensor, weight: Tensor, *rest: Any) -> Tensor:
    """`aten::convolution`, which also takes an input without batch."""
    if weight.ndim != n + 2:
        raise _refused_dims(input, weight)
    if input.ndim == n + 1:
        batched: Tensor = run("convolution", input.unsqueeze(0), weight, *rest)
        unbatched: Tensor = batched.squeeze(0)
        return unbatched
    if input.ndim != n + 2:
        raise OperatorError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to conv{n}d, but got input of size: "
            f"{list(input.shape)}"
        )
    convolved: Tensor = run("convolution", input, weight, *rest)
    return convolved


def _refused_dims(input: Tensor | Array, weight: Tensor | Array) -> OperatorError:
    return OperatorError(
        f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight {list(weight.shape)}, "
        f"but got {input.ndim}-dimensional input of size {list(input.shape)} instead"
    )


def _conv(n: int) -> Any:
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
        groups: int,
    ) -> Tensor:  # fmt: skip
        return _convolve(n, input, weight, bias, stride, padding, dilation, False, [0] * n, groups)

    return conv


def _conv_padding(n: int) -> Any:
    """Padding by name: "valid" is none, "same" keeps the space's size."""

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str, dilation: list[int],
        groups: int,
    ) -> Tensor:  # fmt: skip
        if padding not in ("valid", "same"):
            raise OperatorError(f"Invalid padding string: '{padding}'", hints=("write 'valid' or 'same'",))
        before = [0] * n
        if weight.ndim != n + 2:
            raise _refused_dims(input, weight)
        if padding == "same":
            if any(s != 1 for s in stride):
                raise OperatorError("padding='same' is not supported for strided convolutions")
            total = [d * (k - 1) for d, k in zip(_spread(dilation, n), weight.shape[2:], strict=True)]
            before = [t // 2 for t in total]
            extra = [side for t in reversed(total) for side in (0, t % 2)]
            if any(extra):
                input = run("constant_pad_nd", input, extra, 0)
        return _convolve(n, input, weight, bias, stride, before, dilation, False, [0] * n, groups)

    return conv


def _conv_transpose(n: int) -> Any:
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
        output_padding: list[int], groups: int, dilation: list[int],
    ) -> Tensor:  # fmt: skip
        return _convolve(n, input, weight, bias, stride, padding, dilation, True, output_padding, groups)

    return conv


_HEAD: Final = "Tensor input, Tensor weight, Tensor? bias"
_SHAPE: Final = "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed"
_ARGS: Final = "stride, padding, dilation, transposed, output_padding, groups"
_BACK: Final = f"convolution_backward(grad, input, weight, None, {_ARGS}"
_GRADIENT: Final = {
    "input": f"{_BACK}, [True, False, False])[0]",
    "weight": f"{_BACK}, [False, True, False])[1]",
    "bias": f"{_BACK}, [False, False, True])[2]",
}

op(f"aten::convolution({_HEAD}, {_SHAPE}, SymInt[] output_padding, SymInt groups) -> Tensor", kernel=convolution,
   variants="function out", gradient=_GRADIENT)  # fmt: skip
op(f"aten::_convolution.deprecated({_HEAD}, {_SHAPE}, int[] output_padding, SymInt groups, bool benchmark, "
   "bool deterministic, bool cudnn_enabled) -> Tensor", kernel=lambda *a: convolution(*a[:9]),
   gradient=_GRADIENT)  # fmt: skip
op(f"aten::_convolution({_HEAD}, {_SHAPE}, SymInt[] output_padding, SymInt groups, bool benchmark, "
   "bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor", kernel=lambda *a: convolution(*a[:9]),
   variants="function out", gradient=_GRADIENT)  # fmt: skip
op(f"aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, {_SHAPE}, "
   "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
   kernel=convolution_backward, gradient={
       name: f"_convolution_double_backward(grads[0], grads[1], grads[2], grad_output, weight, input, {_ARGS}, "
             f"[True, True, True])[{i}]"
       for i, name in enumerate(("grad_output", "input", "weight"))
   })  # fmt: skip
op("aten::_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, "
   f"{_SHAPE}, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
   python=convolution_double_backward)  # fmt: skip

for _n in (1, 2, 3):
    _ones, _zeros = str([1] * _n), str([0] * _n)
    _tail = f"SymInt[{_n}] dilation={_ones}, SymInt groups=1"
    op(f"aten::conv{_n}d({_HEAD}=None, SymInt[{_n}] stride={_ones}, SymInt[{_n}] padding={_zeros}, {_tail}) -> Tensor",
       python=_conv(_n))  # fmt: skip
    op(f'aten::conv{_n}d.padding({_HEAD}=None, SymInt[{_n}] stride={_ones}, str padding="valid", {_tail}) -> Tensor',
       python=_conv_padding(_n))  # fmt: skip
    op(f"aten::conv_transpose{_n}d{'' if _n == 1 else '.input'}({_HEAD}=None, SymInt[{_n}] stride={_ones}, "
       f"SymInt[{_n}] padding={_zeros}, SymInt[{_n}] output_padding={_zeros}, SymInt groups=1, "
       f"SymInt[{_n}] dilation={_ones}) -> Tensor", python=_conv_transpose(_n))  # fmt: skip
