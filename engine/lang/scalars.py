"""The scalar words of the language: dtypes and devices.

In: their names.  Out: one object each, with the number that TorchScript programs see (`dtype` is an
`int` there) and the name that graphs print.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from engine.lang.errors import OperatorError

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
        return self.name not in ("uint8", "bool")

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
complex64 = dtype("complex64", 9, "ComplexFloat", 8, "complex")
complex128 = dtype("complex128", 10, "ComplexDouble", 16, "complex")
bool_ = dtype("bool", 11, "Bool", 1, "bool")
bfloat16 = dtype("bfloat16", 15, "BFloat16", 2, "float")

DTYPES: tuple[dtype, ...] = (
    uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128, bool_, bfloat16,
)  # fmt: skip
DTYPE_BY_NAME = {d.name: d for d in DTYPES}
DTYPE_BY_NUMBER = {d.number: d for d in DTYPES}
DTYPE_BY_IR_NAME = {d.ir_name: d for d in DTYPES}
DTYPE_BY_STORAGE = {d.storage: d for d in DTYPES}
DTYPE_ALIASES = {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip

STRIDED = 0
"""The number of the only layout there is."""
MEMORY_FORMATS = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}

_DEVICE = re.compile(r"(cpu|cuda|meta)(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class device:
    """Where a tensor lives: a `type` ("cpu", "cuda", "meta") and perhaps an `index`.

    Raises OperatorError when the text names no device.
    """

    type: str
    index: int | None = None

    def __post_init__(self) -> None:
        match = _DEVICE.fullmatch(self.type)
        if match is None:
            raise OperatorError(f"Invalid device string: '{self.type}'", hints=("write 'cpu', 'cuda' or 'cuda:0'",))
        if match[2] is not None:
            object.__setattr__(self, "type", match[1])
            object.__setattr__(self, "index", int(match[2]))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


CPU = device("cpu")


def dtype_named(name: str) -> dtype:
    """The dtype of that name; raises KeyError when there is none."""
    return DTYPE_BY_NAME.get(name) or DTYPE_ALIASES[name]
