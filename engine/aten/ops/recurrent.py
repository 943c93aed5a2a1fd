"""Recurrent layers and attention.

In: tensors.  Out: tensors.  Made of other operators, from which their gradients come; the common layers are one
operator each (see `recurrent_layers`).  A layer multiplies the whole sequence with its input weights at once; only the
steps through time are a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.aten.dispatch import unboxed
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels.recurrence import GATES, lstm_cell
from engine.aten.kernels.recurrence import layer as layer_of_arrays
from engine.aten.kernels.refusals import no_code
from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.promotion import check_cast, to_float
from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

State = tuple[Tensor, ...]
Cell = Callable[[Tensor, State, Tensor, Tensor | None], State]

# ------------------------------------------------------------------ cells


def _linear(x: Tensor, w: Tensor | Callable[[Tensor], Tensor], b: Tensor | None) -> Tensor:
    """`w` may be a function that does it: weights that are packed are no tensors."""
    result: Tensor = run("linear", x, w, b) if isinstance(w, Tensor) else w(x)
    return result


def _lstm(gates_in: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
    h, c = state
    i, f, g, o = (gates_in + _linear(h, w_hh, b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(gates_in: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
    (h,) = state
    r_in, z_in, n_in = gates_in.chunk(3, -1)
    r_h, z_h, n_h = _linear(h, w_hh, b_hh).chunk(3, -1)
    z = (z_in + z_h).sigmoid()
    n = (n_in + (r_in + r_h).sigmoid() * n_h).tanh()
    return ((h - n) * z + n,)


def _rnn(activation: str) -> Cell:
    def step(gates_in: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
        return (getattr(gates_in + _linear(state[0], w_hh, b_hh), activation)(),)

    return step


CELLS: Final[dict[str, Cell]] = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn("tanh"), "rnn_relu": _rnn("relu")}


def _check_cell(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, gates: int) -> None:
    if x.shape[-1] != w_ih.shape[1]:
        raise OperatorError(f"input has inconsistent input_size: got {x.shape[-1]} expected {w_ih.shape[1]}")
    if h.shape[-1] * gates != w_hh.shape[0]:
        raise OperatorError(
            f"hidden has inconsistent hidden_size: got {h.shape[-1]}, expected {w_hh.shape[0] // gates}"
        )


def _cell_op(kind: str) -> Callable[..., Any]:
    def cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None) -> Any:
        state = tuple(hx) if kind == "lstm" else (hx,)
        if kind == "lstm" and len(state) != 2:
            raise OperatorError("lstm_cell expects two hidden states")
        _check_cell(input, state[0], w_ih, w_hh, GATES[kind])
        if kind in ("lstm", "gru"):
            check_cast(to_float(input.array.dtype), input.array.dtype)
        found = _unrecorded_cell(input, state, (w_ih, w_hh, b_ih, b_hh)) if kind == "lstm" else None
        if found is not None:
            return found
        after = CELLS[kind](_linear(input, w_ih, b_ih), state, w_hh, b_hh)
        return after if kind == "lstm" else after[0]

    return cell


def _unrecorded_cell(x: Tensor, state: State, weights: tuple[Tensor | None, ...]) -> State | None:
    """An LSTM's step over arrays, where no gradient or trace is wanted; None where one is, or for unusual arrays."""
    tensors = [t for t in (x, *state, *weights) if t is not None]
    if HOOKS.trace is not None or (MODE.enabled and any(t.requires_grad for t in tensors)):
        return None
    arrays = [None if w is None else w.array for w in weights]
    given, d = [t.array for t in (x, *state)], x.array.dtype
    shape = (x.array.shape[0], state[0].array.shape[-1])
    if d not in xp.FLOATS or any(t.array.dtype is not d for t in tensors) or (arrays[2] is None) != (arrays[3] is None):
        return None
    if given[0].ndim != 2 or any(each.shape != shape for each in given[1:]):
        return None
    if any(b is not None and b.shape != (4 * shape[1],) for b in arrays[2:]):
        return None
    h, c = xp.silently(lstm_cell, given[0], (given[1], given[2]), arrays)
    return Tensor(h), Tensor(c)


