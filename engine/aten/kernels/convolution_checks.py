"""Argument checks of convolutions, made before any element is read.

In: the arrays or tensors of a call and its geometry.  Raises OperatorError, with the words for each mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from engine.aten.kernels.rules import c_name, no_kernel, tensor_type
from engine.aten.kernels.windows import Space
from engine.aten.values import xp
from engine.aten.values.xp import Array
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


def geometry(
    n: int, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], output_padding: Sequence[int],
    groups: int,
) -> Geometry:  # fmt: skip
    """The numbers of a convolution over `n` dimensions, each of them for every dimension."""
    if n < 1:
        raise OperatorError("weight should have at least three dimensions")
    return Geometry(
        _spread("stride", stride, n), _spread("padding", padding, n), _spread("dilation", dilation, n),
        _spread("output_padding", output_padding, n), groups,
    )  # fmt: skip


def _spread(name: str, values: Sequence[int], n: int) -> Sizes:
    """One number for all dimensions, or one for each."""
    if len(values) not in (1, n):
        raise OperatorError(
            f"expected {name} to be a single integer value or a list of {n} values to match the convolution "
            f"dimensions, but got {name}={list(values)}"
        )
    return tuple(values) * n if len(values) == 1 else tuple(values)


def spread(name: str, values: Sequence[int], n: int) -> Sizes:
    """The same for a padding given by name."""
    if len(values) not in (1, n):
        raise OperatorError(f"{name} cannot broadcast to {n} dimensions")
    return tuple(values) * n if len(values) == 1 else tuple(values)


_LEAST: Final = (("padding", 0, "negative"), ("stride", 1, "non-positive"), ("dilation", 1, "non-positive"),
                 ("output_padding", 0, "negative"))  # fmt: skip


def check(x: Array, w: Array, bias: Array | None, g: Geometry, transposed: bool) -> None:
    """The call as a whole: numbers, shapes, then dtypes."""
    for name, least, kind in _LEAST:
        values = getattr(g, name)
        if min(values) >= least:
            continue
        if name == "dilation":
            shown = "" if min(values) < 0 else f", but got {[1, *values] if len(values) == 1 else list(values)}"
            raise OperatorError(f"dilation should be greater than zero{shown}")
        raise OperatorError(f"{kind} {name} is not supported")
    if g.groups < 1:
        raise OperatorError("non-positive groups is not supported")
    _shapes(x, w, bias, g, transposed)
    if transposed:
        _output_padding(g)
    _dtypes(x, w, bias, g, transposed)


def _dtypes(x: Array, w: Array, bias: Array | None, g: Geometry, transposed: bool) -> None:
    if x.dtype == xp.BOOL:
        plain = "slow_conv2d_cpu" if x.ndim < 5 else "compute_columns3d"
        raise no_kernel("slow_conv_transpose2d_out_cpu" if transposed else plain, x.dtype)
    if (
        x.dtype == w.dtype
        and (transposed or max(g.dilation) > 1)
        and x.dtype in xp.INTEGERS
        and x.dtype is not xp.INT64
    ):
        raise no_kernel("slow_conv_transpose2d_out_cpu" if transposed else "slow_conv_dilated<>", x.dtype)
    if x.dtype != w.dtype:
        raise OperatorError(_unlike(x.dtype, w.dtype))
    if bias is not None and bias.dtype != x.dtype:
        name = tensor_type if x.dtype in xp.COMPLEX else c_name
        raise OperatorError(f"Input type ({name(x.dtype)}) and bias type ({name(bias.dtype)}) should be the same")


def _unlike(x: xp.NumpyDtype, w: xp.NumpyDtype) -> str:
    if x not in xp.COMPLEX and x.itemsize != 2:
        return f"expected scalar type {xp.ir_name(x)} but found {xp.ir_name(w)}"
    dense = "" if x in xp.COMPLEX else " or input should be a MKLDNN tensor and weight is a dense tensor"
    return f"Input type ({tensor_type(x)}) and weight type ({tensor_type(w)}) should be the same{dense}"


def _shapes(x: Array, w: Array, bias: Array | None, g: Geometry, transposed: bool) -> None:
    same_dims(x, w)
    expected = f"Given groups={g.groups}, expected weight to be"
    if w.shape[0] < g.groups:
        raise OperatorError(
            f"{expected} at least {g.groups} at dimension 0, but got weight of size {list(w.shape)} instead"
        )
    if w.shape[0] % g.groups:
        raise OperatorError(
            f"{expected} divisible by {g.groups} at dimension 0, but got weight of size [{list(w.shape)}] instead"
        )
    _channels(x, w, bias, g, transposed)
    padded = [size + 2 * p for size, p in zip(x.shape[2:], g.padding, strict=True)]
    extent = [d * (k - 1) + 1 for d, k in zip(g.dilation, w.shape[2:], strict=True)]
    if not transposed and any(e > p for e, p in zip(extent, padded, strict=True)):
        inside, reach = " x ".join(map(str, padded)), " x ".join(map(str, extent))
        raise OperatorError(
            f"Calculated padded input size per channel: ({inside}). Kernel size: ({reach}). "
            "Kernel size can't be greater than actual input size"
        )


def same_dims(x: Any, w: Any) -> None:
    """Input and weight must have as many dimensions; arrays or tensors."""
    if x.ndim != w.ndim:
        raise OperatorError(
            f"Expected {w.ndim}-dimensional input for {w.ndim}-dimensional weight{list(w.shape)}, "
            f"but got {x.ndim}-dimensional input of size {list(x.shape)} instead"
        )


def _channels(x: Array, w: Array, bias: Array | None, g: Geometry, transposed: bool) -> None:
    given = f"Given {'transposed=1' if transposed else f'groups={g.groups}'}, weight of size {list(w.shape)}"
    channels = w.shape[0] if transposed else w.shape[1] * g.groups
    if x.shape[1] != channels:
        raise OperatorError(f"{given}, expected input{list(x.shape)} to have {channels} channels, "
                            f"but got {x.shape[1]} channels instead")  # fmt: skip
    produced = w.shape[1] * g.groups if transposed else w.shape[0]
    if bias is not None and bias.shape != (produced,):
        given = f"{given}, " if transposed else f"Given weight of size {list(w.shape)}, "
        raise OperatorError(
            f"{given}expected bias to be 1-dimensional with {produced} elements, "
            f"but got bias of size {list(bias.shape)} instead"
        )


_AXES: Final = ("depth", "height", "width")


def _output_padding(g: Geometry) -> None:
    n = len(g.stride)
    if all(p < s or p < d for p, s, d in zip(g.output_padding, g.stride, g.dilation, strict=True)):
        return
    axes = _AXES[-max(n, 2) :]
    shown = {"output_padding": (g.output_padding, 0), "stride": (g.stride, 1), "dilation": (g.dilation, 1)}
    words = [
        f"{name}_{axis}: {value}"
        for name, (values, other) in shown.items()
        for axis, value in zip(axes, (other, *values) if n == 1 else values, strict=True)
    ]
    raise OperatorError(
        f"output padding must be smaller than either stride or dilation, but got {' '.join(words)}"
    )  # fmt: skip


def batched(name: str, n: int, input: Any, weight: Any) -> bool:
    """True if the input of `name` has a batch dimension.  Raises OperatorError for any other number of dimensions."""
    if input.ndim in (n + 1, n + 2):
        return bool(input.ndim == n + 2)
    raise OperatorError(
        f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, "
        f"but got input of size: {list(input.shape)}"
    )
