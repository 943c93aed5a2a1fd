"""Parameters of operators, and the conversion of Python values to them.

In: an argument of a schema.  Out: a `Parameter`: its default, and two conversions, one for values of just the declared
type, one with all that schemas allow besides (a number for a list of them, a 0-dim tensor for a number, an int for a
float).  A conversion gives `REFUSED` for what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values.ivalue import Object
from engine.aten.values.parameter import Parameter as MarkedParameter
from engine.aten.values.tensor import Tensor
from engine.aten.values.traced import float_of, int_of, is_traced, number_of
from engine.lang import scalars
from engine.lang.records import dataclass
from engine.lang.schema import Argument
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    VarType,
    unwrap_optional,
)  # fmt: skip

REFUSED: Final = object()
Converter = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a schema, ready to take values."""

    name: str
    type: Type
    default: Any
    kwarg_only: bool
    strict: Converter
    lenient: Converter
    broadcast_ints: int
    """The length of the list that an int stands for; 0 if it stands for itself."""
    declared: str = ""
    """The schema's name of an int that stands for a dtype, a layout and the like."""


def parameters_of(op: Op) -> tuple[Parameter, ...]:
    """The operator's parameters in schema order."""
    found = _parameters.get(op)
    if found is None:
        found = _parameters[op] = tuple(map(_parameter, op.schema.arguments))
    return found


_parameters: Final[dict[Op, tuple[Parameter, ...]]] = {}


_OTHER_NAMES: Final = {"self": ("input", "x"), "dim": ("axis",), "keepdim": ("keepdims",), "other": ("x2",)}
"""Keywords that Python programs may use for an argument besides its name in the schema."""


def keyword_of(parameter: Parameter, kwargs: Mapping[str, Any]) -> str | None:
    """The keyword among these that stands for the parameter."""
    if parameter.name in kwargs:
        return parameter.name
    return next((name for name in _OTHER_NAMES.get(parameter.name, ()) if name in kwargs), None)


def is_identity(type: Type, value: Any) -> bool:
    """True if all values of this value's Python type are passed unchanged."""
    if isinstance(type, OptionalType):
        return value is None or is_identity(type.element, value)
    if isinstance(type, VarType) or type is ANY:
        return True
    return value.__class__ in _THEMSELVES.get(type, ())


def is_size(value: Any) -> bool:
    """True if it can stand for a number in a list of sizes; those are tensors while a program is traced."""
    if isinstance(value, Tensor):
        return value.array.size == 1 and (is_traced() or value.dtype.category == "int")
    return type(value) is int


def element_of(type: Type) -> Type | None:
    return type.element if isinstance(type, ListType) else None


def _parameter(argument: Argument) -> Parameter:
    default = argument.default
    if isinstance(default, tuple):
        default = list(default)
    if isinstance(argument.type, ListType) and argument.broadcast and isinstance(default, int):
        default = [default] * argument.broadcast
    strict = _strict(argument.type, argument.declared)
    lenient = _lenient(argument, strict)
    count = _broadcast_ints(argument)
    return Parameter(
        argument.name, argument.type, default, argument.kwarg_only, strict, lenient, count, argument.declared
    )


def _broadcast_ints(argument: Argument) -> int:
    type = unwrap_optional(argument.type)
    return argument.broadcast or 0 if element_of(type) == INT else 0


def _strict(type: Type, declared: str = "") -> Converter:
    """Takes values of the type, refuses others."""
    if isinstance(type, OptionalType):
        inner = _strict(type.element, declared)
        return lambda v: None if v is None else inner(v)
    if isinstance(type, ListType):
        return _list_of(_strict(type.element), _PLAIN.get(type.element))
    if isinstance(type, TensorType):
        return lambda v: v if isinstance(v, Tensor) else REFUSED
    if isinstance(type, (TupleType, DictType)):
        kind = tuple if isinstance(type, TupleType) else dict
        return lambda v: v if isinstance(v, kind) else REFUSED
    if isinstance(type, VarType) or type is ANY:
        return lambda v: v
    if isinstance(type, ClassType):
        return _instance_of(type)
    if declared.rstrip("?") in _WORDS:
        return _word(_WORDS[declared.rstrip("?")])
    return _SIMPLE.get(type, lambda v: REFUSED)


def _instance_of(type: ClassType) -> Converter:
    """Takes objects of the class, also as Python programs see them."""

    def convert(value: Any) -> Any:
        inner = getattr(value, "_ivalue", value)
        return inner if isinstance(inner, Object) and inner.type is type else REFUSED

    return convert


