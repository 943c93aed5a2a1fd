"""Python's `x[...]` on tensors, as operators.

In: a tensor and an index: numbers, slices, None, Ellipsis, tensors, lists, or a tuple of them.  Out: the
view or selection, or the write.  Everything is done by the operators select, slice, unsqueeze, index
and their writing forms, as the compiler does it for programs.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten import calls
from engine.aten.dispatch import HOOKS
from engine.aten.tensor import Tensor, tensor
from engine.lang.errors import OperatorIndexError


def read(self: Tensor, index: Any) -> Any:
    """`self[index]`; raises OperatorIndexError."""
    view, picks = _basic(self, index)
    return view if picks is None else calls.call("index", (view, picks), {})


def write(self: Tensor, index: Any, value: Any) -> None:
    """`self[index] = value`; raises OperatorIndexError, OperatorError where the value does not fit."""
    view, picks = _basic(self, index)
    values = value if isinstance(value, Tensor) else tensor(value, dtype=self.dtype)
    if picks is not None:
        calls.call("index_put_", (view, picks, values), {})
        return
    while values.ndim > view.ndim and values.array.shape[0] == 1:
        values = values.squeeze(0)
    write_whole = "fill_" if HOOKS.trace is not None and values.ndim == 0 < view.ndim else "copy_"
    calls.call(write_whole, (view, values), {})


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
    if part is None:
        return view.unsqueeze(dim), 1, None
    if isinstance(part, (bool, np.bool_)):
        return view.unsqueeze(dim), 1, tensor([bool(part)])
    if isinstance(part, slice):
        return _slice(view, dim, part), 1, None
    if isinstance(part, (list, tuple, np.ndarray)):
        part = tensor(part)
    if isinstance(part, Tensor) and (part.ndim or part.dtype.category == "bool"):
        return view, part.ndim if part.dtype.category == "bool" else 1, part
    return view.select(dim, part if isinstance(part, Tensor) else int(part)), 0, None


def _slice(view: Tensor, dim: int, part: slice) -> Tensor:
    """`view[start:stop:step]` along a dimension; traces, which shall hold for other sizes, name all of it."""
    if HOOKS.trace is not None:
        start, stop, step = (0 if part.start is None else part.start, _END if part.stop is None else part.stop, 1)
    elif part.start is None and part.stop is None and part.step is None:
        return view
    else:
        start, stop, step = part.start, part.stop, 1
    bounds = (_int(start), _int(stop), step if part.step is None else _int(part.step))
    sliced: Tensor = calls.call("slice", (view, dim, *bounds), {})
    return sliced


_END: Final = 2**63 - 1


def _int(value: Any) -> Any:
    return value if value is None or isinstance(value, Tensor) else int(value)


def _consumes(part: Any) -> int:
    """How many of the tensor's dimensions a part of an index speaks of."""
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return 0
    is_mask = isinstance(part, Tensor) and part.dtype.category == "bool"
    return part.ndim if is_mask else 1


def _check_count(self: Tensor, parts: list[Any]) -> None:
    if sum(map(_consumes, parts)) > self.ndim:
        raise OperatorIndexError(f"too many indices for tensor of dimension {self.ndim}")
