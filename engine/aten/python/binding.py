"""The members of `Tensor` that layers above its class bring: special methods, methods of the table, and others.

In: tables of members (`bind`), the operator table.  Out: `Tensor` with them.  This module alone sets members of the
class.  A method of the table is resolved when first asked for: `x.sum(dim=0)` runs the overload of `aten::sum` that
fits.  An optimised implementation takes the place of a method when that is written (`HOOKS.native_member`) or with
`take`, and `give_back` restores it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.aten import autograd
from engine.aten.dispatch import calls, table
from engine.aten.dispatch.compose import LateOperator
from engine.aten.dispatch.op import Op
from engine.aten.python import indexing
from engine.aten.values import tensor as tensors
from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang import deferred
from engine.lang.errors import OperatorTypeError
from engine.lang.generated import define

if TYPE_CHECKING:
    from engine.aten.formatting import printing
else:
    printing = deferred.deferred("engine.aten.formatting.printing")

_NUMBERS: Final = (int, float, complex)


class _Late(NamedTuple):
    """A member that `write` makes when it is first asked for."""

    write: Callable[[], Any]


def _special(lines: Sequence[str], parameters: Sequence[str], **overloads: str) -> Callable[..., Any]:
    """A special method of these lines, in which the names of `overloads` stand for the operators."""
    environment: dict[str, Any] = {
        "Tensor": Tensor, "NUMBERS": frozenset({int, float, bool, complex}), "Number": _NUMBERS, "tensor": _of_array,
        "Array": (np.ndarray, np.generic), **{name: LateOperator(overload) for name, overload in overloads.items()},
    }  # fmt: skip
    file = f"<{' '.join(f'aten::{name}' for name in overloads.values())} operator>"
    return define("special", ["self", *parameters], lines, environment, file)


def _of_array(array: Any) -> Tensor:
    return tensors.tensor(np.asarray(array))


def _binary(name: str, *rest: Any, tensor: str = "Tensor", scalar: str = "Scalar") -> _Late:
    """`x op y` where y is a tensor or a number (without `scalar`: no number); `rest` are the arguments after them."""
    more = "".join(f", {each!r}" for each in rest)
    lines = [
        f"if type(other) is Tensor: return with_tensor.op.impl(self, other{more})",
        f"if isinstance(other, Tensor): return with_tensor.op.impl(self, other{more})",
        f"if isinstance(other, Array): return with_tensor.op.impl(self, tensor(other){more})",
        "return NotImplemented",
    ]
    overloads = {"with_tensor": _qualified(name, tensor)}
    if scalar:
        are_numbers = "type(other) in NUMBERS or isinstance(other, Number)"
        lines.insert(1, f"if {are_numbers}: return with_number.op.impl(self, other{more})")
        overloads["with_number"] = _qualified(name, scalar)
    return _Late(partial(_special, lines, ["other"], **overloads))


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    """`number op x` by the overload that takes the number first, or by the tensor made of it."""

    def operator(self: Tensor, other: Any) -> Any:
        if isinstance(other, (np.ndarray, np.generic)):
            other = tensors.tensor(np.asarray(other))
        return calls.call(name, (other, self), {}) if isinstance(other, (*_NUMBERS, Tensor)) else NotImplemented

    return operator


def _qualified(name: str, overload: str) -> str:
    return f"{name}.{overload}" if overload else name


def _inplace(name: str) -> _Late:
    return _Late(partial(_written_inplace, name))


def _written_inplace(name: str) -> Callable[[Any, Any], Any]:
    operator = calls.operator(name)
    return lambda self, other: operator(self, other)


def _unary(name: str) -> _Late:
    return _Late(partial(_special, ["return run.op.impl(self)"], [], run=_qualified(name, "")))


def _invert(self: Tensor) -> Any:
    if self.array.dtype not in xp.INTEGRAL:
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
        return calls.call(name, (_beside(other, self), self), {})

    return operator


def _beside(value: Any, beside: Tensor) -> Tensor:
    """An array as a tensor; a number as one of the dtype in which both are computed."""
    if not isinstance(value, _NUMBERS):
        return tensors.tensor(value)
    return calls.number_beside(value, beside)


def _rdiv(self: Tensor, other: Any) -> Any:
    if isinstance(other, (np.ndarray, np.generic)):
        return tensors.tensor(np.asarray(other)) / self
    return self.reciprocal() * other if isinstance(other, _NUMBERS) else NotImplemented


_SPECIAL: Final[dict[str, Any]] = {
    "__add__": _binary("add", 1), "__radd__": _binary("add", 1),
    "__sub__": _binary("sub", 1), "__rsub__": _binary("rsub", 1),
    "__mul__": _binary("mul"), "__rmul__": _binary("mul"),
    "__truediv__": _binary("div"), "__rtruediv__": _rdiv,
    "__floordiv__": _binary("floor_divide", tensor=""), "__rfloordiv__": _array_first("floor_divide"),
    "__mod__": _binary("remainder"), "__rmod__": _reflected("remainder"),
    "__pow__": _binary("pow", tensor="Tensor_Tensor", scalar="Tensor_Scalar"), "__rpow__": _reflected("pow"),
    "__matmul__": _binary("matmul", tensor="", scalar=""),
    "__and__": _binary("__and__"), "__or__": _binary("__or__"), "__xor__": _binary("__xor__"),
    "__rand__": _reflected("bitwise_and"), "__ror__": _reflected("bitwise_or"), "__rxor__": _reflected("bitwise_xor"),
    "__lshift__": _binary("__lshift__"), "__rshift__": _binary("__rshift__"),
    "__eq__": _binary("eq"), "__ne__": _binary("ne"), "__lt__": _binary("lt"), "__le__": _binary("le"),
    "__gt__": _binary("gt"), "__ge__": _binary("ge"),
    "__neg__": _unary("neg"), "__pos__": _unary("positive"), "__abs__": _unary("abs"),
    "__invert__": _invert,
    "__iadd__": _inplace("add_"), "__isub__": _inplace("sub_"), "__imul__": _inplace("mul_"),
    "__itruediv__": _inplace("div_"), "__ifloordiv__": _inplace("floor_divide_"),
    "__imod__": _inplace("remainder_"), "__ipow__": _inplace("pow_"), "__iand__": _inplace("__iand__"),
    "__ior__": _inplace("__ior__"), "__ixor__": _inplace("__ixor__"),
    "__ilshift__": _inplace("__ilshift__"), "__irshift__": _inplace("__irshift__"),
    "__rmatmul__": _array_first("matmul"),
    "__rlshift__": _reflected("bitwise_left_shift"),
    "__rrshift__": _reflected("bitwise_right_shift"),
    "__getitem__": indexing.read, "__setitem__": indexing.write,
}  # fmt: skip


_WRITTEN: Final[dict[str, Any]] = {}
"""Late members as they were written, in Python."""


def bind(members: Mapping[str, Any]) -> None:
    """Give `Tensor` these members: methods, properties, constants."""
    for name, member in members.items():
        is_late = isinstance(member, _Late)
        setattr(Tensor, name, deferred.unwritten(Tensor, name, partial(_written, name, member)) if is_late else member)


def _written(name: str, late: _Late) -> Any:
    """The function or method that serves as the member from now on."""
    _WRITTEN[name] = python = late.write()
    native = HOOKS.native_member(name, python) if HOOKS.native_member is not None else None
    return python if native is None else native


def bind_table() -> None:
    """Give `Tensor` the methods of the operator table, and those of entries that are made later."""
    for name in table.methods():
        _bind_method(name)
    table.NEW.append(_bind_entry)


def _bind_entry(entry: Op) -> None:
    if "method" in entry.variants:
        _bind_method(entry.name.removeprefix("aten::"))


def _bind_method(name: str) -> None:
    if name not in vars(Tensor):
        bind({name: _Late(partial(calls.method, name))})


def member(name: str) -> Any:
    """The member in Python, resolved, whatever has taken its place; None if there is none."""
    found = deferred.member(Tensor, name)
    return _WRITTEN.get(name, found)


def written() -> dict[str, Any]:
    """The late members that were used so far, in Python."""
    return {**_WRITTEN}


def take(name: str, implementation: Any) -> None:
    """Let an implementation that does the same serve as a late member that was used."""
    assert name in _WRITTEN, f"nobody has used Tensor.{name}"
    setattr(Tensor, name, implementation)


def give_back(name: str) -> None:
    """Let the member in Python serve again, if something has taken its place."""
    if name in _WRITTEN:
        setattr(Tensor, name, _WRITTEN[name])


def _text(tensor: Tensor) -> str:
    return printing.tensor_repr(tensor)


bind(_SPECIAL)
bind(autograd.METHODS)
tensors.ABOVE.call = calls.call
tensors.ABOVE.text = _text
tensors.ABOVE.permute = _special(["return run.op.impl(self, dims)"], ["dims"], run="permute")
