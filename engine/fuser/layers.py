"""Linear layers and convolutions of float32 as kernels, for operators that are called one by one.

In: arrays, as the kernels of the operators have them (`engine.aten.kernels.compiled`, whose slots this module takes).
Out: the result, or None.  A kernel is compiled once there was enough work for it, and serves all sizes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from engine.aten.kernels.compiled import COMPILED, LEAST
from engine.aten.values.xp import Array
from engine.fuser import convolution as convolutions
from engine.fuser import gemm, machine, tiering
from engine.fuser.convolution import Geometry
from engine.fuser.gemm import Matrix
from engine.fuser.kernel import (
    Buffer,
    Expression,
    For,
    Kernel,
    Let,
    Load,
    LoopKind,
    Name,
    Parameter,
    Scalar,
    Statement,
    Store,
    add,
    allocate,
    apply,
    index,
    multiply,
)

WORTH: Final = 1 << 27
"""Operations after which a kernel is compiled."""
WORTH_A_LOOK: Final = 1 << 26
"""Operations after which its code is looked for on disk."""
_FEW: Final = 16
"""Rows up to which products are made of dot products, which need no panels."""
_BLOCK: Final = 48
"""Rows of the weight for one panel: small, as few panels are all that most batches have, for several threads."""
Entry = Callable[..., int]


@dataclass(slots=True)
class _Layer:
    """A kernel: how much work there was for it, and its code; `is_refused` where there is none to be had."""

    work: int = 0
    entry: Entry | None = None
    is_looked_for: bool = False
    is_waiting: bool = False
    is_refused: bool = False


_LAYERS: Final[dict[Hashable, _Layer]] = {}


def entry_of(key: Hashable, make: Callable[[], Kernel], work: int) -> Entry | None:
    """The code of a kernel, once it pays to compile it."""
    mode = tiering.mode()
    if work < LEAST or mode == "off":
        return None
    layer = _LAYERS.setdefault(key, _Layer())
    if layer.entry is not None or layer.is_waiting or layer.is_refused:
        return layer.entry
    layer.work += work
    if mode == "eager":
        _compile(layer, make(), machine.compile_program)
        return layer.entry
    if layer.work >= WORTH_A_LOOK and not layer.is_looked_for and not machine.is_busy():
        layer.is_looked_for = True
        _compile(layer, make(), machine.stored)
    if layer.entry is None and layer.work >= WORTH:
        layer.is_waiting = True
        tiering.in_background(lambda: _compile(layer, make(), machine.compile_program))
    return layer.entry


def _compile(layer: _Layer, kernel: Kernel, find: Callable[[machine.Program], machine.Code | None]) -> None:
    """Give the layer its code, if that is found."""
    try:
        code = find(machine.program(kernel))
    except machine.MachineError:
        layer.is_refused = True
        return
    if code is None:
        return
    kinds: list[Any] = [ctypes.c_void_p if isinstance(p, Buffer) else ctypes.c_int64 for p in kernel.parameters]
    layer.entry = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(code.addresses[kernel.name])
    layer.is_waiting = False


def is_plain(*arrays: Array | None) -> bool:
    return all(
        each is None
        or (type(each) is np.ndarray and each.dtype == np.float32 and each.flags.c_contiguous and each.flags.aligned)
        for each in arrays
    )


def address_of(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _i(name: str) -> Name:
    return Name(name, "i64")


def _with_bias(value: Expression, has_bias: bool, place: Expression) -> Expression:
    return apply("add", value, Load("bias", (place,), "f32")) if has_bias else value


def _biases(has_bias: bool) -> tuple[Parameter, ...]:
    return (Buffer("bias", "f32", None),) if has_bias else ()


# ------------------------------------------------------------------ linear layers


def linear(rows: Array, weight: Array, bias: Array | None) -> Array | None:
    """(m, k) times the transpose of (n, k), plus (n)."""
    (m, k), n = rows.shape, len(weight)
    if not is_plain(rows, weight, bias) or (bias is not None and bias.shape != (n,)) or not k:
        return None
    tile = None if m <= _FEW else gemm.tile_for(m)
    has_bias = bias is not None
    entry = entry_of(("linear", tile, has_bias), lambda: _linear(tile, has_bias), 2 * m * n * k)
    if entry is None:
        return None
    result = np.empty((m, n), np.float32)
    given = (rows, weight, result) if bias is None else (rows, weight, result, bias)
    return result if entry(m, n, k, *map(address_of, given)) == 0 else None


def _linear(tile: gemm.Tile | None, has_bias: bool) -> Kernel:
    """Rows of the weight times columns, which are rows of x."""
    m, n, k = _i("m"), _i("n"), _i("k")
    x, w, y = Buffer("x", "f32", None), Buffer("w", "f32", None), Buffer("y", "f32", (m, n), access="out")

    def put(row: Expression, column: Expression, value: Expression) -> Sequence[Statement]:
        return [Store("y", (row, column), _with_bias(value, has_bias, column))]

    if tile is None:
        body = gemm.dots(m, n, k, Matrix("x", k), Matrix("w", k), put)
    else:
        fill = gemm.fill_from(Matrix("x", k).transposed, m, tile)
        body = (
            allocate("packed", "f32", gemm.packed_size(k, m, tile)), gemm.packing(m, k, fill, "packed", tile),
            *gemm.product(n, m, k, Matrix("w", k), lambda i, j, v: put(j, i, v), packed="packed", tile=tile,
                          by_columns=True, block=_BLOCK),
        )  # fmt: skip
    sizes = tuple(Scalar(each, "i64") for each in "mnk")
    parameters = (*sizes, x, w, y, *_biases(has_bias))
    return Kernel("linear", parameters, tuple(body), helpers=gemm.helpers(tile))


# ------------------------------------------------------------------ products


def matmul(a: Array, b: Array) -> Array | None:
    """(…, m, k) times (…, k, n), with the same sizes before."""
    rank = a.ndim
    if not 2 <= rank <= 4 or b.ndim != rank or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        return None
    if type(a) is not np.ndarray or type(b) is not np.ndarray or b.dtype != a.dtype or a.dtype != np.float32:
        return None
    (*before, m, k), n = a.shape, b.shape[-1]
    outer, inner = ([1, 1, *before])[-2:]
    work = 2 * outer * inner * m * n * k
    if not work or any(step % 4 for step in (*a.strides, *b.strides)):
        return None
    kind = gemm.tile_for(n, m), outer * inner > 1, m <= gemm.FEW_ROWS and b.strides[-1] == b.itemsize
    entry = entry_of(("matmul", *kind), lambda: _matmul(*kind), work)
    if entry is None:
        return None
    result = np.empty((*before, m, n), np.float32)
    steps = [([0, 0, *(step // 4 for step in each.strides)])[-4:] for each in (a, b)]
    code = entry(outer, inner, m, n, k, *steps[0], *steps[1], address_of(a), address_of(b), address_of(result))
    return result if code == 0 else None


_STEPS: Final = ("outer_step", "inner_step", "row_step", "column_step")


def _matmul(tile: gemm.Tile, is_batched: bool, in_place: bool) -> Kernel:
    """One product after the other; those of a batch in parallel, else the parts of one.

    `in_place`: the rows of the second operand are contiguous, and panels of it not worth a copy.
    """
    m, n, k = _i("m"), _i("n"), _i("k")
    extents = (_i("outer"), _i("inner"))
    a, b = (
        Matrix(
            name, _i(f"{name}_row_step"), _i(f"{name}_column_step"),
            add(multiply(_i("i"), _i(f"{name}_outer_step")), multiply(_i("j_"), _i(f"{name}_inner_step"))),
        ) for name in "ab"
    )  # fmt: skip
    c = Buffer("y", "f32", (*extents, m, n), access="out")
    body = gemm.product(
        m, n, k, a, lambda row, column, value: [Store("y", (_i("i"), _i("j_"), row, column), value)],
        b=replace(b, column=index(1)) if in_place else b, tile=tile, in_place=in_place,
    )  # fmt: skip
    if is_batched:
        body = tuple(replace(s, kind="range") if isinstance(s, For) else s for s in body)
    one = (Let("i", apply("quotient", _i("one"), extents[1])), Let("j_", apply("rest", _i("one"), extents[1])))
    kind: LoopKind = "parallel" if is_batched else "range"
    loop = For("one", index(0), apply("mul", *extents), (*one, *body), kind=kind)
    sizes = ("outer", "inner", "m", "n", "k", *(f"{name}_{step}" for name in "ab" for step in _STEPS))
    operands = (Buffer("a", "f32", None), Buffer("b", "f32", None), c)
    parameters: tuple[Parameter, ...] = (*(Scalar(each, "i64") for each in sizes), *operands)
    return Kernel("matmul", parameters, (loop,), helpers=gemm.helpers(tile))


# ------------------------------------------------------------------ convolutions


def convolution(
    input: Array, weight: Array, bias: Array | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int,
) -> Array | None:  # fmt: skip
    """A convolution of images whose arguments fit each other."""
    if input.ndim != 4 or not is_plain(input, weight, bias) or not input.size or not weight.size:
        return None
    (n, c, h, w), (o, _, *kernel) = input.shape, weight.shape
    oh, ow = (
        (size + 2 * p - d * (extent - 1) - 1) // step + 1
        for size, p, d, extent, step in zip((h, w), _two(padding), _two(dilation), kernel, _two(stride), strict=True)
    )
    is_depthwise = 1 < groups == c == o
    g = Geometry(
        (kernel[0], kernel[1]), _two(stride), _two(padding), _two(dilation), groups, oh * ow <= convolutions.FEW,
        is_depthwise,
    )  # fmt: skip
    has_bias = bias is not None
    work = 2 * n * o * oh * ow * weight.size // o
    entry = entry_of(("convolution", g, has_bias), lambda: _convolution(g, has_bias), work)
    if entry is None:
        return None
    result = np.empty((n, o, oh, ow), np.float32)
    given = (input, weight, result) if bias is None else (input, weight, result, bias)
    return result if entry(n, c, h, w, o, oh, ow, *map(address_of, given)) == 0 else None


def _two(sizes: Sequence[int]) -> tuple[int, int]:
    return (sizes[0], sizes[-1])


def _convolution(g: Geometry, has_bias: bool) -> Kernel:
    def put(channel: Expression, value: Expression) -> Sequence[Statement]:
        place = convolutions.place(channel, _i("column_"))
        return [Store("y", (place,), _with_bias(value, has_bias, channel))]

    result = Buffer("y", "f32", None, access="out")
    parameters = (*convolutions.SIZES, *convolutions.operands(), result, *_biases(has_bias))
    return Kernel("convolution", parameters, convolutions.convolution(g, put), helpers=convolutions.helpers(g))


COMPILED.linear, COMPILED.matmul, COMPILED.convolution = linear, matmul, convolution
