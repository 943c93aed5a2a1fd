"""Calling operators from Python values: overload choice, keyword arguments, defaults.

In: an operator's name and Python arguments.  Out: its result.  The overloads are tried in the table's
order, first with values of just the declared types, then with the conversions that schemas allow
(a number for a list of them, a 0-dim tensor for a number, an int for a float).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.aten import op as table
from engine.aten.dispatch import HOOKS
from engine.aten.errors import describe
from engine.aten.op import Op
from engine.aten.results import python_result
from engine.aten.tensor import Tensor
from engine.aten.traced import int_of, number_of
from engine.lang import scalars
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.schema import NO_DEFAULT, Argument
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
    DictType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    VarType,
)  # fmt: skip

_REFUSED: Final = object()
Converter = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    default: Any
    kwarg_only: bool
    strict: Converter
    lenient: Converter


def call(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run the overload of `aten::name` that takes the arguments; raises ArgumentError when none does."""
    op, values = _choose(name, args, kwargs, is_method=False)
    return op.run(*values)


def call_function(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The same for Python programs, which see `Size`s and named tuples."""
    return _for_python(*_choose(name, args, kwargs, is_method=False))


def call_method(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The same where the first argument is the tensor whose method is called: it is the schema's `self`."""
    return _for_python(*_choose(name, args, kwargs, is_method=True))


def call_overload(op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run this overload for a Python program; raises ArgumentError when it does not take the arguments."""
    for lenient in (False, True):
        values = _match(op, args, kwargs, lenient, is_method=False)
        if values is not None:
            return _for_python(op, values)
    raise _no_overload(op.name.removeprefix("aten::"), [op], args, kwargs)


def _for_python(op: Op, values: list[Any]) -> Any:
    result, convert = op.run(*values), python_result(op)
    return result if convert is None else convert(result)


def _choose(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_method: bool) -> tuple[Op, list[Any]]:
    kinds = (name, is_method, tuple(map(_kind, args)), tuple((k, _kind(v)) for k, v in kwargs.items()))
    chosen = _chosen.get(kinds)
    if chosen is not None:
        values = _match(chosen[0], args, kwargs, chosen[1], is_method)
        if values is not None:
            return chosen[0], values
    candidates = table.overloads(f"aten::{name}")
    for lenient in (False, True):
        for op in candidates:
            values = _match(op, args, kwargs, lenient, is_method)
            if values is not None:
                _chosen[kinds] = op, lenient
                return op, values
    raise _no_overload(name, candidates, args, kwargs)


_chosen: Final[dict[Any, tuple[Op, bool]]] = {}
"""The overload that was found for arguments of these types; the types decide."""


def _kind(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value), frozenset(map(_kind, value))
    return type(value)


def _no_overload(
    name: str, candidates: Sequence[Op], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> ArgumentError:
    if not candidates:
        known = (known.removeprefix("aten::") for known in table.names())
        return ArgumentError(f"there is no operator '{name}'", hints=did_you_mean(name, known))
    given = ", ".join([*map(describe, args), *(f"{k}={describe(v)}" for k, v in kwargs.items())])
    forms = tuple(f"it takes {op.text.removeprefix('aten::')}" for op in candidates)
    return ArgumentError(f"{name}() received an invalid combination of arguments: ({given})", hints=forms)


_parameters: dict[Op, tuple[_Parameter, ...]] = {}


def _match(
    op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], lenient: bool, is_method: bool
) -> list[Any] | None:
    """The arguments in schema order, converted, or None if they do not fit."""
    parameters = _parameters.get(op)
    if parameters is None:
        parameters = _parameters[op] = tuple(map(_parameter, op.schema.arguments))
    place = op.schema.index_of("self") if is_method else 0
    if place:
        args = (*args[1 : place + 1], args[0], *args[place + 1 :])
    args = _with_gathered_list(op, args)
    positional = sum(not p.kwarg_only for p in parameters)
    if len(args) > positional or len(args) + len(kwargs) > len(parameters):
        return None
    values: list[Any] = []
    used = 0
    for i, parameter in enumerate(parameters):
        if i < len(args):
            value = args[i]
        elif parameter.name in kwargs:
            value = kwargs[parameter.name]
            used += 1
        elif parameter.default is not NO_DEFAULT:
            values.append(parameter.default)
            continue
        else:
            return None
        value = (parameter.lenient if lenient else parameter.strict)(value)
        if value is _REFUSED:
            return None
        values.append(value)
    return values if used == len(kwargs) else None


def _with_gathered_list(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A list spelled as several numbers, like `x.view(2, 3)`, gathered where it is the last positional argument."""
    arguments = op.schema.arguments
    place = next((i for i, a in enumerate(arguments) if isinstance(a.type, ListType)), None)
    if place is None or len(args) <= place or any(not a.kwarg_only for a in arguments[place + 1 :]):
        return args
    if arguments[place].broadcast is not None or not all(map(_is_size, args[place:])):
        return args
    if any(type(a) is not int for a in args[place:]) and element_of(arguments[place].type) != INT:
        return args
    return (*args[:place], list(args[place:]))


def _is_size(value: Any) -> bool:
    """Sizes are tensors while a program is traced."""
    return type(value) is int or (HOOKS.trace is not None and isinstance(value, Tensor))


def element_of(type: Type) -> Type | None:
    return type.element if isinstance(type, ListType) else None


def _parameter(argument: Argument) -> _Parameter:
    default = argument.default
    if isinstance(default, tuple):
        default = list(default)
    if isinstance(argument.type, ListType) and argument.broadcast and isinstance(default, int):
        default = [default] * argument.broadcast
    strict = _strict(argument.type, argument.declared)
    lenient = _lenient(argument, strict)
    return _Parameter(argument.name, default, argument.kwarg_only, strict, lenient)


def _strict(type: Type, declared: str = "") -> Converter:
    """Takes values of the type, refuses others."""
    if isinstance(type, OptionalType):
        inner = _strict(type.element, declared)
        return lambda v: None if v is None else inner(v)
    if isinstance(type, ListType):
        return _list_of(_strict(type.element))
    if isinstance(type, TensorType):
        return lambda v: v if isinstance(v, Tensor) else _REFUSED
    if isinstance(type, (TupleType, DictType)):
        kind = tuple if isinstance(type, TupleType) else dict
        return lambda v: v if isinstance(v, kind) else _REFUSED
    if isinstance(type, VarType) or type is ANY:
        return lambda v: v
    return _SIMPLE.get(type, lambda v: _REFUSED)


def _list_of(item: Converter) -> Converter:
    def convert(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return _REFUSED
        items = [item(v) for v in value]
        return _REFUSED if any(v is _REFUSED for v in items) else items

    return convert


def _lenient(argument: Argument, strict: Converter) -> Converter:
    """The strict conversion, then those that schemas allow besides."""
    type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
    if isinstance(type, ListType) and argument.broadcast:
        one, count = _strict(type.element), argument.broadcast
        strict = _or_else(strict, lambda v: _REFUSED if one(v) is _REFUSED else [one(v)] * count)
    if element_of(type) == INT:
        return _or_else(strict, _list_of(_or_else(_int, lambda v: int_of(v) if _is_size(v) else _REFUSED)))
    if isinstance(type, ListType):
        return strict
    if type == FLOAT:
        return _or_else(strict, lambda v: float(v) if isinstance(v, (int, np.number, Tensor)) else _REFUSED)
    if type == INT:
        return _or_else(strict, _any_int)
    if type == NUMBER:
        return _or_else(strict, _any_number)
    if type == BOOL:
        return _or_else(strict, lambda v: bool(v) if isinstance(v, (np.bool_, Tensor)) else _REFUSED)
    return strict


def _any_int(value: Any) -> Any:
    if isinstance(value, Tensor):
        return int_of(value)
    return int(value) if isinstance(value, np.integer) else _REFUSED


def _any_number(value: Any) -> Any:
    if isinstance(value, Tensor):
        return number_of(value)
    return value.item() if isinstance(value, np.generic) else _REFUSED


def _or_else(first: Converter, second: Converter) -> Converter:
    def convert(value: Any) -> Any:
        result = first(value)
        return second(value) if result is _REFUSED else result

    return convert


def _int(value: Any) -> Any:
    if isinstance(value, scalars.dtype):
        return value.number
    return value if isinstance(value, int) and not isinstance(value, bool) else _REFUSED


def _device(value: Any) -> Any:
    if isinstance(value, str):
        return scalars.device(value)
    return value if isinstance(value, scalars.device) else _REFUSED


def _only(*kinds: type) -> Converter:
    return lambda v: v if isinstance(v, kinds) else _REFUSED


_SIMPLE: Final[dict[Type, Converter]] = {
    INT: _int,
    FLOAT: _only(float),
    COMPLEX: _only(complex),
    BOOL: _only(bool),
    STR: _only(str),
    NUMBER: _only(int, float, complex),
    DEVICE: _device,
    GENERATOR: lambda v: v,
    NONE: lambda v: v if v is None else _REFUSED,
}
