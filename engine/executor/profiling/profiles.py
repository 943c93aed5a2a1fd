"""Profiles: the types that one use of a value was seen to have, merged over runs.

In: the tensors (or None) that come by.  Out: a `ValueProfile`: the `TensorType` that all of them have in common, how
many there were, and how the type came to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from engine.aten.values.libraries import device_of
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import FROM_NUMPY, QUANTIZED
from engine.ir.facts.tensors import common
from engine.lang.records import dataclass
from engine.lang.scalars import CPU
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR, TensorType

MAX_MERGES: Final = 16
"""Merges that are remembered of a value, the first ones; later ones are still made."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A tensor that made the type another: `before` (None for the first) and `seen` give `after`."""

    run: int
    seen: TensorType
    before: TensorType | None
    after: TensorType


@dataclass(eq=False, slots=True)
class ValueProfile:
    """The profile of one use of a value; as the operation of a `prim::profile`, it takes the value and gives it back.

    `count` counts tensors, `undefined` the None that came instead.  `order` are the dimensions from the widest stride
    to the narrowest, None where that differed.  `last` are the sizes at the end of each run.  `latest` is the type
    merged since `begin_round`.
    """

    value: str
    """The value's debug name."""
    range: SourceRange | None
    user: str
    """The kind of node that uses the value."""
    name: str = ""
    """The value's name as people write it."""
    type: TensorType | None = None
    latest: TensorType | None = None
    count: int = 0
    undefined: int = 0
    order: tuple[int, ...] | None = None
    merges: list[Merge] = field(default_factory=list)
    last: dict[int, tuple[int, ...]] = field(default_factory=dict)
    run: int = 0
    """The number of the run under way."""
    _form: Any = None

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            self.note(value)
        elif value is None:
            self.undefined += 1
        return value

    def note(self, tensor: Tensor) -> None:
        """Merge one more tensor; quick for one like that before."""
        self.count += 1
        array = tensor.array
        form = array.dtype, array.shape, array.strides, tensor.requires_grad, device_of(array), self.run
        if form != self._form:
            self._form = form
            self.last[self.run] = array.shape
            self._merge(tensor)

    def _merge(self, tensor: Tensor) -> None:
        seen, before, order = type_of(tensor), self.type, _order(tensor.array)
        self.order = order if before is None or self.order == order else None
        self.latest = seen if self.latest is None else common(self.latest, seen)
        after = seen if before is None else common(before, seen)
        if after != before:
            self.type = after
            if len(self.merges) < MAX_MERGES:
                self.merges.append(Merge(self.run, seen, before, after))

    def begin_round(self) -> None:
        """Forget `latest`."""
        self.latest = None

    @property
    def is_certain(self) -> bool:
        """True if tensors came by, and nothing else."""
        return self.type is not None and not self.undefined

    def __str__(self) -> str:
        """The merged type as graphs print it, with strides; `Tensor` where none came by."""
        return str(self.type or TENSOR)


def type_of(tensor: Tensor) -> TensorType:
    """All that a type can say of one tensor."""
    array = tensor.array
    dtype = FROM_NUMPY.get(array.dtype)
    known = None if dtype is None or dtype.name in QUANTIZED else dtype
    strides = tuple(step // (array.itemsize or 1) for step in array.strides)
    return TensorType(known, array.shape, strides, tensor.requires_grad, tensor.device)


def type_text(type: TensorType | None, sizes: Sequence[str] | None = None) -> str:
    """The type as people write it: `Float(2, 3)`, or with these texts for its sizes; "nothing" for None."""
    if type is None:
        return "nothing"
    head = "Tensor" if type.dtype is None else type.dtype.ir_name
    known = ["*" if size is None else str(size) for size in type.sizes or ()]
    facts = ["requires_grad"] * bool(type.requires_grad) + [str(type.device)] * (type.device not in (None, CPU))
    inside = ", ".join([*(known if sizes is None else sizes), *facts])
    return head if type.sizes is None and not facts else f"{head}({inside})"


def _order(array: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort([-step for step in array.strides], kind="stable"))


# ------------------------------------------------------------------ sizes that vary


def symbols(profiles: Iterable[ValueProfile]) -> dict[tuple[int, ...], str]:
    """A name for each series of sizes (one for each run) that some dimension went through and that is not constant.

    Dimensions with the same series were equal in every run: they are one symbol, `s0`, `s1` …
    """
    found: dict[tuple[int, ...], str] = {}
    for profile in profiles:
        for series in _series(profile):
            if len({*series}) > 1:
                found.setdefault(series, f"s{len(found)}")
    return found


def _series(profile: ValueProfile) -> list[tuple[int, ...]]:
    """The sizes of each dimension, run by run; empty where ranks differ."""
    shapes = list(profile.last.values())
    if profile.type is None or profile.type.sizes is None:
        return []
    return list(zip(*shapes, strict=True))


def symbolic_text(profile: ValueProfile, names: dict[tuple[int, ...], str]) -> str:
    """The profile's type, with the names of sizes that vary: `Float(s0, 4)`."""
    if profile.type is None or profile.type.sizes is None:
        return type_text(profile.type)
    series = _series(profile)
    shown = [names.get(series[i], "*") if size is None else str(size) for i, size in enumerate(profile.type.sizes)]
    return type_text(profile.type, shown)
