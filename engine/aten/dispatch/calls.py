"""Calling operators from Python values: overload choice, keyword arguments, defaults.

In: an operator's name and Python arguments.  Out: its result.  The overloads are tried in the table's
order, first with values of just the declared types, then with the conversions that schemas allow
(a number for a list of them, a 0-dim tensor for a number, an int for a float).  What was found is remembered, see
`overload_cache`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.aten.devices.pinned import pin_memory
from engine.aten.dispatch import table
from engine.aten.dispatch.call_plan import Implemented, gathers_ints, plan_for
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.overload_cache import cached
from engine.aten.dispatch.parameters import REFUSED, element_of, is_size, keyword_of, parameters_of
from engine.aten.dispatch.results import python_result
from engine.aten.dispatch.wrapping import store_out
from engine.aten.values import promotion
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.schema import NO_DEFAULT
from engine.lang.types import INT, ListType

if TYPE_CHECKING:
    from engine.aten.dispatch import mismatch
else:
    mismatch = deferred("engine.aten.dispatch.mismatch")


def call(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run the overload of `aten::name` that takes the arguments; raises ArgumentError when none does."""
    return operator(name)(*args, **kwargs)


def call_function(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The same for Python programs, which see `Size`s and named tuples."""
    return _for_programs(name)(*args, **kwargs)


def call_method(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The same where the first argument is the tensor whose method is called: it is the schema's `self`."""
    return method(name)(*args, **kwargs)


@cache
def operator(name: str) -> Callable[..., Any]:
    """`call` of one name."""
    return _caller(name, is_method=False, for_python=False)


def function(name: str, makes_tensors: bool = False) -> Callable[..., Any]:
    """`call_function` of one name, a new function for each use of this.

    What `makes_tensors` may be asked, by `requires_grad` and `pin_memory`, for such.
    """
    return _caller(name, is_method=False, for_python=True, makes_tensors=makes_tensors)


_for_programs: Final = cache(function)


@cache
def method(name: str) -> Callable[..., Any]:
    """`call_method` of one name."""
    return _caller(name, is_method=True, for_python=True)


def _caller(name: str, is_method: bool, for_python: bool, makes_tensors: bool = False) -> Callable[..., Any]:
    def resolve(args: tuple[Any, ...], kwargs: Mapping[str, Any], build: bool) -> tuple[Any, Implemented | None, bool]:
        if makes_tensors and not kwargs.keys().isdisjoint(_OPTIONS):
            return _with_options(function, args, kwargs), None, False
        if is_method and name == "to" and len(args) > 1 and type(args[1]) is int:  # a device, no dtype
            return method(name)(args[0], _numbered(args[1]), *args[2:], **kwargs), None, False
        if for_python and type(kwargs.get("out")) in (tuple, list):
            return _into_several(name, args, kwargs, is_method), None, False
        if for_python and not is_method and name in _NUMBER_FIRST and _begin_with_number(args, kwargs):
            first = number_beside(args[0], args[1] if len(args) > 1 else kwargs["other"])
            return _for_programs(name)(first, *args[1:], **kwargs), None, False
        op, values, lenient, is_sure = _choose(name, args, kwargs, is_method, for_python)
        if for_python and op.qualified_name in _INTO_ANY:
            return _into_any(op, values), None, False
        result = _for_python(op, values) if for_python else op.run(*values)
        plan = _plan(op, args, kwargs, lenient, is_method, for_python) if build else None
        return result, plan, not is_sure

    function = cached(resolve)
    function.__name__ = function.__qualname__ = name
    return function


_NUMBERS: Final = (int, float, complex)
_NUMBER_FIRST: Final = frozenset("add sub mul div subtract multiply divide true_divide floor_divide".split())
"""Functions of two tensors for whose first one Python programs may write a number, too."""


def _begin_with_number(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return bool(args) and isinstance(args[0], _NUMBERS) and (len(args) > 1 or "other" in kwargs)


def number_beside(value: complex, other: Any) -> Tensor:
    """The number as a tensor of the dtype in which it is computed with the other operand."""
    d = promotion.result_type((value, other.array if isinstance(other, Tensor) else other))
    return Tensor(np.asarray(promotion.rounded(value, d)).astype(d))


_numbered: Final[Callable[[Any], scalars.device]] = scalars.device
_OPTIONS: Final = ("pin_memory", "requires_grad")


def _with_options(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A new tensor in pinned memory, or one that requires grad, where the arguments ask for that."""
    made = function(*args, **{name: value for name, value in kwargs.items() if name not in _OPTIONS})
    if kwargs.get("pin_memory"):
        made = pin_memory(made)
    if kwargs.get("requires_grad"):
        made.requires_grad = True
    return made


_INTO_ANY: Final = frozenset(
    f"aten::{name}_out"
    for name in ("add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar", "div.Scalar_mode", "floor_divide.Scalar")
)
"""Operators whose number Python programs take for a tensor: the result is converted to the dtype of `out`."""


def _into_any(op: Op, values: list[Any]) -> Any:
    *given, out = values
    records = HOOKS.trace is not None or any(isinstance(value, Tensor) and value.requires_grad for value in values)
    if op.functional is None or records:
        return op.run(*values)
    store_out(out, op.functional.run(*given).array)
    return out


def _into_several(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_method: bool) -> Any:
    """A call with a tuple of tensors as `out`, one for each result; raises ArgumentError when no overload fits."""
    outs, rest = kwargs["out"], {key: value for key, value in kwargs.items() if key != "out"}
    candidates = _about_tensors(name)
    for lenient in (False, True):
        for op in candidates:
            written = [a.name for a in op.schema.arguments if a.is_write and a.kwarg_only]
            if len(written) != len(outs):
                continue
            values = _match(op, args, rest | dict(zip(written, outs, strict=True)), lenient, is_method)
            if values is not None:
                return _for_python(op, values)
    raise mismatch.no_overload(name, candidates, args, kwargs, is_method)


def _plan(
    op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], lenient: bool, is_method: bool, for_python: bool
) -> Implemented | None:
    place = (op.schema.index_of("self") if is_method else 0) or 0
    moved = (*args[1 : place + 1], args[0], *args[place + 1 :]) if place else args
    gathered = None
    if _with_gathered_list(op, moved) is not moved:
        gathered = gathers_ints(op)
        if gathered is None or any(type(size) is not int for size in moved[gathered:]):
            return None
    return plan_for(op, args, kwargs, lenient, place, gathered, for_python)


def call_overload(op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run this overload for a Python program; raises ArgumentError when it does not take the arguments."""
    for lenient in (False, True):
        values = _match(op, args, kwargs, lenient, is_method=False)
        if values is not None:
            return _for_python(op, values)
    raise mismatch.no_overload(op.name.removeprefix("aten::"), [op], args, kwargs)


def _for_python(op: Op, values: list[Any]) -> Any:
    result, convert = op.run(*values), python_result(op)
    return result if convert is None else convert(result)


def _choose(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_method: bool, for_python: bool
) -> tuple[Op, list[Any], bool, bool]:
    """The overload, its arguments, whether they had to be converted, and whether no other could have been chosen
    for arguments of these types, whatever is in the lists among them."""
    candidates = _about_tensors(name) if for_python else table.overloads(f"aten::{name}")
    for lenient in (False, True):
        for i, op in enumerate(candidates):
            values = _match(op, args, kwargs, lenient, is_method)
            if values is not None:
                has_lists = any(isinstance(v, (list, tuple)) for v in (*args, *kwargs.values()))
                return op, values, lenient, not has_lists or (i == 0 and not lenient)
    raise mismatch.no_overload(name, candidates, args, kwargs, is_method)


def _about_tensors(name: str) -> Sequence[Op]:
    """The overloads that Python programs can call: those on tensors, where there are such."""
    every = table.overloads(f"aten::{name}")
    return [op for op in every if "Tensor" in op.text] or every


def _match(
    op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], lenient: bool, is_method: bool
) -> list[Any] | None:
    """The arguments in schema order, converted, or None if they do not fit."""
    parameters = parameters_of(op)
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
        elif kwargs and (keyword := keyword_of(parameter, kwargs)) is not None:
            value = kwargs[keyword]
            used += 1
        elif parameter.default is not NO_DEFAULT:
            values.append(parameter.default)
            continue
        else:
            return None
        value = (parameter.lenient if lenient else parameter.strict)(value)
        if value is REFUSED:
            return None
        values.append(value)
    return values if used == len(kwargs) else None


def _with_gathered_list(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A list spelled as several numbers, like `x.view(2, 3)`, gathered where it is the last positional argument."""
    arguments = op.schema.arguments
    place = next((i for i, a in enumerate(arguments) if isinstance(a.type, ListType)), None)
    if place is None or len(args) <= place or any(not a.kwarg_only for a in arguments[place + 1 :]):
        return args
    if arguments[place].broadcast is not None or not all(map(is_size, args[place:])):
        return args
    if any(type(a) is not int for a in args[place:]) and element_of(arguments[place].type) != INT:
        return args
    return (*args[:place], list(args[place:]))
