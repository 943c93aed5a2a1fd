"""Affine quantization: integers of an array represent the numbers `(integer - zero_point) * scale`.

In: integers and a `Quantizer`.  Out: an array of them whose dtype knows the quantizer, and back.

Note [Quantized arrays]
The dtype of such an array is a structure with one field, the integer, and has the quantizer in its metadata.  So
whatever only moves numbers (views, copies, indices, joining) keeps the quantizer, in numpy's code and in ours, and
whatever computes refuses, since numpy has no arithmetic for structures: an operator that knows nothing of quantized
numbers cannot take their integers for numbers by mistake.  Two such dtypes are equal if their integers are of one kind,
whatever their quantizers, so tables by dtype have one row for each kind.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.values import libraries, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.xp import Array, NumpyDtype
from engine.lang import scalars
from engine.lang.errors import OperatorError
from engine.lang.records import dataclass

PER_TENSOR: Final = 0
PER_CHANNEL: Final = 1
PER_CHANNEL_FLOAT: Final = 4
"""Numbers of schemes, as programs see them."""
LIMITS: Final = {"qint8": (-128, 127), "quint8": (0, 255), "qint32": (-(1 << 31), (1 << 31) - 1),
                 "quint4x2": (0, 15)}  # fmt: skip
BY_NUMBER: Final = {scalars.DTYPE_WORDS[name].number: scalars.DTYPE_WORDS[name] for name in LIMITS}
_METADATA: Final = "quantizer"


@dataclass(frozen=True, eq=False)
class Quantizer:
    """Scale, zero point and dtype that map a tensor's integers to numbers.

    One scale and zero point for all, or (with `axis`) arrays of them, float64 and int64, with one for each index along
    that dimension; zero points are float32 where they are no integers.
    """

    dtype: scalars.dtype
    scale: Any
    zero_point: Any
    axis: int | None = None

    @property
    def scheme(self) -> int:
        if self.axis is None:
            return PER_TENSOR
        return PER_CHANNEL if self.zero_point.dtype in xp.INTEGERS else PER_CHANNEL_FLOAT

    @property
    def limits(self) -> tuple[int, int]:
        return LIMITS[self.dtype.name]

    @property
    def integer(self) -> NumpyDtype:
        """The dtype of the integers."""
        return xp.QUANTIZED[self.dtype.name]

    def spread(self, values: Any, ndim: int) -> Any:
        """Scales or zero points, shaped so that they meet the numbers of an array with `ndim` dimensions."""
        return values if self.axis is None else values.reshape([-1 if i == self.axis else 1 for i in range(ndim)])

    def same(self, other: Quantizer) -> bool:
        """True if equal integers represent equal numbers under both quantizers."""
        return (
            self.dtype is other.dtype
            and self.axis == other.axis
            and bool(np.array_equal(self.scale, other.scale) and np.array_equal(self.zero_point, other.zero_point))
        )


def per_tensor(d: scalars.dtype, scale: float, zero_point: int) -> Quantizer:
    """One scale for all.  Raises OperatorError for a zero point out of range."""
    low, high = LIMITS[d.name]
    if not low <= zero_point <= high:
        side = "below lower" if zero_point < low else "above upper"
        raise OperatorError(
            f"quantize_tensor_per_tensor_affine zero_point {zero_point} is {side} bound.",
            hints=(f"those of torch.{d.name} lie between {low} and {high}",),
        )
    return Quantizer(d, float(scale), int(zero_point))


def per_channel(d: scalars.dtype, scales: Array, zero_points: Array, axis: int, shape: tuple[int, ...]) -> Quantizer:
    """One scale for each index along a dimension of tensors of that shape.  Raises OperatorError."""
    if not 0 <= axis < len(shape):
        raise OperatorError(f"Channel axis out of range in per channel affine quantization. Got: {axis} "
                            f"Expected: [0, {len(shape)})")  # fmt: skip
    if scales.ndim != 1 or zero_points.ndim != 1 or scales.shape != zero_points.shape:
        raise OperatorError("number of elements in scales and zero_points must match, in one dimension each")
    if scales.size != shape[axis]:
        raise OperatorError(f"length of scales must equal to channel, expected {shape[axis]} got {scales.size}")
    is_whole = zero_points.dtype in xp.INTEGERS
    zeros = zero_points.astype(np.int64 if is_whole else np.float32)
    low, high = LIMITS[d.name]
    if is_whole and zeros.size and not (low <= int(zeros.min()) and int(zeros.max()) <= high):
        raise OperatorError(f"zero_point must be between {low} and {high} for torch.{d.name}")
    return Quantizer(d, scales.astype(np.float64 if is_whole else np.float32), zeros, axis)


def is_quantized(array: Array) -> bool:
    return array.dtype.names is not None


def wrapped(integers: Array, quantizer: Quantizer) -> Array:
    """The integers as quantized numbers, in the same memory.  From now on operators look for such."""
    present()
    return described(integers, quantizer)


def described(integers: Array, quantizer: Quantizer) -> Array:
    """The same for those that no operator will be given."""
    name = quantizer.dtype.name
    d = np.dtype([(name, quantizer.integer)], metadata={_METADATA: quantizer})
    return integers.view(d)


def present() -> None:
    """There may be quantized tensors from now on."""
    HOOKS.quantized = HOOKS.devices = True


def absent() -> None:
    """Unset the flag once no quantized arrays exist, so that operators skip their checks."""
    HOOKS.quantized, HOOKS.devices = False, bool(libraries.loaded())


def quantizer_of(array: Array) -> Quantizer:
    """Raises OperatorError for an array that is not quantized."""
    facts: Any = array.dtype.metadata if array.dtype.names is not None else None
    found = facts.get(_METADATA) if facts else None
    if found is None:
        raise OperatorError("a quantized tensor is wanted here", hints=("torch.quantize_per_tensor makes one",))
    quantizer: Quantizer = found
    return quantizer


def integers_of(array: Array) -> Array:
    """The integers, in the same memory."""
    return array.view(xp.QUANTIZED[array.dtype.names[0]]) if array.dtype.names is not None else array
