"""Operators made of others, as functions of arrays; and what is asked of a tensor's form, as expressions.

In: an operator that has no kernel of its own, since its body runs operators on tensors.  Out: a function that does the
same with arrays, for generated code: `BODIES` by qualified name.  A body is made anew for each node, so that it can
remember what it met last.  Where arguments are unusual, or wrong, the operator itself runs, on tensors.
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
from engine.ir.graph import Node
from engine.ir.ops import op_of
from engine.lang.types import ListType, OptionalType, TensorType, Type, walk

Body = Callable[..., Any]
Maker = Callable[[Op], Body]


def entry(name: str) -> Op:
    """The operator of that qualified name, without `aten::`."""
    found = table.find(f"aten::{name}")
    assert found is not None, name
    return found


def on_tensors(op: Op) -> Body:
    """The operator itself, between arrays; its results have to be new memory."""
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


def _first_of(name: str) -> Maker:
    """The first result of another operator's kernel, which takes the first arguments."""

    def make(op: Op) -> Body:
        other = entry(name)
        kernel, count = array_kernel(other), len(other.schema.arguments)
        return lambda *args: kernel(*args[:count])[0]

    return make


def _batch_norm(op: Op) -> Body:
    """With running statistics, and all in one dtype of floats, two steps over the input are left."""
    other = _first_of("native_batch_norm")(op)

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


def _average(n: int) -> Maker:
    """Of everything in a channel, which needs no places."""

    def make(op: Op) -> Body:
        other, mean, dims = on_tensors(op), array_kernel(entry("mean.dim")), [*range(-n, 0)]

        def body(x: Array, sizes: Sequence[int]) -> Array:
            is_usual = x.dtype in xp.FLOATS and x.ndim in (n + 1, n + 2) and x.size and [*sizes] == [1] * n
            found: Array = mean(x, dims, True, None) if is_usual else other(x, sizes)
            return found

        return body

    return make


def _convolution(n: int) -> Maker:
    """A convolution with a batch; what follows from shapes and geometry is kept as long as these stay the same."""

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


def _dropout(op: Op) -> Body:
    other = on_tensors(op)
    return lambda x, p, train: x if not train and 0 <= p <= 1 else other(x, p, train)


def dropout_with_mask(op: Op) -> Body:
    """The result, and what the input was multiplied with: None where it is the result."""
    other = on_tensors(op)

    def body(x: Array, p: float, train: bool) -> tuple[Array, Array | None]:
        if not train or p == 0 or x.size == 0:
            return (x if 0 <= p <= 1 else other(x, p, train)), None
        mask = other(np.ones_like(x), p, train)
        return np.multiply(x, mask), mask

    return body


_MOST_KNOWN: Final = 64
"""Sizes of which a body remembers something."""
_PADS: Final = {"reflect": "reflection", "replicate": "replication"}


def _pad(op: Op) -> Body:
    other, constant = on_tensors(op), array_kernel(entry("constant_pad_nd"))
    kernels = {(mode, n): array_kernel(entry(f"{name}_pad{n}d")) for mode, name in _PADS.items() for n in (1, 2, 3)}

    known: dict[tuple[Any, ...], Array] = {}

    def body(x: Array, pad: Sequence[int], mode: str, value: float | None) -> Array:
        n = len(pad) // 2
        if mode == "constant":
            padded: Array = constant(x, pad, 0.0 if value is None else value)
            return padded
        places = known.get((mode, x.ndim, x.shape[-1], *pad)) if n == 1 and x.ndim and x.size and not value else None
        if places is not None and x.dtype.kind == "f":
            taken: Array = x.take(places, -1)
            return taken
        kernel = kernels.get((mode, n)) if not value and x.ndim in (n + 1, n + 2) and len(pad) == 2 * n else None
        filled: Array = other(x, pad, mode, value) if kernel is None else kernel(x, pad)
        if kernel is not None and n == 1 and len(known) < _MOST_KNOWN:
            line = np.arange(x.shape[-1], dtype=np.float64)
            known[mode, x.ndim, x.shape[-1], *pad] = kernel(line[None], pad)[0].astype(np.intp)
        return filled

    return body


