"""Recurrent layers over arrays.

In: arrays (time, batch, features), a state, weights.  Out: the outputs of all steps, the last state, and what a
backward pass wants to know of the steps (see `recurrence_backward`).  The whole sequence is multiplied with its input
weights at once; a step is one product and few functions of all its gates, in memory that is used again.

Note [One function for all gates]
A sigmoid is (tanh(x / 2) + 1) / 2.  The weights of the gates that want one are halved, which is exact, so that tanh of
all gates can be taken at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from engine.aten.values.xp import Array
from engine.lang.records import dataclass

States = tuple[Array, ...]
Weights = tuple[Array, Array, Array | None, Array | None]
"""Weights of the input and of the state, and the bias of each."""
Kept = tuple[Array, Array]
"""The activated gates of all steps; for an LSTM also the cells, for a GRU the state's part of the new gate."""
Ran = tuple[Array, States, Kept]
Run = Callable[[Array, States, Weights, bool], Ran]


def lstm(x: Array, state: States, weights: Weights, backwards: bool) -> Ran:
    """Gates: input, forget, cell, output."""
    h, c = state
    size = h.shape[-1]
    half = np.repeat(np.array([0.5, 0.5, 1, 0.5], x.dtype), size)
    w_ih, w_hh, b_ih, b_hh = (None if w is None else w * half.reshape(-1, *[1] * (w.ndim - 1)) for w in weights)
    assert w_ih is not None
    assert w_hh is not None
    gates = _projected(x, w_ih, b_ih, b_hh)
    outputs, cells = np.empty((2, *x.shape[:2], size), x.dtype)
    product, part = np.empty(gates.shape[1:], x.dtype), np.empty(outputs.shape[1:], x.dtype)
    turned = np.ascontiguousarray(w_hh.T)
    raised = 1 - half
    for step in _steps(x, backwards):
        gate = gates[step]
        np.add(gate, np.dot(h, turned, product), gate)
        np.tanh(gate, gate)
        np.multiply(gate, half, gate)
        np.add(gate, raised, gate)
        c = np.multiply(c, gate[:, size : 2 * size], cells[step])
        np.add(c, np.multiply(gate[:, :size], gate[:, 2 * size : 3 * size], part), c)
        h = np.multiply(np.tanh(c, part), gate[:, 3 * size :], outputs[step])
    return outputs, (h.copy(), c.copy()), (gates, cells)


def lstm_cell(x: Array, state: States, weights: Weights) -> States:
    """One step by itself, for which it does not pay to change the weights."""
    (h, c), (w_ih, w_hh, b_ih, b_hh) = state, weights
    gates, of_state = x.dot(w_ih.T), h.dot(w_hh.T)
    if b_ih is not None and b_hh is not None:
        np.add(gates, b_ih, gates)
        np.add(of_state, b_hh, of_state)
    np.add(gates, of_state, gates)
    size = h.shape[-1]
    new = np.tanh(gates[:, 2 * size : 3 * size])
    np.exp(np.negative(gates, gates), gates)
    np.reciprocal(np.add(gates, 1, gates), gates)
    after = gates[:, size : 2 * size] * c
    np.add(after, np.multiply(gates[:, :size], new, new), after)
    return gates[:, 3 * size :] * np.tanh(after), after


def gru(x: Array, state: States, weights: Weights, backwards: bool) -> Ran:
    """Gates: reset, update, new."""
    (h,) = state
    size = h.shape[-1]
    scale = np.repeat(np.array([0.5, 0.5, 1], x.dtype), size)
    w_ih, w_hh, b_ih, b_hh = (None if w is None else w * scale.reshape(-1, *[1] * (w.ndim - 1)) for w in weights)
    assert w_ih is not None
    assert w_hh is not None
    gates = _projected(x, w_ih, b_ih)
    outputs, of_state = np.empty((2, *x.shape[:2], size), x.dtype)
    product, turned = np.empty(gates.shape[1:], x.dtype), np.ascontiguousarray(w_hh.T)
    half = x.dtype.type(0.5)
    for step in _steps(x, backwards):
        np.dot(h, turned, product)
        if b_hh is not None:
            np.add(product, b_hh, product)
        switches, new = gates[step][:, : 2 * size], gates[step][:, 2 * size :]
        np.add(switches, product[:, : 2 * size], switches)
        np.tanh(switches, switches)
        np.multiply(switches, half, switches)
        np.add(switches, half, switches)
        of_state[step] = product[:, 2 * size :]
        np.add(new, np.multiply(switches[:, :size], of_state[step]), new)
        np.tanh(new, new)
        out = np.subtract(h, new, outputs[step])
        np.multiply(out, switches[:, size:], out)
        h = np.add(out, new, out)
    return outputs, (h.copy(),), (gates, of_state)


def _rnn(activation: Callable[[Array, Array], object]) -> Run:
    def rnn(x: Array, state: States, weights: Weights, backwards: bool) -> Ran:
        """The one gate is the output."""
        (h,), (w_ih, w_hh, b_ih, b_hh) = state, weights
        outputs = _projected(x, w_ih, b_ih, b_hh)
        product, turned = np.empty(outputs.shape[1:], x.dtype), np.ascontiguousarray(w_hh.T)
        for step in _steps(x, backwards):
            h = np.add(outputs[step], np.dot(h, turned, product), outputs[step])
            activation(h, h)
        none = np.empty(0, x.dtype)
        return outputs, (h.copy(),), (none, none)

    return rnn


def _projected(x: Array, w: Array, *biases: Array | None) -> Array:
    """The input's contribution to the gates of all steps."""
    gates: Array = x.reshape(-1, x.shape[-1]).dot(w.T)
    for bias in biases:
        if bias is not None:
            np.add(gates, bias, gates)
    return gates.reshape(*x.shape[:2], -1)


def _steps(x: Array, backwards: bool) -> Sequence[int]:
    return range(len(x))[::-1] if backwards else range(len(x))


GATES: Final = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
LAYERS: Final[dict[str, Run]] = {
    "lstm": lstm,
    "gru": gru,
    "rnn_tanh": _rnn(np.tanh),
    "rnn_relu": _rnn(lambda h, out: np.maximum(h, 0, out=out)),
}


@dataclass(slots=True)
class Compiled:
    """A slot for machine code, which gives None where there is none (yet) for such arguments."""

    layer: Callable[[str, Array, States, Weights, bool, bool], Ran | None] | None = None


COMPILED: Final = Compiled()


def layer(kind: str, x: Array, state: States, weights: Weights, backwards: bool, keeps: bool) -> Ran:
    """One layer in one direction; what is kept is of use if `keeps`."""
    compiled = COMPILED.layer
    found = compiled(kind, x, state, weights, backwards, keeps) if compiled is not None else None
    return found or LAYERS[kind](x, state, weights, backwards)
