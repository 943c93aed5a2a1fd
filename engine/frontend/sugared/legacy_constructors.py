"""`torch.LongTensor(2, 3)` and its kind: constructors of one dtype, older than `torch.empty` and `torch.tensor`.

In: a constructor's name.  Out: a sugared value whose call with whole numbers makes an uninitialised tensor of these
sizes, and with anything else a tensor with these elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import SimpleValue
from engine.lang.errors import CompileError
from engine.lang.scalars import DTYPE_ALIASES, DTYPE_BY_NAME
from engine.lang.source import SourceRange
from engine.lang.types import INT

_FORMS: Final = """Legacy Tensor Constructor only supports two schemas in TorchScript:\x20
'new(IntArrayRef size, *, Device? device=None)',
'new(PyObject* data, *, Device? device=None)
'"""
_DTYPES: Final = {
    "Bool": "bool", "Byte": "uint8", "Char": "int8", "Double": "double", "Float": "float", "Half": "half", "Int": "int",
    "Long": "long", "Short": "short",
}  # fmt: skip


class LegacyTensorConstructor(SugaredValue):
    """Constructor of tensors of the dtype with this number."""

    __slots__ = ("dtype",)
    kind = "builtin"

    def __init__(self, dtype: int) -> None:
        self.dtype = dtype

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        others = [each for each in kwargs if each.name != "device"]
        if others:
            raise self._refused(f"Got kwarg {others[0].name}", range)
        sizes = all(each.value.type is INT for each in args)
        if len(args) > 1 and not sizes:
            raise self._refused("Got multiple positional arguments that were not all integers", range)
        options = {each.name: each.value for each in kwargs if each.name is not None}
        dtype = b.constant(self.dtype)
        if args and sizes:
            name, given = "aten::empty", b.list([each.value for each in args], INT)
        else:
            name, given = "aten::tensor", args[0].value if args else b.list([], INT)
        return SimpleValue(b.insert(name, [given], range, dtype=dtype, **options))

    def _refused(self, why: str, range: SourceRange) -> CompileError:
        return CompileError(_FORMS + why, range, hints=("write torch.empty(sizes, dtype=…) or torch.tensor(data, …)",))


def _number(name: str) -> int:
    return (DTYPE_BY_NAME.get(name) or DTYPE_ALIASES[name]).number


CONSTRUCTORS: Final = {f"{name}Tensor": LegacyTensorConstructor(_number(dtype)) for name, dtype in _DTYPES.items()}
"""The constructors, by their names in `torch`."""
