"""Dtypes, layouts, memory formats and devices.

In: their names.  Out: one object each, with the number that TorchScript programs see (`dtype` is an
`int` there) and the name that graphs print.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from engine.lang.deferred import pattern_of
from engine.lang.errors import OperatorError, OperatorTypeError, did_you_mean
from engine.lang.records import dataclass

Category = Literal["bool", "int", "float", "complex"]


@dataclass(frozen=True, slots=True)
class dtype:
    """A tensor element type.

    `number` is the ScalarType that programs see as an int, `ir_name` what graphs print, `storage` the
    class name that archives use.
    """

    name: str
    number: int
    ir_name: str
    itemsize: int
    category: Category

    @property
    def storage(self) -> str:
        return f"{self.ir_name}Storage"

    @property
    def is_floating_point(self) -> bool:
        return self.category == "float"

    @property
    def is_complex(self) -> bool:
        return self.category == "complex"

    @property
    def is_signed(self) -> bool:
        return not self.name.startswith(("uint", "quint", "bool"))

    def to_complex(self) -> dtype:
        """The complex dtype whose parts are of this one."""
        return _COMPLEX_OF.get(self.name, self if self.is_complex else complex64)

    def to_real(self) -> dtype:
        """The dtype of a complex one's parts."""
        return _PART_OF.get(self.name, self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return dtype_named, (self.name,)


uint8 = dtype("uint8", 0, "Byte", 1, "int")
int8 = dtype("int8", 1, "Char", 1, "int")
int16 = dtype("int16", 2, "Short", 2, "int")
int32 = dtype("int32", 3, "Int", 4, "int")
int64 = dtype("int64", 4, "Long", 8, "int")
float16 = dtype("float16", 5, "Half", 2, "float")
float32 = dtype("float32", 6, "Float", 4, "float")
float64 = dtype("float64", 7, "Double", 8, "float")
complex32 = dtype("complex32", 8, "ComplexHalf", 4, "complex")
complex64 = dtype("complex64", 9, "ComplexFloat", 8, "complex")
complex128 = dtype("complex128", 10, "ComplexDouble", 16, "complex")
bool_ = dtype("bool", 11, "Bool", 1, "bool")
bfloat16 = dtype("bfloat16", 15, "BFloat16", 2, "float")

DTYPES: tuple[dtype, ...] = (
    uint8, int8, int16, int32, int64, float16, float32, float64, complex32, complex64, complex128, bool_,
    bfloat16,
)  # fmt: skip
DTYPE_BY_NAME = {d.name: d for d in DTYPES}
DTYPE_BY_NUMBER = {d.number: d for d in DTYPES}
DTYPE_BY_IR_NAME = {d.ir_name: d for d in DTYPES}
DTYPE_BY_STORAGE = {d.storage: d for d in DTYPES}
DTYPE_ALIASES = {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "chalf": complex32, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
_PART_OF = {"complex32": float16, "complex64": float32, "complex128": float64}
_COMPLEX_OF = {"float16": complex32, "float64": complex128}

_WORDS = (
    ("qint8", 12, "QInt8", 1, "int"), ("quint8", 13, "QUInt8", 1, "int"),
    ("qint32", 14, "QInt32", 4, "int"), ("quint4x2", 16, "QUInt4x2", 1, "int"), ("quint2x4", 17, "QUInt2x4", 1, "int"),
    ("float8_e5m2", 23, "Float8_e5m2", 1, "float"), ("float8_e4m3fn", 24, "Float8_e4m3fn", 1, "float"),
    ("float8_e5m2fnuz", 25, "Float8_e5m2fnuz", 1, "float"), ("float8_e4m3fnuz", 26, "Float8_e4m3fnuz", 1, "float"),
    ("uint16", 27, "UInt16", 2, "int"), ("uint32", 28, "UInt32", 4, "int"), ("uint64", 29, "UInt64", 8, "int"),
)  # fmt: skip
DTYPE_WORDS = {row[0]: dtype(*row) for row in _WORDS}  # type: ignore[arg-type]
"""Dtypes that programs may name, though no tensor has them: name -> dtype."""


@dataclass(frozen=True, slots=True)
class layout:
    """The memory layout of a tensor; programs see the number.  Tensors of the engine are strided."""

    name: str
    number: int

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return layout_named, (self.name,)


@dataclass(frozen=True, slots=True)
class memory_format:
    """An order of dimensions in memory; programs see the number."""

    name: str
    number: int

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return memory_format_named, (self.name,)


@dataclass(frozen=True, slots=True)
class qscheme:
    """A quantization scheme; programs see the number."""

    name: str
    number: int

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return qscheme_named, (self.name,)


_SCHEMES = (
    "per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric per_channel_affine_float_qparams"
)
QSCHEME_BY_NAME = {name: qscheme(name, number) for number, name in enumerate(_SCHEMES.split())}
QSCHEME_BY_NUMBER = {each.number: each for each in QSCHEME_BY_NAME.values()}
_LAYOUT_NAMES = "strided sparse_coo sparse_csr _mkldnn sparse_csc sparse_bsr sparse_bsc"
LAYOUT_BY_NAME = {name: layout(name, number) for number, name in enumerate(_LAYOUT_NAMES.split())}
STRIDED = 0
"""The number of the only layout that tensors have."""
MEMORY_FORMATS = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}
MEMORY_FORMAT_BY_NAME = {name: memory_format(name, number) for name, number in MEMORY_FORMATS.items()}
NUMBERED = (dtype, layout, memory_format, qscheme)
"""Classes of Python's objects that programs see as numbers."""

DEVICE_TYPES: Final = {
    "cpu": 0, "cuda": 1, "ipu": 18, "xpu": 12, "mkldnn": 2, "opengl": 3, "opencl": 4, "ideep": 5, "hip": 6, "ve": 16,
    "fpga": 7, "maia": 8, "xla": 9, "lazy": 17, "vulkan": 10, "mps": 13, "meta": 14, "hpu": 15, "mtia": 19,
    "privateuseone": 20,
}  # fmt: skip
"""The types of devices that a program may name, in the order of PyTorch's error, with its numbers
(c10/core/DeviceType.h).  Only those of the CPU, of CUDA and of `meta` have tensors here."""
_DEVICE = pattern_of(rf"({'|'.join(DEVICE_TYPES)})(?::(0|[1-9]\d*))?")


@dataclass(frozen=True, slots=True)
class device:
    """A device: a `type` (one of `DEVICE_TYPES`) and perhaps an `index`.

    A number alone is that of an accelerator.  Raises OperatorError when the text names no device.
    """

    type: str
    index: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.type, device):
            object.__setattr__(self, "index", self.type.index)
            object.__setattr__(self, "type", self.type.type)
            return
        if self.index is not None and not isinstance(self.index, int):
            raise OperatorTypeError(f"the index of a device must be an int, not {type(self.index).__name__}")
        if self.index is not None and self.index < 0:
            raise OperatorError("the index of a device must not be negative", hints=("write 'cuda:0' for the first",))
        if isinstance(self.type, int):
            kind = DEFAULT_DEVICE.keeper.accelerator()
            if kind is None:
                raise OperatorError(
                    f"device number {self.type} is one of an accelerator, and there is none", hints=("write 'cpu'",)
                )
            object.__setattr__(self, "index", self.type)
            object.__setattr__(self, "type", kind)
            self.__post_init__()
            return
        match = _DEVICE.fullmatch(self.type)
        if match is None:
            raise _no_device(self.type)
        if match[2] is not None:
            object.__setattr__(self, "type", match[1])
            object.__setattr__(self, "index", int(match[2]))

    def __enter__(self) -> device:
        """Make this the default device while the context lasts.  Raises OperatorError if there is no such device."""
        DEFAULT_DEVICE.keeper.enter(self)
        return self

    def __exit__(self, *exception: object) -> None:
        DEFAULT_DEVICE.keeper.leave()

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


