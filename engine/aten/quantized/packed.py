"""Objects that hold the weights of quantized layers, as PyTorch's classes of the same names do.

In: the states that archives have for them, or weights.  Out: `Linear`, `Conv`, `Cell`, `Embedding`, for operators.
A state is checked when an archive is loaded; what operators need of a weight is worked out when one first runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from engine.aten.values.ivalue import CustomObject
from engine.aten.values.quantizer import Quantizer, integers_of, is_quantized, quantizer_of
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import INTEGERS, Array
from engine.lang import custom_classes
from engine.lang.custom_classes import PREFIX
from engine.lang.errors import OperatorError
from engine.lang.records import dataclass
from engine.lang.types import FLOAT, INT, STR, TENSOR, ClassType, ListType, OptionalType, TupleType, Type


@dataclass(frozen=True, eq=False)
class Weight:
    """A quantized weight, each index of one dimension with a scale of its own or all with one."""

    tensor: Tensor
    axis: int = 0
    """The dimension of the outputs."""

    @property
    def quantizer(self) -> Quantizer:
        return quantizer_of(self.tensor.array)

    @cached_property
    def scales(self) -> Array:
        """float32; one, or one for each output."""
        return np.atleast_1d(np.asarray(self.quantizer.scale, np.float32))

    @cached_property
    def above(self) -> Array:
        """The integers minus their zero points, as float32, which represents all of them exactly."""
        array, how = self.tensor.array, self.quantizer
        zero = how.spread(how.zero_point, array.ndim)
        return np.asarray(integers_of(array).astype(np.float32) - zero, np.float32)

    @cached_property
    def largest(self) -> int:
        """No number in `above` is farther from zero."""
        above = self.above
        return int(max(above.max(), -above.min())) if above.size else 0


def weight_of(tensor: Tensor, ndim: Sequence[int], axis: int = 0, kinds: Sequence[str] = ("qint8",)) -> Weight:
    """Raises OperatorError for a tensor that is no such weight."""
    array = tensor.array
    if not is_quantized(array) or quantizer_of(array).dtype.name not in kinds:
        raise OperatorError(f"a weight must be a quantized tensor of {' or '.join(kinds)}, not {tensor.dtype}")
    if array.ndim not in ndim:
        raise OperatorError(f"The weight tensor must have {ndim[0]} dimensions, got {array.ndim}")
    found = quantizer_of(array).axis
    if found is not None and found != axis:
        raise OperatorError(f"a weight must be quantized by channels of dimension {axis}, not {found}")
    return Weight(tensor, axis)


def _checked_bias(bias: Tensor | None, outputs: int) -> Tensor | None:
    if bias is None:
        return None
    if bias.array.shape != (outputs,) or bias.array.dtype != np.float32:
        raise OperatorError(f"bias should be a vector of {outputs} float32 numbers, one for each output")
    return bias


# ------------------------------------------------------------------ linear


@dataclass(frozen=True, eq=False)
class Linear:
    """y = x @ weight.T + bias."""

    weight: Weight | Tensor
    """A plain tensor is one that was rounded to float16."""
    bias: Tensor | None

    @property
    def original(self) -> Tensor:
        return self.weight.tensor if isinstance(self.weight, Weight) else self.weight

    @cached_property
    def columns(self) -> Array:
        """The transposed weight as float32: integers minus their zero points, or plain numbers."""
        array = self.weight.above if isinstance(self.weight, Weight) else self.weight.array
        return np.ascontiguousarray(array.T, np.float32)

    @property
    def bias_array(self) -> Array | None:
        return None if self.bias is None else self.bias.array


def linear(weight: Tensor, bias: Tensor | None) -> Linear:
    """Raises OperatorError."""
    if not is_quantized(weight.array) and weight.array.dtype == np.float32 and weight.array.ndim == 2:
        return Linear(weight, _checked_bias(bias, weight.array.shape[0]))
    found = weight_of(weight, (2,))
    return Linear(found, _checked_bias(bias, weight.array.shape[0]))


def _read_linear(state: Any) -> Linear:
    return linear(*state)


def _write_linear(made: Linear) -> Any:
    return (made.original, made.bias)


# ------------------------------------------------------------------ convolutions


@dataclass(frozen=True, eq=False)
class Conv:
    """A convolution over `n` dimensions, or a transposed one."""

    n: int
    weight: Weight
    bias: Tensor | None
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    output_padding: list[int]
    groups: int
    transposed: bool

    @property
    def original(self) -> Tensor:
        return self.weight.tensor

    @property
    def bias_array(self) -> Array | None:
        return None if self.bias is None else self.bias.array

    @property
    def reach(self) -> int:
        """The largest number of products that are summed for one output."""
        array = self.weight.tensor.array
        inputs: int = array.shape[0] // self.groups if self.transposed else array.shape[1]
        return int(inputs * math.prod(array.shape[2:]))


def conv(
    n: int, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], output_padding: Sequence[int], groups: int, transposed: bool,
) -> Conv:  # fmt: skip
    """Raises OperatorError for numbers that make no convolution."""
    found = weight_of(weight, (n + 2,), 1 if transposed else 0)
    shape = weight.array.shape
    for name, values, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1),
                                ("output_padding", output_padding, 0)):  # fmt: skip
        if len(values) != n or min(values) < least:
            raise OperatorError(f"{name} of a convolution over {n} dimensions cannot be {list(values)}")
    if groups < 1 or shape[0] % groups:
        raise OperatorError(f"{shape[0]} channels cannot be divided into {groups} groups")
    outputs = shape[1] * groups if transposed else shape[0]
    return Conv(n, found, _checked_bias(bias, outputs), [*stride], [*padding], [*dilation], [*output_padding], groups,
                transposed)  # fmt: skip


def _read_conv(n: int) -> Callable[[Any], Conv]:
    """The layout of states since PyTorch 1.7: ("2", [numbers, weight], [bias])."""

    def read(state: Any) -> Conv:
        version, tensors, optional = state
        if version != "2":
            raise OperatorError(f"a convolution's state has the version {version!r:.20}, and '2' is known")
        if len(tensors) != 2 or len(optional) != 1 or tensors[0].array.dtype not in INTEGERS:
            raise OperatorError("a convolution's state is made of its numbers, its weight and its bias")
        if tensors[0].array.ndim != 1 or tensors[0].array.size != 3 + 4 * n or is_quantized(tensors[0].array):
            raise OperatorError(f"a convolution over {n} dimensions is described by {3 + 4 * n} integers")
        numbers = [int(each) for each in tensors[0].array]
        parts = [numbers[1 + i * n : 1 + (i + 1) * n] for i in range(4)]
        groups, flags = numbers[-2:]
        if numbers[0] != n or flags not in (0, 1):
            raise OperatorError(f"a convolution over {n} dimensions says that it has {numbers[0]}")
        stride, padding, dilation, output_padding = parts
        return conv(n, tensors[1], optional[0], stride, padding, dilation, output_padding, groups, bool(flags))

    return read


def _write_conv(made: Conv) -> Any:
    numbers = [made.n, *made.stride, *made.padding, *made.dilation, *made.output_padding, made.groups, made.transposed]
    return ("2", [Tensor(np.array(numbers, np.int16)), made.original], [made.bias])


# ------------------------------------------------------------------ cells of recurrent layers


@dataclass(frozen=True, eq=False)
class Cell:
    """The weights of one layer in one direction."""

    kind: str
    w_ih: Linear
    w_hh: Linear
    b_ih: Array | None
    b_hh: Array | None
    reduce_range: bool = False


DYNAMIC: Final = "quantized_dynamic"
HALVES: Final = "quantized_fp16"


def _read_cell(state: Any) -> Cell:
    kind, tensors, _floats, integers, packed = state
    if kind not in (DYNAMIC, HALVES):
        raise OperatorError(f"cells of the kind {kind!r:.40} are not known", hints=(f"{DYNAMIC} and {HALVES} are",))
    layers = [each.content for each in packed]
    if len(layers) != 2 or not all(isinstance(each, Linear) for each in layers):
        raise OperatorError("a cell's state has two linear layers")
    if kind == HALVES:
        return Cell(kind, layers[0], layers[1], layers[0].bias_array, layers[1].bias_array)
    if len(tensors) != 2 or len(integers) > 1:
        raise OperatorError("a cell's state has two biases")
    biases = []
    for layer, bias in zip(layers, tensors, strict=True):
        checked = _checked_bias(bias, layer.original.array.shape[0])
        assert checked is not None
        biases.append(checked.array)
    return Cell(kind, layers[0], layers[1], biases[0], biases[1], bool(integers and integers[0]))


def cell_state(
    kind: str, w_ih: CustomObject, w_hh: CustomObject, biases: Sequence[Tensor] = (), reduce_range: bool = False
) -> Any:
    """The state of a cell of these layers."""
    return (kind, [*biases], [], [int(reduce_range)] if kind == DYNAMIC else [], [w_ih, w_hh])


# ------------------------------------------------------------------ embeddings


@dataclass(frozen=True, eq=False)
class Embedding:
    """Rows of integers, each row with a scale and a bias: `integer * scale + bias`."""

    original: Tensor
    bits: int

    @cached_property
    def rows(self) -> Array:
        """The numbers, float32."""
        how, array = quantizer_of(self.original.array), self.original.array
        kept = np.float16 if self.bits == 4 else np.float32
        scale = np.asarray(how.scale, kept).astype(np.float32)[:, None]
        offset = np.asarray(np.float32(-1) * how.scale * how.zero_point, kept).astype(np.float32)[:, None]
        return np.asarray(integers_of(array).astype(np.float32) * scale + offset, np.float32)


def embedding(weight: Tensor) -> Embedding:
    """Raises OperatorError."""
    weight_of(weight, (2,), kinds=("quint8", "quint4x2"))
    if quantizer_of(weight.array).axis != 0:
        raise OperatorError("an embedding's weight must be quantized by rows")
    return Embedding(weight, 4 if quantizer_of(weight.array).dtype.name == "quint4x2" else 8)


def _read_embedding(state: Any) -> Embedding:
    version, tensors, _floats, integers = state
    if version != 1 or len(tensors) != 1 or len(integers) != 1:
        raise OperatorError("an embedding's state is its version, its weight and how many bits a number has")
    found = embedding(tensors[0])
    if found.bits != integers[0]:
        raise OperatorError(f"an embedding's weight has {found.bits} bits, and its state says {integers[0]}")
    return found


def _write_embedding(made: Embedding) -> Any:
    return (1, [made.original], [], [made.bits])


# ------------------------------------------------------------------ the classes


@dataclass(frozen=True)
class PackedClass:
    """Conversion of a custom class's objects from their states, and back; `read` raises OperatorError."""

    state_type: Type
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] | None = None


