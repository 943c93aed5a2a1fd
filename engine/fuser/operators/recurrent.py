"""Recurrent layers of float32 by machine code: all steps of one layer in one direction.

In: the inputs of all steps, weights, the first state.  Out: the outputs of all steps, the last state, and what a
backward pass wants to know of the steps (`engine.aten.kernels.recurrence`, whose slot this module takes).  The kernels
are `groups.recurrent`; the library of operators has some, whose tiles are no layer's own, and for a layer that has work
enough one is compiled, which serves all sizes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from engine.aten.kernels.recurrence import GATES, Ran, States, Weights
from engine.aten.values.xp import Array
from engine.fuser.backend import machine, tiering
from engine.fuser.backend.symbols import LIBRARY
from engine.lang.deferred import deferred
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.fuser.groups import recurrent as kernels
    from engine.fuser.groups.recurrent import Layer
else:
    kernels = deferred("engine.fuser.groups.recurrent")  # not needed where the library has the layer

Entry = Callable[..., int]


def layer(kind: str, x: Array, state: States, weights: Weights, backwards: bool, keeps: bool) -> Ran | None:
    """(time, batch, features) through one layer in one direction."""
    (w_ih, w_hh, b_ih, b_hh), (steps, m, features), n = weights, x.shape, state[0].shape[-1]
    work = 2 * steps * m * n * (n + features) * GATES[kind]
    if not work or not features or not _is_usual(kind, x, state, weights):
        return None
    has_own_bias = kind == "gru" and b_hh is not None
    bias = b_ih if has_own_bias or b_hh is None else b_hh if b_ih is None else b_ih + b_hh
    made = kernels.layer_for(kind, x.shape, n, bias is not None, has_own_bias, keeps) if work >= LEAST else None
    entry = None if made is None else _entry_of(made, work)
    if entry is None and not keeps:
        entry = _ahead(kind, m)
        bias = np.zeros(GATES[kind] * n, np.float32) if bias is None else bias
        b_hh = np.zeros_like(bias) if b_hh is None else b_hh
        has_own_bias = kind == "gru"
    if entry is None:
        return None
    keeps_more = keeps and GATES[kind] > 1
    gates, output = (np.empty((steps, m, size), np.float32) for size in (GATES[kind] * n, n))
    more = np.empty((steps, m, n) if keeps_more else (0,), np.float32)
    first, *cells = np.ascontiguousarray(state[0]), *(each.copy() for each in state[1:])
    given = [np.ascontiguousarray(x), w_ih, w_hh, first, gates, output, *cells, *([more] if keeps_more else [])]
    given += [each for each in (bias, b_hh if has_own_bias else None) if each is not None]
    start, by, end = (steps - 1, -1, 0) if backwards else (0, 1, -1)
    code = entry(steps, m, n, features, start, by, *map(_address_of, given))
    return None if code else (output, (output[end].copy(), *cells), (gates if keeps_more else more, more))


def _address_of(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _is_usual(kind: str, x: Array, state: States, weights: Weights) -> bool:
    """True for arrays of float32 that fit each other, and contiguous weights."""
    (_, m, features), n = x.shape, state[0].shape[-1]
    rows = GATES[kind] * n
    shapes = ((rows, features), (rows, n), (rows,), (rows,))
    return (
        all(each is None or _is_plain(each, shape) for each, shape in zip(weights, shapes, strict=True))
        and all(type(each) is np.ndarray and each.dtype == np.float32 for each in (x, *state))
        and all(each.shape == (m, n) for each in state)
    )


def _is_plain(array: Array, shape: tuple[int, ...]) -> bool:
    """True for a contiguous array of float32 of this shape."""
    flags = array.flags
    is_there = type(array) is np.ndarray and flags.c_contiguous and flags.aligned
    return is_there and array.dtype == np.float32 and array.shape == shape


# ------------------------------------------------------------------ compiled ahead of time

_HEIGHTS: Final = (1, 3, 6, 12)
"""Rows of the batch in a part of a step, of the library's functions; each processor has some of these."""
_AHEAD: Final[dict[tuple[str, int], Entry]] = {}


def _ahead(kind: str, rows: int) -> Entry | None:
    """The library's function for layers of this kind and so many rows."""
    if tiering.mode() == "off":
        return None
    key = kind, min(rows, _HEIGHTS[-1])
    if key not in _AHEAD:
        places = {height: LIBRARY.find(f"{kind}_layer_{height}") for height in _HEIGHTS}
        found = {height: place for height, place in places.items() if place is not None}
        if not found:
            return None
        height = min((each for each in found if each >= rows), default=max(found))
        pointers = 7 + (kind in ("lstm", "gru"))
        _AHEAD[key] = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6, *[ctypes.c_void_p] * pointers)(
            found[height]
        )
    return _AHEAD[key]


# ------------------------------------------------------------------ compiled when it pays

LEAST: Final = 1 << 18
"""Operations from which on code for these sizes pays beside the library's, or numpy."""
WORTH: Final = 1 << 27
"""Operations after which a kernel is compiled."""
WORTH_A_LOOK: Final = 1 << 26
"""Operations after which its code is looked for on disk."""


@dataclass(slots=True)
class _Code:
    """The code of a kernel, and how much work there was for it.  `state`: whether it was looked for, is being compiled,
    or cannot be had."""

    work: int = 0
    entry: Entry | None = None
    state: Literal["", "looked for", "waiting", "refused"] = ""


_CODES: Final[dict[Any, _Code]] = {}


def _entry_of(made: Layer, work: int) -> Entry | None:
    """The code of a kernel, once it pays to compile it."""
    mode = tiering.mode()
    if work < LEAST or mode == "off":
        return None
    code = _CODES.setdefault(made, _Code())
    if code.entry is not None or code.state in ("waiting", "refused"):
        return code.entry
    code.work += work
    if mode == "eager":
        _compile(made, code, machine.compile_program)
    elif code.work >= WORTH:
        code.state = "waiting"
        tiering.in_background(partial(_compile, made, code, machine.compile_program))
    elif code.work >= WORTH_A_LOOK and not code.state and not machine.is_busy():
        code.state = "looked for"
        _compile(made, code, machine.stored)
    return code.entry


def _compile(made: Layer, code: _Code, find: Callable[[machine.Program], machine.Code | None]) -> None:
    """Set the entry, if the code is found."""
    kernel = kernels.kernel_of(made)
    try:
        found = find(machine.program(kernel))
    except machine.MachineError:
        code.state = "refused"
        return
    if found is not None:
        code.entry = machine.entry_of(kernel, found)
