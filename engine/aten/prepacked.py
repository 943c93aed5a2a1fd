"""Layers as phones run them: objects that hold a weight, its settings, and the range that results are clamped to.

In: the states that archives have for such objects, or weights.  Out: `PrepackedLayer`s, and the operators that one
stands for.  PyTorch's classes of these names keep weights in the order that XNNPACK, a library of kernels for phones,
wants; a state has them as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.quantized.packed import PackedClass
from engine.aten.values.ivalue import CustomObject
from engine.aten.values.tensor import Tensor
from engine.lang import custom_classes
from engine.lang.errors import OperatorError
from engine.lang.records import dataclass
from engine.lang.types import INT, NUMBER, TENSOR, ClassType, ListType, OptionalType, TupleType

Number = int | float


@dataclass(frozen=True, eq=False)
class PrepackedLayer:
    """`operator(x, weight, bias, *settings)`, clamped."""

    operator: str
    """The qualified name, without `aten::`."""
    weight: Tensor
    bias: Tensor | None
    settings: tuple[Any, ...]
    output_min: Number | None
    output_max: Number | None

    def calls(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """The operators to call one after the other: the name of each, and what it takes behind its first argument.

        Limits that `relu` and `hardtanh` have become those, which give what `clamp` does and are expressions.
        """
        yield self.operator, (self.weight, self.bias, *self.settings)
        low, high = self.output_min, self.output_max
        if low == 0 and math.copysign(1, low) > 0 and high is None:
            yield "relu", ()
        elif low is not None and high is not None:
            yield "hardtanh", (low, high)
        elif low is not None or high is not None:
            yield "clamp", (low, high)


def linear(
    weight: Tensor, bias: Tensor | None, output_min: Number | None = None, output_max: Number | None = None
) -> PrepackedLayer:
    """Raises OperatorError for what is no weight (outputs x inputs) with its bias."""
    _check_weight(weight, 2)
    _check_bias(bias, weight.array.shape[0])
    return _layer("linear", weight, bias, (), output_min, output_max)


def conv2d(
    weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    groups: int, output_min: Number | None = None, output_max: Number | None = None,
) -> PrepackedLayer:  # fmt: skip
    """Raises OperatorError for numbers that make no convolution."""
    settings = _checked_settings(stride=stride, padding=padding, dilation=dilation)
    _check_weight(weight, 4)
    _check_groups(weight, groups)
    _check_bias(bias, weight.array.shape[0])
    return _layer("conv2d", weight, bias, (*settings, groups), output_min, output_max)


def conv_transpose2d(
    weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], output_padding: Sequence[int],
    dilation: Sequence[int], groups: int, output_min: Number | None = None, output_max: Number | None = None,
) -> PrepackedLayer:  # fmt: skip
    """Raises OperatorError for numbers that make no transposed convolution."""
    settings = _checked_settings(stride=stride, padding=padding, output_padding=output_padding, dilation=dilation)
    _check_weight(weight, 4)
    _check_groups(weight, groups)
    _check_bias(bias, weight.array.shape[1] * groups)
    strides, paddings, output_paddings, dilations = settings
    numbers = (strides, paddings, output_paddings, groups, dilations)
    return _layer("conv_transpose2d.input", weight, bias, numbers, output_min, output_max)


def _layer(
    operator: str, weight: Tensor, bias: Tensor | None, settings: tuple[Any, ...], low: Number | None,
    high: Number | None,
) -> PrepackedLayer:  # fmt: skip
    limits = [each for each in (low, high) if each is not None]
    if any(isinstance(each, complex) or each != each for each in limits) or limits != sorted(limits):
        raise OperatorError(f"results cannot be clamped to the range from {low} to {high}")
    return PrepackedLayer(operator, weight.detach(), None if bias is None else bias.detach(), settings, low, high)


def _check_weight(weight: Tensor, ndim: int) -> None:
    if weight.array.dtype != np.float32 or weight.array.ndim != ndim:
        found = f"{weight.dtype} with {weight.array.ndim} dimensions"
        raise OperatorError(f"a weight must be of float32 with {ndim} dimensions, not of {found}")


def _check_bias(bias: Tensor | None, outputs: int) -> None:
    if bias is not None and (bias.array.shape != (outputs,) or bias.array.dtype != np.float32):
        raise OperatorError(f"bias should be a vector of {outputs} float32 numbers, one for each output")


def _check_groups(weight: Tensor, groups: int) -> None:
    if groups < 1 or weight.array.shape[0] % groups:
        raise OperatorError(f"{weight.array.shape[0]} channels cannot be divided into {groups} groups")


_LEAST: Final = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}


def _checked_settings(**settings: Sequence[int]) -> list[list[int]]:
    """Each as a list of two numbers."""
    made = []
    for name, values in settings.items():
        both = [*values] * 2 if len(values) == 1 else [*values]
        if len(both) != 2 or min(both) < _LEAST[name]:
            raise OperatorError(f"{name} of a convolution over 2 dimensions cannot be {list(values)}")
        made.append(both)
    return made


# -- the classes


def _by(make: Callable[..., PrepackedLayer]) -> Callable[[Any], PrepackedLayer]:
    return lambda state: make(*state)


_MAYBE, _INTS, _LIMIT = OptionalType(TENSOR), ListType(INT), OptionalType(NUMBER)
LINEAR: Final = custom_classes.builtin("xnnpack.LinearOpContext")
CONV2D: Final = custom_classes.builtin("xnnpack.Conv2dOpContext")
CONV_TRANSPOSE2D: Final = custom_classes.builtin("xnnpack.TransposeConv2dOpContext")
CLASSES: Final[dict[ClassType, PackedClass]] = {
    LINEAR: PackedClass(TupleType((TENSOR, _MAYBE, _LIMIT, _LIMIT)), _by(linear)),
    CONV2D: PackedClass(TupleType((TENSOR, _MAYBE, _INTS, _INTS, _INTS, INT, _LIMIT, _LIMIT)), _by(conv2d)),
    CONV_TRANSPOSE2D: PackedClass(
        TupleType((TENSOR, _MAYBE, _INTS, _INTS, _INTS, _INTS, INT, _LIMIT, _LIMIT)), _by(conv_transpose2d)
    ),
}


def prepacked(kind: ClassType, state: tuple[Any, ...]) -> CustomObject:
    """The object of that class and state.  Raises OperatorError."""
    known = CLASSES[kind]
    return CustomObject(kind, state, known.state_type, known.read(state))


def layer_of(object_: CustomObject) -> PrepackedLayer:
    """The layer that an object holds.  Raises OperatorError for an empty one."""
    if not isinstance(object_.content, PrepackedLayer):
        raise OperatorError(f"a '{object_.type.qualname}' has no weights: it was made without a state")
    return object_.content