# ------------------------------------------------------------------ layers


class Layer(NamedTuple):
    """The weights of one layer in one direction."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None
    b_hh: Tensor | None
    w_hr: Tensor | None


def _layers(params: list[Tensor], has_biases: bool, count: int, projected: bool) -> list[Layer]:
    each = (4 if has_biases else 2) + projected
    if len(params) != each * count:
        raise OperatorError(f"got an incorrect number of RNN parameters: {len(params)} instead of {each * count}")
    found = []
    for start in range(0, len(params), each):
        w_ih, w_hh, *rest = params[start : start + each]
        b_ih, b_hh = (rest[0], rest[1]) if has_biases else (None, None)
        found.append(Layer(w_ih, w_hh, b_ih, b_hh, rest[-1] if projected else None))
    return found


def one_direction(
    cell: Cell, x: Tensor, state: State, layer: Layer, sizes: Sequence[int] | None, backwards: bool
) -> tuple[Tensor, State]:
    """One layer over time (the first dimension) in one direction; `sizes` are the batches of a packed sequence."""
    gates = _linear(x, layer.w_ih, layer.b_ih)
    steps = list(gates.unbind(0)) if sizes is None else list(gates.split([*sizes], 0))
    outputs: list[Tensor] = []
    whole = state
    for step in reversed(steps) if backwards else steps:
        batch = step.shape[0] if sizes is not None else None
        now = whole if batch is None else tuple(s.narrow(0, 0, batch) for s in whole)
        after = cell(step, now, layer.w_hh, layer.b_hh)
        if layer.w_hr is not None:
            after = (_linear(after[0], layer.w_hr, None), *after[1:])
        outputs.append(after[0])
        whole = after if batch is None else tuple(_replace_front(s, a) for s, a in zip(whole, after, strict=True))
    if backwards:
        outputs.reverse()
    return run("stack", outputs, 0) if sizes is None else run("cat", outputs, 0), whole


def _at_once(
    kind: str, x: Tensor, state: State, layer: Layer, sizes: Sequence[int] | None, backwards: bool
) -> tuple[Tensor, State] | None:
    """The same over arrays, by an operator of its own; None for rarer layers and where a trace wants to see steps."""
    tensors = [t for t in (x, *state, *layer) if t is not None]
    if sizes is not None or layer.w_hr is not None or HOOKS.trace is not None or not x.shape[0]:
        return None
    d = x.array.dtype
    if d not in xp.FLOATS or any(t.array.dtype is not d for t in tensors):
        return None
    size, rows = state[0].array.shape[-1], GATES[kind] * state[0].array.shape[-1]
    if layer.w_ih.array.shape != (rows, x.array.shape[-1]) or layer.w_hh.array.shape != (rows, size):
        return None
    if (layer.b_ih is None) != (layer.b_hh is None) or any(s.array.shape != state[0].array.shape for s in state):
        return None
    if MODE.enabled and any(t.requires_grad for t in tensors):
        c = state[1] if len(state) == 2 else None
        output, *ends = run(f"_{kind}_layer", x, state[0], c, *layer[:4], backwards)
        return output, tuple(ends[: len(state)])
    arrays = [None if w is None else w.array for w in layer[:4]]
    states = tuple(s.array for s in state)
    outputs, last, _ = xp.silently(layer_of_arrays, kind, x.array, states, arrays, backwards, False)
    return Tensor(outputs), tuple(map(Tensor, last))


def _replace_front(whole: Tensor, front: Tensor) -> Tensor:
    """The state with its first rows replaced: sequences that have ended keep theirs."""
    count = front.shape[0]
    if count == whole.shape[0]:
        return front
    joined: Tensor = run("cat", [front, whole.narrow(0, count, whole.shape[0] - count)], 0)
    return joined


def _stack(
    kind: str, x: Tensor, hx: list[Tensor], params: list[Tensor], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, sizes: Sequence[int] | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Layers upon layers.  `hx` holds each state as (layers * directions, batch, features)."""
    directions = 2 if bidirectional else 1
    projected = kind == "lstm" and hx[0].shape[-1] != hx[1].shape[-1]
    layers = _layers(params, has_biases, num_layers * directions, projected)
    _check_hidden(x, hx, num_layers * directions, sizes)

    def direction(x: Tensor, state: State, at: int, backwards: bool) -> tuple[Tensor, State]:
        found = _at_once(kind, x, state, layers[at], sizes, backwards=backwards)
        return found or one_direction(CELLS[kind], x, state, layers[at], sizes, backwards=backwards)

    return in_layers(direction, x, hx, num_layers, directions, dropout if train else 0.0)