def _lstm_cell(op: Op) -> Body:
    other = on_tensors(op)

    def body(x: Array, state: Sequence[Array], *weights: Array | None) -> tuple[Array, Array]:
        if len(state) == 2 and is_usual_cell(x, state[0], state[1], *weights):
            return lstm_cell(x, (state[0], state[1]), weights)  # type: ignore[arg-type,return-value]
        found: tuple[Array, Array] = other(x, [*state], *weights)
        return found

    return body


def is_usual_cell(
    x: Array, h: Array, c: Array, w_ih: Array | None, w_hh: Array | None, b_ih: Array | None, b_hh: Array | None
) -> bool:
    """True if all sizes match without broadcasting and all dtypes are the same floating one."""
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


CONVOLUTIONS: Final = {f"aten::conv{n}d": n for n in (1, 2, 3)}
"""Operators that are `aten::convolution` where their input has a batch, and of how many dimensions."""
FIRST_OF: Final = {"aten::layer_norm": "native_layer_norm", "aten::batch_norm": "native_batch_norm"}
"""Operators that are the first result of another one."""
_AGAIN: Final = (
    "max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d gru_cell "
    "rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention"
).split()
_ONCE: Final = (
    "group_norm rms_norm lstm.input gru.input rnn_tanh.input rnn_relu.input _native_multi_head_attention "
    "_transformer_encoder_layer_fwd cross_entropy_loss nll_loss_nd mse_loss binary_cross_entropy_with_logits "
    "conv1d.padding conv2d.padding conv3d.padding conv_transpose1d conv_transpose2d.input conv_transpose3d.input "
    "cosine_similarity _weight_norm"
).split()
BODIES: Final[dict[str, Maker]] = {
    **{name: _convolution(n) for name, n in CONVOLUTIONS.items()},
    **{name: _first_of(other) for name, other in FIRST_OF.items()},
    "aten::batch_norm": _batch_norm,
    "aten::dropout": _dropout,
    "aten::lstm_cell": _lstm_cell,
    "aten::pad": _pad,
    **{f"aten::{name}": on_tensors for name in (*_AGAIN, *_ONCE)},
    **{f"aten::adaptive_avg_pool{n}d": _average(n) for n in (1, 2, 3)},
}
"""Of which operators there are bodies, and how they are made."""
MAY_RUN_AGAIN: Final = frozenset({"aten::lstm_cell", "aten::pad", *(f"aten::{name}" for name in _AGAIN)})
"""Those that cost little beside their gradients, and give the same bits whether they are recorded or not."""
GIVES_ARGUMENT: Final = frozenset({"aten::dropout"})
"""Those that may give an argument itself, though their schemas do not tell."""

ASKED: Final[dict[str, str]] = {
    "aten::dim": "{0}.ndim",
    "aten::size": "[*{0}.shape]",
    "aten::size.int": "{0}.shape[{1}]",
    "aten::len.Tensor": "len({0})",
    "aten::numel": "{0}.size",
    "prim::device": "place({0})",
    "prim::dtype": "FROM_NUMPY[{0}.dtype].number",
}
"""Questions about a tensor's shape and dtype, asked of its array; an error is the operator's own (see `plan`)."""


def asks(node: Node) -> bool:
    """True if the node asks for a tensor's shape or dtype, which its array answers."""
    if not node.inputs or not isinstance(node.inputs[0].type, TensorType):
        return False
    if node.kind in ASKED:
        return True
    op = op_of(node)
    return op is not None and op.qualified_name in ASKED


def question(node: Node) -> str:
    """The expression for a node that asks."""
    op = op_of(node)
    return ASKED[op.qualified_name if op is not None and op.qualified_name in ASKED else node.kind]


def tensor_in(type: Type) -> bool:
    """True if values of the type may be or contain tensors."""
    return any(isinstance(part, TensorType) for part in walk(type))


def kind_of(type: Type) -> Any:
    """tensor, tensor? or tensor[]; empty for what holds no tensor; None for what holds them otherwise."""
    if isinstance(type, TensorType):
        return "tensor"
    if isinstance(type, (OptionalType, ListType)) and isinstance(type.element, TensorType):
        return "tensor?" if isinstance(type, OptionalType) else "tensor[]"
    return None if any(kind_of(part) != "" for part in type.contained()) else ""
