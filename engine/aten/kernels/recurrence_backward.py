"""Gradients of recurrent layers over arrays.

In: the gradients of a layer's outputs and last state (None: there is none), what went in, what the steps kept.  Out:
the gradients of the input, of the states, of the weights and of what is added.

Note [Back through time]
How a step's gates answer to its state does not depend on gradients, so it is worked out for all steps at once.  What is
left for the loop is to multiply these factors with the gradient that comes from later steps and to take it, by one
product with the weights, one step back.  The weights' own gradients are one product over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine.aten.kernels.recurrence import Kept, States
from engine.aten.values.xp import Array

Incoming = tuple[Array | None, ...]
"""The gradients of the outputs of all steps, and of each state after the last one."""


class Run(NamedTuple):
    """One run of a layer: what went in, came out and was kept."""

    x: Array
    states: States
    w_ih: Array
    w_hh: Array
    outputs: Array
    kept: Kept
    backwards: bool

    def steps(self) -> Sequence[int]:
        """The steps, the last one taken first."""
        count = len(self.x)
        return range(count) if self.backwards else range(count)[::-1]

    def before(self, values: Array, first: Array) -> Array:
        """Values of a state before each step, from those after each step."""
        ordered = (values[1:], first[None]) if self.backwards else (first[None], values[:-1])
        return np.concatenate(ordered)


class Gradients(NamedTuple):
    """Gradients of a layer's arguments; `states` has one for each of the layer's states."""

    x: Array
    states: States
    w_ih: Array
    w_hh: Array
    b_ih: Array
    b_hh: Array


def lstm(run: Run, incoming: Incoming) -> Gradients:
    gates, cells = run.kept
    size = cells.shape[-1]
    i, f, g, o = (gates[..., k * size : (k + 1) * size] for k in range(4))
    squashed = np.tanh(cells)
    factors = 1 - gates
    np.multiply(factors, gates, factors)
    # a cell gate went through tanh, the others through a sigmoid
    for_i, for_f, for_g, for_o = (factors[..., k * size : (k + 1) * size] for k in range(4))
    np.multiply(for_i, g, for_i)
    np.multiply(for_f, run.before(cells, run.states[1]), for_f)
    np.multiply(np.subtract(1, np.multiply(g, g, for_g), for_g), i, for_g)
    np.multiply(for_o, squashed, for_o)
    to_cell = np.multiply(squashed, squashed, squashed)
    np.multiply(np.subtract(1, to_cell, to_cell), o, to_cell)
    dh, dc = _ends(run, incoming)
    part = np.empty_like(dc)
    of_outputs, w_hh = incoming[0], np.ascontiguousarray(run.w_hh)
    for step in run.steps():
        if of_outputs is not None:
            np.add(dh, of_outputs[step], dh)
        np.add(dc, np.multiply(dh, to_cell[step], part), dc)
        gate = factors[step]
        through_cell = gate[:, : 3 * size].reshape(-1, 3, size)
        np.multiply(through_cell, dc[:, None], through_cell)
        np.multiply(gate[:, 3 * size :], dh, gate[:, 3 * size :])
        np.multiply(dc, f[step], dc)
        np.dot(gate, w_hh, dh)
    return _collected(run, factors, factors, (dh, dc))


def gru(run: Run, incoming: Incoming) -> Gradients:
    gates, of_state = run.kept
    size = of_state.shape[-1]
    r, z, new = (gates[..., k * size : (k + 1) * size] for k in range(3))
    # reset, update and new gate as the state acts on them, then the new gate as the input does
    factors = np.empty((*gates.shape[:2], 4 * size), gates.dtype)
    for_r, for_z, through, for_new = (factors[..., k * size : (k + 1) * size] for k in range(4))
    np.multiply(new, new, for_new)
    np.multiply(np.subtract(1, for_new, for_new), 1 - z, for_new)
    np.multiply(for_new, r, through)
    np.multiply(through, of_state, for_r)
    np.multiply(for_r, 1 - r, for_r)
    np.subtract(run.before(run.outputs, run.states[0]), new, for_z)
    np.multiply(for_z, z * (1 - z), for_z)
    (dh,) = _ends(run, incoming)
    part = np.empty_like(dh)
    of_outputs, w_hh = incoming[0], np.ascontiguousarray(run.w_hh)
    for step in run.steps():
        if of_outputs is not None:
            np.add(dh, of_outputs[step], dh)
        four = factors[step].reshape(-1, 4, size)
        np.multiply(four, dh[:, None], four)
        np.multiply(dh, z[step], dh)
        np.add(dh, np.dot(factors[step][:, : 3 * size], w_hh, part), dh)
    of_input = np.concatenate((factors[..., : 2 * size], factors[..., 3 * size :]), -1)
    return _collected(run, of_input, factors[..., : 3 * size], (dh,))


def _rnn(slope: Callable[[Array], Array]) -> Callable[[Run, Incoming], Gradients]:
    def rnn(run: Run, incoming: Incoming) -> Gradients:
        factors = slope(run.outputs)
        (dh,) = _ends(run, incoming)
        of_outputs, w_hh = incoming[0], np.ascontiguousarray(run.w_hh)
        for step in run.steps():
            if of_outputs is not None:
                np.add(dh, of_outputs[step], dh)
            np.dot(np.multiply(factors[step], dh, factors[step]), w_hh, dh)
        return _collected(run, factors, factors, (dh,))

    return rnn


def _ends(run: Run, incoming: Incoming) -> list[Array]:
    """The gradients of the last states, in memory to write to."""
    given = zip(incoming[1:], run.states, strict=False)
    shape, d = run.outputs.shape[1:], run.outputs.dtype
    return [np.zeros(shape, d) if g is None else np.array(g, d, order="C") for g, _ in given]


def _collected(run: Run, of_input: Array, of_state: Array, states: States) -> Gradients:
    """From the gradients of the gates of all steps, as input and state act on them, to those of what went in."""
    x = run.x.reshape(-1, run.x.shape[-1])
    by_input, by_state = (each.reshape(-1, each.shape[-1]) for each in (of_input, of_state))
    before = run.before(run.outputs, run.states[0]).reshape(len(x), -1)
    b_ih = by_input.sum(0)
    b_hh = b_ih.copy() if of_input is of_state else by_state.sum(0)
    dx = by_input.dot(run.w_ih).reshape(run.x.shape)
    return Gradients(dx, states, by_input.T.dot(x), by_state.T.dot(before), b_ih, b_hh)


def _slope_of_relu(outputs: Array) -> Array:
    return (outputs > 0).astype(outputs.dtype)


LAYERS: Final[dict[str, Callable[[Run, Incoming], Gradients]]] = {
    "lstm": lstm,
    "gru": gru,
    "rnn_tanh": _rnn(lambda outputs: 1 - outputs * outputs),
    "rnn_relu": _rnn(_slope_of_relu),
}
