"""Calls of operators with other values for their optional arguments: one at a time, and in pairs.

In: an operator of the table.  Out: lists of arguments that its body takes, made from the sample of `gradient_samples`
by an alternative for an argument that has a default, may be None, is a flag or names a choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.lang.schema import NO_DEFAULT, Argument
from engine.lang.types import BOOL, FLOAT, INT, NUMBER, STR, ListType, OptionalType, TensorType, Type
from tests.table.gradient_samples import gradient_arguments_for
from tests.table.samples import copied, floats, mask

WORDS = {
    "approximate": ("none", "tanh"), "rounding_mode": ("floor", "trunc"), "indexing": ("ij", "xy"), "UPLO": ("L", "U"),
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"), "ord": ("fro", "nuc"),
    "mode": ("reduced", "complete", "r", "reflect", "constant", "replicate", "circular"), "side": ("left", "right"),
    "interpolation": ("linear", "lower", "higher", "nearest", "midpoint"), "norm": ("ortho", "forward", "backward"),
    "pad_mode": ("reflect", "constant"), "padding": ("same", "valid"),
}  # fmt: skip
"""Argument -> the words that it takes."""
LEFT_OUT = ("layout", "device", "pin_memory", "generator", "non_blocking", "implicit")
"""Arguments of which there is one value here, and the mark of expansions that no program keeps, PyTorch's neither."""
CHOICES = ("dim", "dims", "dtype", "stride", "padding", "dilation", "groups")
"""Arguments that are varied though calls have to give them."""


TRUSTING = frozenset(
    {"eliminate_exceptions", "functional_to_inplace_activation", "remove_inplace_ops", "erase_number_types"}
)
"""Passes that change what programs do otherwise, or make graphs that are to be exported and not to be run."""


def calls(op: Op, pairs: int) -> Iterator[list[Any]]:
    """Arguments of calls, each with one or two alternatives; of the pairs as many, evenly chosen."""
    for base in samples(op):
        taken = []
        for place, value in alternatives(op, base):
            call = _with(base, (place, value))
            if _is_taken(op, call):
                taken.append((place, value))
                yield call
        together = [(a, b) for a, b in combinations(taken, 2) if a[0] != b[0]]
        for chosen in together[:: max(1, len(together) // max(pairs, 1))] if pairs else ():
            call = _with(base, *chosen)
            if _is_taken(op, call):
                yield call


def every_call(op: Op) -> list[list[Any]]:
    """The usual arguments, and those of `calls` with one alternative; none for operators that have no sample."""
    try:
        return [*map(list, samples(op)), *calls(op, 0)]
    except (KeyError, TypeError):
        return []


def samples(op: Op) -> list[tuple[Any, ...]]:
    """The usual arguments, and images where memory formats may be asked for."""
    usual = gradient_arguments_for(op)
    asks = any(a.name == "memory_format" for a in op.schema.arguments) and isinstance(usual[0], Tensor)
    return [usual, (floats(2, 3, 4, 5), *usual[1:])] if asks else [usual]


def _with(base: tuple[Any, ...], *changes: tuple[int, Any]) -> list[Any]:
    made = [copied(value) for value in base]
    for place, value in changes:
        made[place] = copied(value)
    return made


def _is_taken(op: Op, call: list[Any]) -> bool:
    try:
        op.compiled.run(*map(copied, call))
    except Exception:
        return False
    return True


def alternatives(op: Op, base: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
    """Places of arguments, and values for them that the operator may refuse."""
    for place, (argument, value) in enumerate(zip(op.schema.arguments, base, strict=True)):
        if _is_optional(argument) and argument.name not in LEFT_OUT:
            if isinstance(argument.type, OptionalType) and value is not None:
                yield place, None
            yield from ((place, other) for other in _others(argument, value, base))


def _is_optional(argument: Argument) -> bool:
    is_simple = argument.type in (BOOL, STR, FLOAT, NUMBER) or argument.name in CHOICES
    return argument.default is not NO_DEFAULT or isinstance(argument.type, OptionalType) or is_simple


_VALUES: dict[Type, tuple[Any, ...]] = {
    BOOL: (True, False), FLOAT: (0.3, 2.0, -0.5, 1.0), INT: (0, 1, 2, -1, 3), NUMBER: (3, 0.5, -1, 2.5, True),
}  # fmt: skip


def _others(argument: Argument, value: Any, base: tuple[Any, ...]) -> list[Any]:
    type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
    if "dtype" in argument.name:
        return [7, 6, 5, 15, 4, 11]
    if argument.name == "memory_format":
        return [0, 1, 2]
    if isinstance(type, TensorType):
        return _tensors_beside(base)
    if isinstance(type, ListType):
        return [made for made in _lists(type.element, value or []) if made != value]
    known = WORDS.get(argument.name, ()) if type == STR else _VALUES.get(type, ())
    return [other for other in known if other is not value]


def _lists(element: Type, value: list[Any]) -> list[list[Any]]:
    if element == INT:
        grown = [[each + 1 for each in value], *([n] * len(value) for n in (0, 1, 2))] if value else []
        return [[0], [1], [-1], [0, 1], [1, 0], [], *grown]
    if element == FLOAT:
        return [[2.0, 2.0], [2.0] * len(value), [0.5] * len(value)]
    return [[not each for each in value]] if element == BOOL and value else []


def _tensors_beside(base: tuple[Any, ...]) -> list[Tensor]:
    """Tensors of floats and of truth values, in shapes that may go with the first tensor."""
    first = next((value for value in base if isinstance(value, Tensor)), None)
    if first is None:
        return []
    sizes = tuple(first.array.shape)
    shapes = [sizes, *((n,) for n in dict.fromkeys(sizes)), *([(sizes[-2], sizes[-2])] if len(sizes) > 1 else [])]
    return [made for shape in shapes for made in (floats(*shape, seed=9), mask(*shape))]