def _type(name: str) -> ClassType:
    found = custom_classes.find(PREFIX + name)
    assert found is not None, name
    return found


LINEAR: Final = _type("quantized.LinearPackedParamsBase")
CONV: Final = {n: _type(f"quantized.Conv{n}dPackedParamsBase") for n in (2, 3)}
CELL: Final = _type("rnn.CellParamsBase")
EMBEDDING: Final = _type("quantized.EmbeddingPackedParamsBase")
_MAYBE: Final = OptionalType(TENSOR)
_TENSORS: Final = ListType(TENSOR)
_CONV_STATE: Final = TupleType((STR, _TENSORS, ListType(_MAYBE)))
CLASSES: Final[dict[ClassType, PackedClass]] = {
    LINEAR: PackedClass(TupleType((TENSOR, _MAYBE)), _read_linear, _write_linear),
    **{CONV[n]: PackedClass(_CONV_STATE, _read_conv(n), _write_conv) for n in (2, 3)},
    CELL: PackedClass(TupleType((STR, _TENSORS, ListType(FLOAT), ListType(INT), ListType(LINEAR))), _read_cell),
    EMBEDDING: PackedClass(
        TupleType((INT, _TENSORS, ListType(FLOAT), ListType(INT))), _read_embedding, _write_embedding
    ),
}


def packed(kind: ClassType, content: Any) -> CustomObject:
    """The object that holds it."""
    known = CLASSES[kind]
    assert known.write is not None
    return CustomObject(kind, known.write(content), known.state_type, content)


def of_state(kind: ClassType, state: Any) -> CustomObject:
    """The object with that state.  Raises OperatorError."""
    known = CLASSES[kind]
    return CustomObject(kind, state, known.state_type, known.read(state))
