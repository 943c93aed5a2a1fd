"""Recurrent layers over arrays, where nobody records what happens.

In: arrays (time, batch, features), a state, weights.  Out: the outputs of all steps and the last state.  The whole
sequence is multiplied with its input weights at once; a step is one product and few functions of all its gates, in
memory that is used again.

Note [One function for all gates]
A sigmoid is (tanh(x / 2) + 1) / 2.  The weights of the gates that want one are halved, which is exact, so that tanh of
all gates can be taken at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from engine.aten.xp import Array

States = tuple[Array, ...]
Weights = tuple[Array, Array, Array | None, Array | None]
"""Of the input and of the state, and what is added to each."""


def lstm(x: Array, state: States, weights: Weights, backwards: bool) -> tuple[Array, States]:
    """Gates: input, forget, cell, output."""
    h, c = state[0], state[1].copy()
    size = h.shape[-1]
    scale = np.repeat(np.array([0.5, 0.5, 1, 0.5], x.dtype), size)
    w_ih, w_hh, b_ih, b_hh = (None if w is None else w * scale.reshape(-1, *[1] * (w.ndim - 1)) for w in weights)
    assert w_ih is not None
    assert w_hh is not None
    gates = _projected(x, w_ih, b_ih, b_hh)
    outputs = np.empty((*x.shape[:2], size), x.dtype)
    product, part = np.empty(gates.shape[1:], x.dtype), np.empty_like(c)
    turned = np.ascontiguousarray(w_hh.T)
    half = x.dtype.type(0.5)
    for step in _steps(x, backwards):
        gate = gates[step]
        np.add(gate, np.dot(h, turned, product), gate)
        np.tanh(gate, gate)
        middle = gate[:, 2 * size : 3 * size].copy()
        np.multiply(gate, half, gate)
        np.add(gate, half, gate)
        np.multiply(c, gate[:, size : 2 * size], c)
        np.add(c, np.multiply(gate[:, :size], middle, part), c)
        h = np.multiply(np.tanh(c, part), gate[:, 3 * size :], outputs[step])
    return outputs, (h.copy(), c)


def gru(x: Array, state: States, weights: Weights, backwards: bool) -> tuple[Array, States]:
    """Gates: reset, update, new."""
    (h,) = state
    size = h.shape[-1]
    scale = np.repeat(np.array([0.5, 0.5, 1], x.dtype), size)
    w_ih, w_hh, b_ih, b_hh = (None if w is None else w * scale.reshape(-1, *[1] * (w.ndim - 1)) for w in weights)
    assert w_ih is not None
    assert w_hh is not None
    gates = _projected(x, w_ih, b_ih)
    outputs = np.empty((*x.shape[:2], size), x.dtype)
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
        np.add(new, np.multiply(switches[:, :size], product[:, 2 * size :]), new)
        np.tanh(new, new)
        out = np.subtract(h, new, outputs[step])
        np.multiply(out, switches[:, size:], out)
        h = np.add(out, new, out)
    return outputs, (h.copy(),)


def _projected(x: Array, w: Array, *biases: Array | None) -> Array:
    """What the input contributes to the gates of all steps."""
    gates: Array = x.reshape(-1, x.shape[-1]).dot(w.T)
    for bias in biases:
        if bias is not None:
            np.add(gates, bias, gates)
    return gates.reshape(*x.shape[:2], -1)


def _steps(x: Array, backwards: bool) -> Sequence[int]:
    return range(len(x))[::-1] if backwards else range(len(x))


LAYERS: Final[dict[str, Callable[[Array, States, Weights, bool], tuple[Array, States]]]] = {"lstm": lstm, "gru": gru}
