"""Tensors meet the operator table: operators, indexing and methods.

In: nothing.  Out: `Tensor` with its Python operators bound (importing this module does it).  A method
is looked up in the table when first used: `x.sum(dim=0)` runs the overload of `aten::sum` that fits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import calls
from engine.aten.dispatch import op as table
from engine.aten.formatting import printing
from engine.aten.python import indexing
from engine.aten.values import tensor as tensors
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorTypeError, did_you_mean

_NUMBERS: Final = (int, float, complex)


def _special(text: str, **overloads: str) -> Callable[..., Any]:
    """A special method of this text, in which the names of `overloads` are functions that run them."""
    environment: dict[str, Any] = {
        "Tensor": Tensor, "NUMBERS": frozenset({int, float, bool, complex}), "Number": _NUMBERS, "tensor": _of_array,
        "Array": (np.ndarray, np.generic),
    }  # fmt: skip
    for name, qualified_name in overloads.items():
        environment[name] = partial(_first, environment, name, qualified_name)
    exec(compile(text, f"<{' '.join(overloads.values())} operator>", "exec"), environment)
    function: Callable[..., Any] = environment["special"]
    return function


def _first(environment: dict[str, Any], name: str, qualified_name: str, *args: Any) -> Any:
    """The overload is looked for at the first call."""
    entry = table.find(qualified_name)
    assert entry is not None, f"{qualified_name} is not in the table"
    environment[name] = entry.run
    return entry.run(*args)


def _of_array(array: Any) -> Tensor:
    return tensors.tensor(np.asarray(array))


def _binary(name: str, *rest: Any, tensor: str = "Tensor", scalar: str = "Scalar") -> Callable[[Any, Any], Any]:
    """`x op y` where y is a tensor or a number (without `scalar`: no number); `rest` are the arguments after them."""
    more = "".join(f", {each!r}" for each in rest)
    are_numbers = "type(other) in NUMBERS or isinstance(other, Number)"
    numbers = f"    if {are_numbers}: return with_number(self, other{more})\n" if scalar else ""
    text = f"""
def special(self, other):
    if type(other) is Tensor: return with_tensor(self, other{more})
{numbers}    if isinstance(other, Tensor): return with_tensor(self, other{more})
    if isinstance(other, Array): return with_tensor(self, tensor(other){more})
    return NotImplemented
"""
    overloads = {"with_tensor": _qualified(name, tensor)}
    return _special(text, **overloads, **({"with_number": _qualified(name, scalar)} if scalar else {}))


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    """`number op x` by the overload that takes the number first, or by the tensor made of it."""

    def operator(self: Tensor, other: Any) -> Any:
        if isinstance(other, (np.ndarray, np.generic)):
            other = tensors.tensor(np.asarray(other))
        return calls.call(name, (other, self), {}) if isinstance(other, (*_NUMBERS, Tensor)) else NotImplemented

    return operator


def _qualified(name: str, overload: str) -> str:
    return f"aten::{name}.{overload}" if overload else f"aten::{name}"


def _inplace(name: str) -> Callable[[Any, Any], Any]:
    operator = calls.operator(name)
    return lambda self, other: operator(self, other)


def _unary(name: str) -> Callable[[Any], Any]:
    return _special("def special(self): return run(self)", run=_qualified(name, ""))


def _invert(self: Tensor) -> Any:
    if self.array.dtype.kind not in "bui":
        raise OperatorTypeError(
            f"~ inverts bits, so it takes tensors of integers and booleans, but this one is {self.dtype}",
            hints=("-x negates, 1 - x is the complement of a probability",),
        )
    return calls.call("bitwise_not", (self,), {})


def _array_first(name: str) -> Callable[[Any, Any], Any]:
    """`array op x`, or `number op x`: by the tensor made of it."""

    def operator(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (*_NUMBERS, np.ndarray, np.generic)):
            return NotImplemented
        return calls.call(name, (tensors.tensor(other), self), {})

    return operator


def _rdiv(self: Tensor, other: Any) -> Any:
    if isinstance(other, (np.ndarray, np.generic)):
        return tensors.tensor(np.asarray(other)) / self
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
    "__matmul__": _binary("matmul", tensor="", scalar=""),
    "__and__": _binary("__and__"), "__or__": _binary("__or__"), "__xor__": _binary("__xor__"),
    "__rand__": _binary("__and__"), "__ror__": _binary("__or__"), "__rxor__": _binary("__xor__"),
    "__lshift__": _binary("__lshift__"), "__rshift__": _binary("__rshift__"),
    "__eq__": _binary("eq"), "__ne__": _binary("ne"), "__lt__": _binary("lt"), "__le__": _binary("le"),
    "__gt__": _binary("gt"), "__ge__": _binary("ge"),
    "__neg__": _unary("neg"), "__pos__": _unary("positive"), "__abs__": _unary("abs"),
    "__invert__": _invert,
    "__iadd__": _inplace("add_"), "__isub__": _inplace("sub_"), "__imul__": _inplace("mul_"),
    "__itruediv__": _inplace("div_"), "__ifloordiv__": _inplace("floor_divide_"),
    "__imod__": _inplace("remainder_"), "__ipow__": _inplace("pow_"), "__iand__": _inplace("bitwise_and_"),
    "__ior__": _inplace("bitwise_or_"), "__ixor__": _inplace("bitwise_xor_"),
    "__ilshift__": _inplace("bitwise_left_shift_"), "__irshift__": _inplace("bitwise_right_shift_"),
    "__rmatmul__": _array_first("matmul"),
    "__rlshift__": _array_first("__lshift__"),
    "__rrshift__": _array_first("__rshift__"),
    "__getitem__": indexing.read, "__setitem__": indexing.write,
}  # fmt: skip


class _Method:
    """A method that nobody has asked for yet: it puts the operator's function in its place."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Tensor | None, kind: type) -> Any:
        setattr(Tensor, self.name, calls.method(self.name))
        return getattr(kind if instance is None else instance, self.name)


def _bind_methods() -> None:
    """All operators that are methods, and those that will be."""
    table.NEW.append(_bind)
    for entry in table.entries():
        _bind(entry)


def _bind(entry: table.Op) -> None:
    name = entry.name.removeprefix("aten::")
    if "method" in entry.variants and name not in vars(Tensor):
        setattr(Tensor, name, _Method(name))


def _function(name: str) -> Callable[..., Any]:
    """The operator `name` as a function that takes the tensor first; raises AttributeError when it is no method."""
    if not _is_method(name):
        methods = filter(_is_method, (known.removeprefix("aten::") for known in table.names()))
        hint = "".join(f"; {h}" for h in did_you_mean(name, {*methods, *vars(Tensor)}))
        raise AttributeError(f"'Tensor' object has no attribute or method '{name}'{hint}")
    return calls.method(name)


def _is_method(name: str) -> bool:
    return any("method" in op.variants for op in table.overloads(f"aten::{name}"))


for _name, _value in _SPECIAL.items():
    setattr(Tensor, _name, _value)
_permuted: Final = _special("def special(self, dims): return run(self, dims)", run="aten::permute")
tensors.bind(calls.call, _bind_methods, _function, printing.tensor_repr, _permuted)