def plain_element(of: Type) -> type[Any] | None:
    """The Python type of elements of such a list that need no conversion."""
    listed = unwrap_optional(of)
    return _PLAIN.get(listed.element) if isinstance(listed, ListType) else None


def _list_of(item: Converter, plain: type | None = None) -> Converter:
    """`plain` is the type of elements that need no conversion."""
    only = {plain}

    def convert(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return REFUSED
        if set(map(type, value)) == only:
            return list(value)
        items = [item(v) for v in value]
        return REFUSED if any(v is REFUSED for v in items) else items

    return convert


def _lenient(argument: Argument, strict: Converter) -> Converter:
    """The strict conversion, then those that schemas allow besides."""
    type = unwrap_optional(argument.type)
    if isinstance(type, ListType) and argument.broadcast:
        one, count = _strict(type.element), argument.broadcast
        strict = _or_else(strict, lambda v: REFUSED if one(v) is REFUSED else [one(v)] * count)
    if element_of(type) == INT:
        listed = _or_else(strict, _list_of(_or_else(_int, _size)))
        count = argument.broadcast or 0
        return _or_else(listed, lambda v: REFUSED if not count or _size(v) is REFUSED else [_size(v)] * count)
    if isinstance(type, ListType):
        return strict
    if type == FLOAT:
        return _or_else(strict, lambda v: float_of(v) if isinstance(v, (int, np.number)) or _is_number(v) else REFUSED)
    if type == INT:
        return _or_else(strict, _size if argument.declared.startswith("SymInt") else _any_int)
    if type == NUMBER:
        return _or_else(strict, _any_number)
    if type == BOOL:
        return _or_else(strict, lambda v: bool(v) if isinstance(v, np.bool_) else REFUSED)
    return strict


def _size(value: Any) -> Any:
    if isinstance(value, np.integer):
        return int(value)
    return int_of(value) if is_size(value) else REFUSED


def _is_number(value: Any) -> bool:
    """True if the value is a tensor that can stand for a number: one without dimensions and without a gradient."""
    return isinstance(value, Tensor) and value.array.ndim == 0 and not value.requires_grad


def _any_int(value: Any) -> Any:
    if isinstance(value, Tensor):
        return int_of(value) if _is_number(value) and value.dtype.category == "int" else REFUSED
    return int(value) if isinstance(value, np.integer) else REFUSED


def _any_number(value: Any) -> Any:
    if isinstance(value, Tensor):
        return number_of(value) if _is_number(value) else REFUSED
    return value.item() if isinstance(value, np.generic) else REFUSED


def _or_else(first: Converter, second: Converter) -> Converter:
    def convert(value: Any) -> Any:
        result = first(value)
        return second(value) if result is REFUSED else result

    return convert


def _int(value: Any) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) else REFUSED


def _word(kind: Any) -> Converter:
    """A value that programs use as a number; composite operators pass the number on."""
    return lambda v: v.number if isinstance(v, kind) else _int(v)


_WORDS: Final[dict[str, Any]] = {
    "ScalarType": scalars.dtype, "Layout": scalars.layout, "MemoryFormat": scalars.memory_format,
}  # fmt: skip
"""Declarations of ints in schemas that Python programs spell otherwise."""


def _device(value: Any) -> Any:
    if isinstance(value, str) or type(value) is int:
        return scalars.device(value)  # type: ignore[arg-type]
    return value if isinstance(value, scalars.device) else REFUSED


def _only(*kinds: type) -> Converter:
    return lambda v: v if isinstance(v, kinds) else REFUSED


_SIMPLE: Final[dict[Type, Converter]] = {
    INT: _int,
    FLOAT: _only(float),
    COMPLEX: _only(complex),
    BOOL: _only(bool),
    STR: _only(str),
    NUMBER: _only(int, float, complex),
    DEVICE: _device,
    GENERATOR: lambda v: v,
    NONE: lambda v: v if v is None else REFUSED,
}
_THEMSELVES: Final[dict[Type, tuple[type, ...]]] = {
    TENSOR: (Tensor, MarkedParameter), INT: (int,), FLOAT: (float,), BOOL: (bool,), STR: (str,), COMPLEX: (complex,),
    NUMBER: (int, float, complex, bool),
}  # fmt: skip
"""Python types whose values a conversion leaves alone."""
_PLAIN: Final[dict[Type, type]] = {TENSOR: Tensor, INT: int, FLOAT: float, BOOL: bool}
