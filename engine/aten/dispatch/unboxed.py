"""Operators on bare arrays, for generated code: bodies for those that have no kernel of their own.

In: an operator whose body runs operators on tensors.  Out: a function that does the same with arrays.  Rows name one
of these makers as `unboxed`.  A body is made anew for each node, so that it can remember what it met last.  Where
arguments are unusual, or wrong, the operator itself runs, on tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import table
from engine.aten.dispatch.compile import array_kernel
from engine.aten.dispatch.op import Op
from engine.aten.kernels.recurrence import lstm_cell
from engine.aten.values import xp
from engine.aten.values.tensor import wrapped
from engine.aten.values.xp import Array
from engine.lang.types import ListType, OptionalType, TensorType, Type, walk

Body = Callable[..., Any]
Maker = Callable[[Op], Body]


def tensor_in(type: Type) -> bool:
    """True if values of the type may be or hold tensors."""
    return any(isinstance(part, TensorType) for part in walk(type))


def kind_of(type: Type) -> Any:
    """tensor, tensor? or tensor[]; empty for a type without tensors; None for one that holds them otherwise."""
    if isinstance(type, TensorType):
        return "tensor"
    if isinstance(type, (OptionalType, ListType)) and isinstance(type.element, TensorType):
        return "tensor?" if isinstance(type, OptionalType) else "tensor[]"
    return None if any(kind_of(part) != "" for part in type.contained()) else ""


def entry(name: str) -> Op:
    """The operator of that qualified name, without `aten::`."""
    found = table.find(f"aten::{name}")
    assert found is not None, name
    return found


def on_tensors(op: Op) -> Body:
    """The operator itself, on tensors that share the arrays; its results have to be new memory."""
    run = op.run
    places = [i for i, a in enumerate(op.schema.arguments) if kind_of(a.type) != ""]

    def body(*args: Any) -> Any:
        given = [*args]
        for place in places:
            given[place] = _as_tensor(given[place])
        found = run(*given)
        return tuple(each.array for each in found) if type(found) is tuple else found.array

    return body


def _as_tensor(value: Any) -> Any:
    if type(value) is list:
        return [*map(_as_tensor, value)]
    return wrapped(value) if type(value) is np.ndarray else value


def first_of(name: str) -> Maker:
    """The first result of another operator's kernel, which takes the first arguments."""

    def make(op: Op) -> Body:
        other = entry(name)
        kernel, count = array_kernel(other), len(other.schema.arguments)
        return lambda *args: kernel(*args[:count])[0]

    return make


def batch_norm(op: Op) -> Body:
    """Two steps over the input, with running statistics and all in one floating dtype."""
    other = first_of("native_batch_norm")(op)

    def body(
        x: Array, weight: Array | None, bias: Array | None, mean: Array | None, var: Array | None, training: bool,
        momentum: float, eps: float, cudnn: bool,
    ) -> Array:  # fmt: skip
        statistics = (mean, var, weight, bias)
        channels = x.shape[1:2]
        is_usual = not training and x.dtype in xp.FLOATS and channels
        if not is_usual or any(v is None or v.dtype is not x.dtype or v.shape != channels for v in statistics):
            found: Array = other(x, weight, bias, mean, var, training, momentum, eps)
            return found
        assert var is not None and mean is not None
        scale = (1 / np.sqrt(var + x.dtype.type(eps))) * weight
        shift = bias - mean * scale
        per_channel = (-1, *[1] * (x.ndim - 2))
        result = np.multiply(x, scale.reshape(per_channel))
        shifted: Array = np.add(result, shift.reshape(per_channel), result)
        return shifted

    return body


def average(n: int) -> Maker:
    """The mean, where everything in a channel is averaged; `n` is the number of spatial dimensions."""

    def make(op: Op) -> Body:
        other, mean, dims = on_tensors(op), array_kernel(entry("mean.dim")), [*range(-n, 0)]

        def body(x: Array, sizes: Sequence[int]) -> Array:
            is_usual = x.dtype in xp.FLOATS and x.ndim in (n + 1, n + 2) and x.size and [*sizes] == [1] * n
            found: Array = mean(x, dims, True, None) if is_usual else other(x, sizes)
            return found

        return body

    return make


