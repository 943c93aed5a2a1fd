"""Convolutions of one, two and three dimensions, forward, transposed and backward.

In: arrays (batch, channels, *space).  Out: arrays.  Windows of the input become the columns of a matrix, one product
of matrices does the work; loops run over the places of the kernel only.  The backward operator is bilinear like the
convolution, so its gradient is made of the same two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import unboxed
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import convolution_depthwise, shapes
from engine.aten.kernels.convolution_checks import Geometry, batched, check, geometry, same_dims, spread
from engine.aten.kernels.convolution_precomputed import Forward, quick_forward
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.windows import pad, scatter_windows, windows
from engine.aten.values import xp
from engine.aten.values.promotion import wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

Sizes = tuple[int, ...]


# ------------------------------------------------------------------ kernels

_MAX_QUICK: Final = 4096
_QUICK: Final[dict[tuple[Any, ...], Forward]] = {}
"""Sizes, dtypes and geometry of a call that has succeeded -> how to do it again."""


def convolution(
    input: Array, weight: Array, bias: Array | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    key = (
        input.shape, weight.shape, None if bias is None else bias.shape, input.dtype, weight.dtype,
        None if bias is None else bias.dtype, *stride, None, *padding, None, *dilation, transposed, groups,
    )  # fmt: skip
    quick = _QUICK.get(key)
    if quick is not None and type(input) is np.ndarray:
        return _with_bias(quick(input, weight), bias)
    n = weight.ndim - 2
    g = geometry(n, stride, padding, dilation, output_padding, groups)
    check(input, weight, bias, g, transposed)
    used = wide(input.dtype)
    if not transposed and used == input.dtype and used in xp.FLOATS and input.size and not _is_depthwise(weight, g):
        if len(_QUICK) >= _MAX_QUICK:
            _QUICK.clear()
        quick = quick_forward(input.shape, weight.shape, input.itemsize, g.space(weight.shape[2:]), groups)
        _QUICK[key] = quick
        if type(input) is np.ndarray:
            return _with_bias(quick(input, weight), bias)
    x, w = input.astype(used, copy=False), weight.astype(used, copy=False)
    result = _transposed(x, w, g) if transposed else _forward(x, w, g)
    if bias is not None:
        result += bias.astype(used, copy=False).reshape(-1, *[1] * n)
    return result.astype(input.dtype, copy=False)


def _with_bias(result: Array, bias: Array | None) -> Array:
    if bias is not None:
        result += bias.reshape(-1, *[1] * (result.ndim - 2))
    return result


def _forward(x: Array, w: Array, g: Geometry, places: Sizes | None = None) -> Array:
    kernel = w.shape[2:]
    if _is_depthwise(w, g) and x.dtype in xp.FLOATS:
        space = g.space(kernel)
        fitting = zip(x.shape[2:], g.padding, space.extent(), g.stride, strict=True)
        out = places or tuple((size + 2 * p - e) // s + 1 for size, p, e, s in fitting)
        repeated = x if w.shape[0] == x.shape[1] else x.repeat(w.shape[0] // x.shape[1], axis=1)
        return convolution_depthwise.forward(repeated, w[:, 0], space, out)
    cols, out = _columns(x, kernel, g, places)
    matrix = w.reshape(g.groups, w.shape[0] // g.groups, -1)
    return np.asarray(np.matmul(matrix, cols)).reshape(x.shape[0], w.shape[0], *out)


def _is_depthwise(w: Array, g: Geometry) -> bool:
    """True if every channel has kernels of its own."""
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
    if _is_depthwise(w, g) and w.shape[0] == g.groups and x.dtype in xp.FLOATS:
        return convolution_depthwise.to_input(x, w[:, 0], g.space(kernel), shape)
    matrix = w.reshape(g.groups, w.shape[0] // g.groups, -1).swapaxes(1, 2)
    places = x.reshape(batch, g.groups, x.shape[1] // g.groups, math.prod(x.shape[2:]))
    cols = np.matmul(matrix, places).reshape(batch, shape[1], *kernel, *x.shape[2:])
    return scatter_windows(cols, shape, g.space(kernel))


def _weight_gradient(grad: Array, x: Array, w: Array, g: Geometry) -> Array:
    """Gradient of the weight: positions of `grad` times the windows of `x` from which they were computed."""
    if _is_depthwise(w, g) and w.shape[0] == g.groups and x.dtype in xp.FLOATS:
        return convolution_depthwise.to_kernels(grad, x, w.shape[2:], g.space(w.shape[2:]))[:, None]
    if not grad.size or not x.size:
        return np.zeros(w.shape, grad.dtype)
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
    g = geometry(n, stride, padding, dilation, output_padding, groups)
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


# ------------------------------------------------------------------ as programs call them


def _convolve(name: str, n: int, input: Tensor, weight: Tensor, *rest: Any) -> Tensor:
    """`aten::convolution`, which also takes an input without batch."""
    if batched(name, n, input, weight):
        convolved: Tensor = run("convolution", input, weight, *rest)
        return convolved
    with_batch: Tensor = run("convolution", input.unsqueeze(0), weight, *rest)
    unbatched: Tensor = with_batch.squeeze(0)
    return unbatched


def _conv(n: int) -> Any:
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
        groups: int,
    ) -> Tensor:  # fmt: skip
        return _convolve(f"conv{n}d", n, input, weight, bias, stride, padding, dilation, False, [0] * n, groups)

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
        if padding == "same":
            if input.ndim == n + 2:
                same_dims(input, weight)
            if any(s != 1 for s in spread("stride", stride, n)):
                raise OperatorError("padding='same' is not supported for strided convolutions")
            total = [d * (k - 1) for d, k in zip(spread("dilation", dilation, n), weight.shape[2:], strict=True)]
            before = [t // 2 for t in total]
            extra = [side for t in reversed(total) for side in (0, t % 2)]
            if any(extra):
                input = run("constant_pad_nd", input, extra, 0)
        return _convolve(f"conv{n}d", n, input, weight, bias, stride, before, dilation, False, [0] * n, groups)

    return conv


def _conv_transpose(n: int) -> Any:
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
        output_padding: list[int], groups: int, dilation: list[int],
    ) -> Tensor:  # fmt: skip
        name = f"conv_transpose{n}d"
        return _convolve(name, n, input, weight, bias, stride, padding, dilation, True, output_padding, groups)

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
   variants="function out", gradient=_GRADIENT, shape=shapes.convolution, dtype="agreed",
   layout="channels last", jit_autocast="fast")  # fmt: skip
op(f"aten::_convolution.deprecated({_HEAD}, {_SHAPE}, int[] output_padding, SymInt groups, bool benchmark, "
   "bool deterministic, bool cudnn_enabled) -> Tensor", kernel=lambda *a: convolution(*a[:9]),
   gradient=_GRADIENT, shape=shapes.convolution, dtype="agreed", layout="channels last", jit_autocast="fast",
   autocast="fast")  # fmt: skip
op(f"aten::_convolution({_HEAD}, {_SHAPE}, SymInt[] output_padding, SymInt groups, bool benchmark, "
   "bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor", kernel=lambda *a: convolution(*a[:9]),
   variants="function out", gradient=_GRADIENT, shape=shapes.convolution, dtype="agreed",
   layout="channels last", jit_autocast="fast")  # fmt: skip
op(f"aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, {_SHAPE}, "
   "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
   kernel=convolution_backward, layout="channels last", gradient={
       name: f"_convolution_double_backward(grads[0], grads[1], grads[2], grad_output, weight, input, {_ARGS}, "
             f"[True, True, True])[{i}]"
       for i, name in enumerate(("grad_output", "input", "weight"))
   })  # fmt: skip
op("aten::_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, "
   f"{_SHAPE}, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
   python=convolution_double_backward)  # fmt: skip


def _convolution_mode(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str, dilation: list[int],
    groups: int,
) -> Tensor:  # fmt: skip
    """Padding by name, for any number of dimensions; traces call it."""
    return _conv_padding(weight.ndim - 2)(input, weight, bias, stride, padding, dilation, groups)  # type: ignore[no-any-return]


op(f"aten::_convolution_mode({_HEAD}, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups) -> Tensor",
   python=_convolution_mode)  # fmt: skip
for _n in (1, 2, 3):
    _ones, _zeros = str([1] * _n), str([0] * _n)
    _tail = f"SymInt[{_n}] dilation={_ones}, SymInt groups=1"
    op(f"aten::conv{_n}d({_HEAD}=None, SymInt[{_n}] stride={_ones}, SymInt[{_n}] padding={_zeros}, {_tail}) -> Tensor",
       python=_conv(_n), shape=shapes.convolution, dtype="agreed", unboxed=unboxed.convolution(_n),
       recorded_as="convolution", jit_autocast="fast", autocast="fast")  # fmt: skip
    op(f'aten::conv{_n}d.padding({_HEAD}=None, SymInt[{_n}] stride={_ones}, str padding="valid", {_tail}) -> Tensor',
       python=_conv_padding(_n), shape=shapes.convolution, dtype="agreed", unboxed=unboxed.on_tensors,
       jit_autocast="fast", autocast="fast")  # fmt: skip
    op(f"aten::conv_transpose{_n}d{'' if _n == 1 else '.input'}({_HEAD}=None, SymInt[{_n}] stride={_ones}, "
       f"SymInt[{_n}] padding={_zeros}, SymInt[{_n}] output_padding={_zeros}, SymInt groups=1, "
       f"SymInt[{_n}] dilation={_ones}) -> Tensor", python=_conv_transpose(_n), unboxed=unboxed.on_tensors,
       jit_autocast="fast" if _n == 1 else "", autocast="fast")  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("conv_transpose1d conv_transpose2d", refuses=no_code("n", "slow_conv_transpose2d_out_cpu"))
describe("conv_transpose3d", refuses=no_code("n", "slow_conv_transpose3d_out_cpu"))