def in_layers(
    direction: Callable[[Tensor, State, int, bool], tuple[Tensor, State]], x: Tensor, hx: Sequence[Tensor],
    num_layers: int, directions: int, dropout: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Each layer over what the one before gives, with numbers dropped in between; the output and the last states.

    `direction` goes over a sequence once, given its states, its number among all of them, and whether from the end.
    """
    ends: list[State] = []
    for i in range(num_layers):
        outputs = []
        for j in range(directions):
            at = i * directions + j
            output, end = direction(x, tuple(h.select(0, at) for h in hx), at, j == 1)
            outputs.append(output)
            ends.append(end)
        x = outputs[0] if directions == 1 else run("cat", outputs, -1)
        if dropout and i < num_layers - 1:
            x = run("dropout", x, dropout, True)
    return (x, *(run("stack", [end[k] for end in ends], 0) for k in range(len(hx))))


def _check_hidden(x: Tensor, hx: list[Tensor], count: int, sizes: Sequence[int] | None) -> None:
    batch = sizes[0] if sizes is not None else x.shape[1]
    for h in hx:
        if h.ndim != 3 or h.shape[0] != count or h.shape[1] != batch:
            raise OperatorError(f"Expected hidden size ({count}, {batch}, {h.shape[-1]}), got {list(h.shape)}")


def _input_form(kind: str) -> Callable[..., Any]:
    """A layer over a padded batch."""

    def layer(
        input: Tensor, hx: Any, params: list[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        states = list(hx) if kind == "lstm" else [hx]
        if kind == "lstm" and len(states) != 2:
            raise OperatorError("lstm expects two hidden states")
        x = input.transpose(0, 1) if batch_first else input
        output, *ends = _stack(kind, x, states, params, has_biases, num_layers, dropout, train, bidirectional, None)
        return (output.transpose(0, 1) if batch_first else output, *ends)

    return layer


def _data_form(kind: str) -> Callable[..., Any]:
    """A layer over a packed sequence."""

    def layer(
        data: Tensor, batch_sizes: Tensor, hx: Any, params: list[Tensor], has_biases: bool, num_layers: int,
        dropout: float, train: bool, bidirectional: bool,
    ) -> Any:  # fmt: skip
        states = list(hx) if kind == "lstm" else [hx]
        sizes = batch_sizes.tolist()
        return _stack(kind, data, states, params, has_biases, num_layers, dropout, train, bidirectional, sizes)

    return layer


_LAYER: Final = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
for _kind in CELLS:
    _is_lstm = _kind == "lstm"
    _hx, _returns = ("Tensor[] hx", "(Tensor, Tensor, Tensor)") if _is_lstm else ("Tensor hx", "(Tensor, Tensor)")
    op(f"aten::{_kind}.input(Tensor input, {_hx}, {_LAYER}, bool batch_first) -> {_returns}", python=_input_form(_kind),
       unboxed=unboxed.on_tensors, autocast="fast" if _is_lstm else "")  # fmt: skip
    op(f"aten::{_kind}.data(Tensor data, Tensor batch_sizes, {_hx}, {_LAYER}) -> {_returns}", python=_data_form(_kind))
    op(f"aten::{_kind}_cell(Tensor input, {_hx}, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
       f"{'(Tensor, Tensor)' if _is_lstm else 'Tensor'}", python=_cell_op(_kind),
       unboxed=unboxed.lstm if _is_lstm else unboxed.on_tensors, jit_autocast="fast")  # fmt: skip

# ------------------------------------------------------------------ packed sequences


def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Sequences sorted by length, as the steps of all of them one after another, and how many take each step."""
    x = input.transpose(0, 1) if batch_first else input
    if lengths.is_cuda:
        raise OperatorError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.array.ndim}D {lengths.device} "
            f"{lengths.dtype.ir_name} tensor",
            hints=("write lengths.cpu()",),
        )
    ends = np.asarray(lengths.array)  # on the device of the input
    if ends.ndim != 1 or len(ends) != x.shape[1]:
        raise OperatorError(f"Expected `len(lengths)` to be equal to batch_size, but got {ends.size} "
                            f"(batch_size={x.shape[1]})")  # fmt: skip
    if ends.size and ends.min() <= 0:
        raise OperatorError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if bool(np.any(np.diff(ends) > 0)):
        raise OperatorError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if ends.size and ends[0] > x.shape[0]:
        raise OperatorError("Expected the longest sequence to fit the input", hints=(f"it has {x.shape[0]} steps",))
    sizes = (np.arange(int(ends[0]))[:, None] < ends).sum(axis=1)
    steps, rows = np.nonzero(np.arange(x.shape[1]) < sizes[:, None])
    flat = x.reshape([-1, *x.shape[2:]])
    places = from_numpy(steps * x.shape[1] + rows)
    return run("index_select", flat, 0, places), run("cpu", from_numpy(sizes.astype(np.int64)))


def pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Tensor, Tensor]:
    """The reverse: (time, batch, ...) filled up with a value, and the lengths."""
    sizes = np.asarray(batch_sizes.array)  # on the device of the data
    longest, batch = len(sizes), int(sizes[0])
    if 0 < total_length < longest:
        raise OperatorError(
            f"Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    steps, rows = np.nonzero(np.arange(batch) < sizes[:, None])
    total = max(total_length, longest)
    where_from = np.full((total, batch), len(data.array))
    where_from[steps, rows] = np.arange(len(steps))
    filler = from_numpy(np.full((1, *data.shape[1:]), padding_value, data.array.dtype))
    with_filler = run("cat", [data, filler], 0)
    places = from_numpy(where_from.ravel())
    padded = run("index_select", with_filler, 0, places).reshape([total, batch, *data.shape[1:]])
    lengths = (np.arange(batch)[:, None] < sizes).sum(axis=1).astype(np.int64)
    return padded.transpose(0, 1) if batch_first else padded, run("cpu", from_numpy(lengths))


out_form(op("aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
            python=pack_padded_sequence, data_dependent=True), "out", "out0 out1")  # fmt: skip
op("aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
   "int total_length) -> (Tensor, Tensor)", python=pad_packed_sequence, data_dependent=True)  # fmt: skip

# ------------------------------------------------------------------ attention


def _check_attention(
    query: Array, key: Array, value: Array, mask: Array | None, dropout_p: float, is_causal: bool, *_: Any
) -> None:
    dtypes = [xp.FROM_NUMPY[t.dtype] for t in (query, key, value)]
    if len(set(dtypes)) > 1:
        raise OperatorError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{dtypes[0].ir_name} key.dtype: {dtypes[1].ir_name} and value.dtype: {dtypes[2].ir_name} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise OperatorError("Expected query, key, and value to all be  at least 2 dimensional")
    if mask is not None and is_causal:
        raise OperatorError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")


op("aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
   "float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
   unboxed=unboxed.on_tensors, autocast="fast", check=_check_attention, composite="""
       if enable_gqa:
           key = repeated_heads(key, query.size(-3))
           value = repeated_heads(value, query.size(-3))
       factor = scale
       if factor is None:
           factor = 1 / math.sqrt(query.size(-1))
       scores = query.matmul(key.transpose(-2, -1)) * factor
       if is_causal:
           scores = torch.where(torch.ones_like(scores, dtype=torch.bool).tril(), scores, -float("inf"))
       elif attn_mask is not None:
           if attn_mask.dtype == torch.bool:
               scores = torch.where(attn_mask, scores, -float("inf"))
           else:
               scores = scores + attn_mask
       weights = shares(scores)
       if dropout_p > 0:
           weights = torch.dropout(weights, dropout_p, True)
       return weights.matmul(value)
   """)  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("scaled_dot_product_attention", refuses=no_code("c", "softmax_lastdim_kernel_impl"))