def convolution(n: int) -> Maker:
    """`aten::convolution`, for an input with a batch; `n` is the number of spatial dimensions."""

    def make(op: Op) -> Body:
        kernel, other, none = array_kernel(entry("convolution")), on_tensors(op), [0] * n

        def body(
            x: Array, w: Array, b: Array | None, stride: Sequence[int], padding: Sequence[int],
            dilation: Sequence[int], groups: int,
        ) -> Array:  # fmt: skip
            if x.ndim != n + 2:
                unusual: Array = other(x, w, b, stride, padding, dilation, groups)
                return unusual
            result: Array = kernel(x, w, b, stride, padding, dilation, False, none, groups)
            return result

        return body

    return make


def dropout(op: Op) -> Body:
    """The argument itself where nothing is dropped."""
    other = on_tensors(op)
    return lambda x, p, train: x if not train and 0 <= p <= 1 else other(x, p, train)


_MOST_KNOWN: Final = 64
"""Largest number of sizes of which a body remembers something."""
_PADS: Final = {"reflect": "reflection", "replicate": "replication"}


def pad(op: Op) -> Body:
    """The kernel of the mode; places are kept for the sizes met first."""
    other, constant = on_tensors(op), array_kernel(entry("constant_pad_nd"))
    kernels = {(mode, n): array_kernel(entry(f"{name}_pad{n}d")) for mode, name in _PADS.items() for n in (1, 2, 3)}

    known: dict[tuple[Any, ...], Array] = {}

    def body(x: Array, pad: Sequence[int], mode: str, value: float | None) -> Array:
        n = len(pad) // 2
        if mode == "constant":
            padded: Array = constant(x, pad, 0.0 if value is None else value)
            return padded
        places = known.get((mode, x.ndim, x.shape[-1], *pad)) if n == 1 and x.ndim and x.size and not value else None
        if places is not None and x.dtype in xp.FLOATING:
            taken: Array = x.take(places, -1)
            return taken
        kernel = kernels.get((mode, n)) if not value and x.ndim in (n + 1, n + 2) and len(pad) == 2 * n else None
        filled: Array = other(x, pad, mode, value) if kernel is None else kernel(x, pad)
        if kernel is not None and n == 1 and len(known) < _MOST_KNOWN:
            line = np.arange(x.shape[-1], dtype=np.float64)
            known[mode, x.ndim, x.shape[-1], *pad] = kernel(line[None], pad)[0].astype(np.intp)
        return filled

    return body


def lstm(op: Op) -> Body:
    """The kernel of one step."""
    other = on_tensors(op)

    def body(x: Array, state: Sequence[Array], *weights: Array | None) -> tuple[Array, Array]:
        if len(state) == 2 and _is_usual_cell(x, state[0], state[1], *weights):
            return lstm_cell(x, (state[0], state[1]), weights)  # type: ignore[arg-type,return-value]
        found: tuple[Array, Array] = other(x, [*state], *weights)
        return found

    return body


def _is_usual_cell(
    x: Array, h: Array, c: Array, w_ih: Array | None, w_hh: Array | None, b_ih: Array | None, b_hh: Array | None
) -> bool:
    """True if all sizes fit with nothing to broadcast, in one floating dtype."""
    d = x.dtype
    if w_ih is None or w_hh is None or d not in xp.FLOATS or x.ndim != 2 or h.ndim != 2:
        return False
    size = h.shape[1]
    gates = (4 * size,)
    if h.shape[0] != x.shape[0] or c.shape != h.shape or w_ih.shape != (*gates, x.shape[1]):
        return False
    if w_hh.shape != (*gates, size) or not (h.dtype is c.dtype is w_ih.dtype is w_hh.dtype is d):
        return False
    if b_ih is None or b_hh is None:
        return b_ih is b_hh
    return b_ih.shape == b_hh.shape == gates and b_ih.dtype is b_hh.dtype is d
