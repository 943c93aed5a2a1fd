"""Python's `x[...]` on tensors, as operators.

In: a tensor and an index: numbers, slices, None, Ellipsis, tensors, lists, or a tuple of them.  Out: the
view or selection, or the write.  Everything is done by the operators select, slice, unsqueeze, index
and their writing forms, as the compiler does it for programs.
"""

from __future__ import annotations

from typing import Any, Final, SupportsIndex

import numpy as np

from engine.aten.dispatch import calls
from engine.aten.dispatch.compose import LateOperator, run
from engine.aten.dispatch.wrapping import view
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor, tensor
from engine.aten.values.xp import FLOATING, FLOATS, INT64, Array
from engine.lang.errors import OperatorIndexError, OperatorTypeError, OperatorValueError
from engine.lang.scalars import bool_, int64, uint8

_SELECT: Final = LateOperator("select.int")
_SLICE: Final = LateOperator("slice.Tensor")
_UNSQUEEZE: Final = LateOperator("unsqueeze")


def read(self: Tensor, index: Any) -> Any:
    """`self[index]`; raises OperatorIndexError."""
    if HOOKS.trace is None:
        if type(index) is int and self.array.ndim:
            return _SELECT.op.impl(self, 0, index)
        if type(index) is slice and self.array.ndim:
            return _slice(self, 0, index)
        if index is None:
            return _UNSQUEEZE.op.impl(self, 0)
        if type(index) is Tensor:
            if index.array.dtype is INT64 and index.array.ndim and self.array.ndim:
                return run("index.Tensor", self, [index])
        elif not (self._requires_grad or HOOKS.rebased or HOOKS.quantized):
            shown = _shown(self, index)
            if shown is not None:
                return view(shown, self)
        elif type(index) is tuple and (steps := _steps(self, index)) is not None:
            return steps
    whole, picks = _basic(self, index)
    if whole is self and picks is None and HOOKS.trace is not None:
        return run("alias", self)
    return whole if picks is None else run("index.Tensor", whole, picks)


def write(self: Tensor, index: Any, value: Any) -> None:
    """`self[index] = value`; raises OperatorIndexError, OperatorError where the value does not fit."""
    is_apart = self._requires_grad or HOOKS.rebased or HOOKS.several
    if HOOKS.trace is None and not is_apart and (type(value) in _NUMBERS or type(value) is Tensor):
        array = self.array
        if array.dtype in FLOATS and array.flags.c_contiguous and (HOOKS.devices or array.flags.writeable):
            shown = _shown(self, index)
            if shown is not None and (type(value) is not Tensor or _is_like(value, shown, self)):
                shown[...] = value.array if type(value) is Tensor else value
                self.bump_version()
                return
    if index is False:  # takes any value, as `applySlicing`'s callers do
        return
    target, picks = _basic(self, None if index is True else index)
    values = value if isinstance(value, Tensor) else tensor(value, dtype=self.dtype)
    if picks is not None:
        calls.call("index_put_", (target, picks, _without_leading_ones(values)), {})
        return
    while values.ndim > target.ndim and values.array.shape[0] == 1:
        values = values.squeeze(0)
    write_whole = "fill_" if HOOKS.trace is not None and values.ndim == 0 < target.ndim else "copy_"
    calls.call(write_whole, (target, values), {})


def _is_like(value: Tensor, shown: Array, target: Tensor) -> bool:
    """True for a tensor of the same kind as the part of the target, with no history, and memory of its own."""
    array = value.array
    is_same_kind = array.dtype is shown.dtype and array.shape == shown.shape and type(array) is type(shown)
    return is_same_kind and not value._requires_grad and value.memory is not target.memory


def _without_leading_ones(values: Tensor) -> Tensor:
    """The values without their first dimensions, as far as these are of size 1.

    One by one: a trace that names the other sizes, as PyTorch's do, would hold for these alone.
    """
    while values.array.ndim and values.array.shape[0] == 1:
        values = values.squeeze(0)
    return values


_NUMBERS: Final = frozenset({int, float})


def _shown(self: Tensor, index: Any) -> Array | None:
    """The view selected by an index of numbers and slices; None for other indices and invalid ones."""
    parts = index if type(index) is tuple else (index,)
    is_all = True
    for part in parts:
        if type(part) is int:
            is_all = False
        elif type(part) is slice and _is_plain(part):
            is_all = is_all and part.start is part.stop is part.step is None
        elif part is not Ellipsis:
            return None
    if is_all:
        return None
    try:
        shown: Array = self.array[parts if Ellipsis in parts else (*parts, ...)]
    except IndexError:
        return None
    return shown


def _steps(self: Tensor, parts: tuple[Any, ...]) -> Tensor | None:
    """The view that numbers and slices give, part by part; None for other indices."""
    consumed = 0
    for part in parts:
        if type(part) is int or type(part) is slice:
            consumed += 1
        elif part is not None and part is not Ellipsis:
            return None
    if not parts or consumed > self.array.ndim or parts.count(Ellipsis) > 1:
        return None
    view, dim = self, 0
    for part in parts:
        if type(part) is int:
            view = _SELECT.op.impl(view, dim, part)
            consumed -= 1
            continue
        if part is Ellipsis:
            dim = view.array.ndim - consumed
            continue
        if part is None:
            view = _UNSQUEEZE.op.impl(view, dim)
            dim += 1
            continue
        consumed -= 1
        if part.start is not None or part.stop is not None or part.step is not None:
            view = _slice(view, dim, part)
        dim += 1
    return view


