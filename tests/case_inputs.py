"""Arguments for the programs of golden cases, made from the types of a graph's inputs.

In: a graph, hints from its case, a seed.  Out: one value for each input: numbers that the graph mentions among others,
tensors of small sizes.  In calls that share, tensors of one dtype are windows of one block of memory, which overlap,
some of them transposed, or one and the same tensor; lists of one type may be one list.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from math import prod
from random import Random
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.table import find
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import TO_NUMPY
from engine.ir.constants import constant_value
from engine.ir.graph import Graph
from engine.lang import scalars, types
from engine.lang.types import TensorType, Type

Sizes = tuple[int, ...]
_SHAPES: Final[tuple[Sizes, ...]] = ((2, 3), (3,), (), (2, 1, 2), (4, 4), (0, 2), (1,))
_DTYPES: Final = (scalars.float32, scalars.float64, scalars.int64, scalars.bool_)
_INTS: Final = (-2, -1, 0, 1, 2, 3)
_FLOATS: Final = (-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, float("inf"), float("nan"))
_CHOICES: Final[dict[Type, tuple[Any, ...]]] = {
    types.FLOAT: _FLOATS, types.BOOL: (False, True), types.STR: ("", "a", "bc"), types.NONE: (None,),
    types.NUMBER: (*_INTS, *_FLOATS), types.DEVICE: (scalars.CPU,),
}  # fmt: skip
_LARGEST: Final = 100
"""The largest number of a graph that calls are made with: loops may count to it."""
_BLOCK: Final = 128
"""Elements of the memory that tensors share."""


class NoCallsError(Exception):
    """There are no calls of a program; the text says why."""


class _Sized:
    """A dtype in a hint: `float32[2, 3]` is the type of tensors of that dtype and of those sizes."""

    def __init__(self, dtype: scalars.dtype) -> None:
        self.dtype = dtype

    def __getitem__(self, sizes: int | Sizes) -> TensorType:
        return TensorType(self.dtype, (sizes,) if isinstance(sizes, int) else sizes)


def hints_in(text: str) -> dict[str, Any]:
    """The hints of `x=float32[2, 3], n={1, 2}`, by name: a type, a set of values to choose from, or a value."""
    dtypes = {dtype.name: _Sized(dtype) for dtype in scalars.DTYPES}
    hints: dict[str, Any] = eval(f"dict({text})", {"nan": float("nan"), "inf": float("inf"), **dtypes})
    return hints


def arguments(graph: Graph, hints: Mapping[str, Any], seed: str, *, shares: bool) -> list[Any]:
    """A value for each input of the graph, the same ones for the same seed.  Raises NoCallsError."""
    names = [value.variable_name for value in graph.inputs]
    assert not (unknown := {*hints} - {*names}), f"there is no input {', '.join(sorted(unknown))}"
    maker = _Maker(graph, Random(seed), shares)
    return [maker.like(hints.get(name, value.type)) for name, value in zip(names, graph.inputs, strict=True)]


class _Maker:
    """Makes the arguments of one call."""

    def __init__(self, graph: Graph, random: Random, shares: bool) -> None:
        self.random, self.shares = random, shares
        self.ints = (*_INTS, *_numbers(graph))
        self.shape = (2, 2) if random.random() < 0.5 else random.choice(_SHAPES)
        self.varies = random.random() < 0.25
        self.dtype = scalars.float32 if random.random() < 0.6 else random.choice(_DTYPES)
        self.is_finite = random.random() < 0.7
        self.made: dict[Type, list[Any]] = {}
        self.blocks: dict[scalars.dtype, Tensor] = {}

    def like(self, hint: Any) -> Any:
        """A value of a type, one of a set, a list or tuple of such, or the value itself."""
        if isinstance(hint, Type):
            return self.value(hint)
        if isinstance(hint, set):
            return self.random.choice(sorted(hint))
        if isinstance(hint, (list, tuple)):
            return type(hint)(map(self.like, hint))
        return deepcopy(hint)

    def value(self, type: Type) -> Any:
        """A value of the type, in calls that share at times one that was made before."""
        known = self.made.setdefault(type, [])
        if known and self.shares and self.random.random() < 0.4:
            return self.random.choice(known)
        known.append(made := self.fresh(type))
        return made

    def fresh(self, type: Type) -> Any:
        match type:
            case TensorType():
                return self.tensor(type)
            case types.ListType():
                return [self.value(type.element) for _ in range(self.random.choice((0, 1, 2, 2, 3)))]
            case types.DictType():
                return {self.value(type.key): self.value(type.value) for _ in range(2)}
            case types.TupleType():
                return tuple(map(self.value, type.elements))
            case types.OptionalType():
                return None if self.random.random() < 0.4 else self.value(type.element)
            case types.UnionType():
                return self.value(self.random.choice(type.members))
        if type != types.INT and type not in _CHOICES:
            raise NoCallsError(f"no values of {type} are made")
        return self.random.choice(self.ints if type == types.INT else _CHOICES[type])

    # -- tensors

    def tensor(self, type: TensorType) -> Tensor:
        if type.device not in (None, scalars.CPU):
            raise NoCallsError(f"no tensors on {type.device} are made")
        sizes, dtype = self.sizes(type), type.dtype or self.dtype
        if not self.shares:
            return Tensor(self.array(dtype, sizes))
        window = find("aten::as_strided")
        assert window is not None
        turned = type.strides is None and self.random.random() < 0.25
        strides = _strides(sizes[::-1])[::-1] if turned else _strides(sizes)
        made: Tensor = window.run(self.block(dtype), list(sizes), strides, self.random.choice((0, 1)))
        return made

    def sizes(self, type: TensorType) -> Sizes:
        if type.sizes is None:
            return self.random.choice(_SHAPES) if self.varies else self.shape
        return tuple(self.size() if size is None else size for size in type.sizes)

    def size(self) -> int:
        return self.random.randint(0, 4) if self.varies else 2

    def block(self, dtype: scalars.dtype) -> Tensor:
        """The memory that the tensors of the dtype share."""
        if dtype not in self.blocks:
            self.blocks[dtype] = Tensor(self.array(dtype, (_BLOCK,)))
        return self.blocks[dtype]

    def array(self, dtype: scalars.dtype, sizes: Sizes) -> Any:
        """Small numbers, of floats in quarters; in some calls with one that is not finite."""
        numbers = np.array([self.random.randint(-9, 9) for _ in range(prod(sizes))]).reshape(sizes)
        values = numbers / 4 if dtype.is_floating_point else numbers
        if not self.is_finite and dtype.is_floating_point and values.size:
            values.flat[0] = self.random.choice((np.nan, np.inf))
        return values.astype(TO_NUMPY[dtype])


def _strides(sizes: Sizes) -> list[int]:
    """Those of a tensor whose elements stand in order, without gaps."""
    return [prod(sizes[dim + 1 :]) for dim in range(len(sizes))]


def _numbers(graph: Graph) -> tuple[int, ...]:
    """The small numbers that the graph mentions."""
    values = [constant_value(node.output) for node in graph.all_nodes() if node.kind == "prim::Constant"]
    return tuple(sorted({value for value in values if type(value) is int and abs(value) <= _LARGEST}))