def _no_device(text: str) -> OperatorError:
    """The error for a text that names no device."""
    hints = ("write 'cpu', 'cuda' or 'cuda:0'",)
    if not text:
        return OperatorError("Device string must not be empty", hints=hints)
    type = text.partition(":")[0]
    if type in DEVICE_TYPES:
        return OperatorError(f"Invalid device string: '{text}'", hints=hints)
    return OperatorError(
        f"Expected one of {', '.join(DEVICE_TYPES)} device type at start of device string: {text}",
        hints=(*did_you_mean(type, DEVICE_TYPES), *hints),
    )


CPU = device("cpu")


class DefaultDevice(Protocol):
    """Keeps the default device of each thread, in which contexts nest."""

    def enter(self, place: device) -> None:
        """Make this the default device.  Raises OperatorError if there is no such device."""

    def leave(self) -> None:
        """Restore the one before."""

    def accelerator(self) -> str | None:
        """The type of the devices that a number alone stands for; None where there are none."""


class _CpuAlone:
    """The default device where no other devices are known."""

    def enter(self, place: device) -> None:
        if place.type != "cpu":
            raise OperatorError(f"there is no {place.type} device to make tensors on", hints=("use 'cpu'",))

    def leave(self) -> None: ...

    def accelerator(self) -> str | None:
        return None


class DefaultDeviceSlot:
    """The slot of `with device(...)`; `engine.aten.values.libraries`, which knows the devices, takes it."""

    __slots__ = ("keeper",)

    def __init__(self) -> None:
        self.keeper: DefaultDevice = _CpuAlone()


DEFAULT_DEVICE: Final = DefaultDeviceSlot()


def layout_named(name: str) -> layout:
    """The layout of that name; raises KeyError when there is none."""
    return LAYOUT_BY_NAME[name]


def qscheme_named(name: str) -> qscheme:
    """The scheme of that name; raises KeyError when there is none."""
    return QSCHEME_BY_NAME[name]


def memory_format_named(name: str) -> memory_format:
    """The memory format of that name; raises KeyError when there is none."""
    return MEMORY_FORMAT_BY_NAME[name]


def dtype_named(name: str) -> dtype:
    """The dtype of that name; raises KeyError when there is none."""
    return DTYPE_BY_NAME.get(name) or DTYPE_WORDS.get(name) or DTYPE_ALIASES[name]