def _is_plain(part: slice) -> bool:
    step = part.step
    is_forward = step is None or (type(step) is int and step > 0)
    return is_forward and type(part.start) in _BOUNDS and type(part.stop) in _BOUNDS


_BOUNDS: Final = frozenset({int, type(None)})


def _basic(self: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None] | None]:
    """The view that numbers and slices give, and what is left to pick from it by tensors."""
    parts = list(index) if isinstance(index, tuple) else [index]
    _check_count(self, parts)
    view, dim = self, 0
    picks: list[Tensor | None] = []
    for place, part in enumerate(parts):
        if part is Ellipsis:
            step, pick = view.ndim - dim - sum(_consumes(later) for later in parts[place + 1 :]), None
        else:
            view, step, pick = _apply(view, dim, part)
        picks += [None] * step if pick is None else [pick]
        dim += step
    return view, picks if any(pick is not None for pick in picks) else None


def _apply(view: Tensor, dim: int, part: Any) -> tuple[Tensor, int, Tensor | None]:
    """One part of an index: the view after it, how many dimensions it leaves behind, the tensor to pick by."""
    if type(part) is int:
        return _SELECT.op.impl(view, dim, part), 0, None
    if part is None:
        return _UNSQUEEZE.op.impl(view, dim), 1, None
    if isinstance(part, (bool, np.bool_)) or (isinstance(part, Tensor) and not part.ndim and part.dtype in _TRUTHS):
        return _UNSQUEEZE.op.impl(view, dim), 1, tensor([0] if part else [], dtype=int64)
    if isinstance(part, slice):
        return _slice(view, dim, part), 1, None
    if isinstance(part, (list, tuple, range, np.ndarray)):
        part = tensor(part)
        if part.array.dtype in FLOATING:
            part = tensor(part.array.astype(INT64))
        if HOOKS.tracer is not None:
            HOOKS.tracer.constant(part, "indices")
    if isinstance(part, Tensor) and part.ndim:
        return view, part.ndim if part.dtype.category == "bool" else 1, part
    return view.select(dim, part if isinstance(part, Tensor) else _whole(part)), 0, None


_TRUTHS: Final = frozenset({bool_, uint8})
"""Dtypes of masks: where they have no dimensions they say whether there is what they index."""


def _whole(part: Any) -> int:
    """The number that the part of an index is.  Raises OperatorIndexError, OperatorTypeError."""
    if isinstance(part, str):
        raise OperatorTypeError(f"a tensor has no name {part!r} to be found by", hints=(_INDICES,))
    if not isinstance(part, SupportsIndex):
        raise OperatorIndexError(f"a {type(part).__name__} is no index of a tensor", hints=(_INDICES,))
    return part.__index__()


_INDICES: Final = "indices are integers, slices, `...`, None, and tensors or lists of integers or booleans"


def _slice(view: Tensor, dim: int, part: slice) -> Tensor:
    """`view[start:stop:step]` along a dimension; traces, which shall hold for other sizes, name all of it."""
    sliced: Tensor
    if HOOKS.trace is None and _is_plain(part):
        if part.start is part.stop is part.step is None:
            return view
        sliced = _SLICE.op.impl(view, dim, part.start, part.stop, 1 if part.step is None else part.step)
        return sliced
    if HOOKS.trace is not None:
        start, stop, step = (0 if part.start is None else part.start, _END if part.stop is None else part.stop, 1)
    else:
        start, stop, step = part.start, part.stop, 1
    bounds = (_int(start), _int(stop), step if part.step is None else _int(part.step))
    if not isinstance(bounds[2], Tensor) and bounds[2] <= 0:
        raise OperatorValueError(
            f"the step of a slice must be greater than zero, not {bounds[2]}", hints=("x.flip(0) reverses",)
        )
    sliced = (
        _SLICE.op.impl(view, dim, *bounds) if _BOUNDS.issuperset(map(type, bounds))
        else calls.operator("slice")(view, dim, *bounds)
    )  # fmt: skip
    return sliced


_END: Final = 2**63 - 1


def _int(value: Any) -> Any:
    """A bound of a slice.  Raises OperatorTypeError."""
    if value is None or type(value) is int or isinstance(value, Tensor):
        return value
    if not isinstance(value, SupportsIndex):
        raise OperatorTypeError(f"bounds and steps of a slice are integers or None, not {type(value).__name__}")
    return value.__index__()


def _consumes(part: Any) -> int:
    """The number of the tensor's dimensions that a part of an index consumes."""
    if type(part) is int or type(part) is slice:
        return 1
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return 0
    is_mask = isinstance(part, Tensor) and part.dtype.category == "bool"
    return part.ndim if is_mask else 1


def _check_count(self: Tensor, parts: list[Any]) -> None:
    if sum(map(_consumes, parts)) > self.ndim:
        raise OperatorIndexError(f"too many indices for tensor of dimension {self.ndim}")
