"""Tensors meet the operator table: operators, indexing and methods.

In: nothing.  Out: `Tensor` with its Python operators bound (importing this module does it).  A method
is looked up in the table when first used: `x.sum(dim=0)` runs the overload of `aten::sum` that fits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from engine.aten import calls, indexing, printing
from engine.aten import op as table
from engine.aten import tensor as tensors
from engine.aten.tensor import Tensor
from engine.lang.errors import did_you_mean

_NUMBERS: Final = (int, float, complex)


class _Overload:
    """One overload by name, its function found at the first call."""

    __slots__ = ("name", "run")

    def __init__(self, name: str) -> None:
        self.name = name
        self.run: Callable[..., Any] = self._first

    def _first(self, *args: Any) -> Any:
        entry = table.find(self.name)
        assert entry is not None, f"{self.name} is not in the table"
        self.run = entry.run
        return self.run(*args)


def _binary(name: str, *rest: Any, tensor: str = "Tensor", scalar: str = "Scalar") -> Callable[[Any, Any], Any]:
    """`x op y` where y is a tensor or a number; `rest` are the arguments after them."""
    with_tensor, with_number = _overload(name, tensor), _overload(name, scalar)

    def operator(self: Tensor, other: Any) -> Any:
        if type(other) is Tensor:
            return with_tensor.run(self, other, *rest)
        if isinstance(other, _NUMBERS):
            return with_number.run(self, other, *rest)
        if isinstance(other, (np.ndarray, np.generic)):
            return with_tensor.run(self, tensors.tensor(np.asarray(other)), *rest)
        return NotImplemented

    return operator


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    """`number op x` by the overload that takes the number first, or by the tensor made of it."""

    def operator(self: Tensor, other: Any) -> Any:
        return calls.call(name, (other, self), {}) if isinstance(other, _NUMBERS) else NotImplemented

    return operator


def _overload(name: str, overload: str) -> _Overload:
    return _Overload(f"aten::{name}.{overload}" if overload else f"aten::{name}")


def _inplace(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: calls.call(name, (self, other), {})


def _unary(name: str) -> Callable[[Any], Any]:
    overload = _overload(name, "")
    return lambda self: overload.run(self)


def _rdiv(self: Tensor, other: Any) -> Any:
    return self.reciprocal() * other if isinstance(other, _NUMBERS) else NotImplemented


def _rfloordiv(self: Tensor, other: Any) -> Any:
    return calls.call("floor_divide", (tensors.tensor(other), self), {})


_SPECIAL: Final[dict[str, Callable[..., Any]]] = {
    "__add__": _binary("add", 1), "__radd__": _binary("add", 1),
    "__sub__": _binary("sub", 1), "__rsub__": _binary("rsub", 1),
    "__mul__": _binary("mul"), "__rmul__": _binary("mul"),
    "__truediv__": _binary("div"), "__rtruediv__": _rdiv,
    "__floordiv__": _binary("floor_divide", tensor=""), "__rfloordiv__": _rfloordiv,
    "__mod__": _binary("remainder"), "__rmod__": _reflected("remainder"),
    "__pow__": _binary("pow", tensor="Tensor_Tensor", scalar="Tensor_Scalar"), "__rpow__": _reflected("pow"),
    "__matmul__": _binary("matmul", tensor=""),
    "__and__": _binary("__and__"), "__or__": _binary("__or__"), "__xor__": _binary("__xor__"),
    "__rand__": _binary("__and__"), "__ror__": _binary("__or__"), "__rxor__": _binary("__xor__"),
    "__lshift__": _binary("__lshift__"), "__rshift__": _binary("__rshift__"),
    "__eq__": _binary("eq"), "__ne__": _binary("ne"), "__lt__": _binary("lt"), "__le__": _binary("le"),
    "__gt__": _binary("gt"), "__ge__": _binary("ge"),
    "__neg__": _unary("neg"), "__pos__": _unary("positive"), "__abs__": _unary("abs"),
    "__invert__": _unary("bitwise_not"),
    "__iadd__": _inplace("add_"), "__isub__": _inplace("sub_"), "__imul__": _inplace("mul_"),
    "__itruediv__": _inplace("div_"), "__ifloordiv__": _inplace("floor_divide_"),
    "__imod__": _inplace("remainder_"), "__ipow__": _inplace("pow_"),
    "__getitem__": indexing.read, "__setitem__": indexing.write,
}  # fmt: skip


def _method(self: Tensor, name: str) -> Callable[..., Any]:
    """The operator `name` with the tensor as first argument; raises AttributeError when tensors have no such method."""
    if not any("method" in op.variants for op in table.overloads(f"aten::{name}")):
        known = (known.removeprefix("aten::") for known in table.names())
        hint = "".join(f"; {h}" for h in did_you_mean(name, known))
        raise AttributeError(f"'Tensor' object has no attribute or method '{name}'{hint}")
    return partial(_call_method, name, self)


def _call_method(name: str, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    return calls.call_method(name, (self, *args), kwargs)


for _name, _function in _SPECIAL.items():
    setattr(Tensor, _name, _function)
tensors.bind(calls.call, _method, printing.tensor_repr)
