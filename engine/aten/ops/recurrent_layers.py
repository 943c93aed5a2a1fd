"""One recurrent layer in one direction as an operator of its own, for training.

In: arrays (time, batch, features).  Out: the outputs, the last states and what the backward operator reads.  That works
over arrays, unless its own gradient is wanted: then it is that of the layer made of other operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.table import op
from engine.aten.kernels import recurrence, recurrence_backward
from engine.aten.kernels.recurrence_backward import Run
from engine.aten.ops.recurrent import CELLS, Layer, one_direction
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array

Results = tuple[Any, ...]


def _layer(kind: str) -> Callable[..., Results]:
    """The kernel: outputs, last states, values saved for backward."""

    def layer(
        input: Array, h: Array, c: Array | None, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None,
        backwards: bool,
    ) -> Results:  # fmt: skip
        states = (h,) if c is None else (h, c)
        outputs, ends, kept = recurrence.layer(kind, input, states, (w_ih, w_hh, b_ih, b_hh), backwards, True)
        last = np.empty(0, input.dtype) if c is None else ends[1]
        return outputs, ends[0], last, *kept

    return layer


def _backward(kind: str) -> Callable[..., Results]:
    """Gradients of input, states, weights and biases, in the order of the layer's arguments."""

    def backward(
        grad_output: Tensor | None, grad_h: Tensor | None, grad_c: Tensor | None, input: Tensor, h: Tensor,
        c: Tensor | None, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None, output: Tensor,
        gates: Tensor, more: Tensor, backwards: bool,
    ) -> Results:  # fmt: skip
        given = (input, h, c, w_ih, w_hh, b_ih, b_hh)
        incoming = (grad_output, grad_h, grad_c)
        if MODE.enabled:
            return _composed(kind, incoming, given, backwards)
        states = (h.array,) if c is None else (h.array, c.array)
        kept = (gates.array, more.array)
        ran = Run(input.array, states, w_ih.array, w_hh.array, output.array, kept, backwards)
        arrays = tuple(None if g is None else g.array for g in incoming)
        found = xp.silently(recurrence_backward.LAYERS[kind], ran, arrays[: len(states) + 1])
        before = [Tensor(each) for each in found.states]
        of_states = before if c is not None else [before[0], None]
        return (Tensor(found.x), *of_states, *map(Tensor, found[2:]))

    return backward


def _composed(
    kind: str, incoming: tuple[Tensor | None, ...], given: tuple[Tensor | None, ...], backwards: bool
) -> Results:
    """The same by the gradients of other operators, differentiable again.

    What went in may be computed of each other, so gradients are those of views that nothing else uses.
    """
    seen = [None if t is None else t.view_as(t) if t.requires_grad else t.detach() for t in given]
    x, h, c, w_ih, w_hh, b_ih, b_hh = seen
    assert x is not None and h is not None and w_ih is not None and w_hh is not None
    state = (h,) if c is None else (h, c)
    layer = Layer(w_ih, w_hh, b_ih, b_hh, None)
    output, ends = one_direction(CELLS[kind], x, state, layer, None, backwards)
    pairs = [(o, g) for o, g in zip((output, *ends), incoming, strict=False) if g is not None]
    wanted = [t for t in seen if t is not None and t.requires_grad]
    found = iter(run("grad", [o for o, _ in pairs], wanted, [g for _, g in pairs], True, True, True))
    return tuple(next(found) if t is not None and t.requires_grad else None for t in seen)


_STATES: Final = "Tensor input, Tensor h, Tensor? c, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh"
_ARGUMENTS: Final = ("input", "h", "c", "w_ih", "w_hh", "b_ih", "b_hh")
for _kind in CELLS:
    _back = f"_{_kind}_layer_backward"
    _given = f"grads[0], grads[1], grads[2], {', '.join(_ARGUMENTS)}, result0, result3, result4, backwards"
    _gradients = {name: f"{_back}({_given})[{i}]" for i, name in enumerate(_ARGUMENTS)}
    op(f"aten::_{_kind}_layer({_STATES}, bool backwards) -> ({', '.join(['Tensor'] * 5)})", kernel=_layer(_kind),
       gradient=_gradients)  # fmt: skip
    op(f"aten::{_back}(Tensor? grad_output, Tensor? grad_h, Tensor? grad_c, {_STATES}, Tensor output, Tensor gates, "
       f"Tensor more, bool backwards) -> ({', '.join(['Tensor'] * 7)})", python=_backward(_kind))  # fmt: skip
