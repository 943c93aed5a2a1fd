"""Why a call from Python fits no overload of an operator.

In: the overloads and the arguments.  Out: an `ArgumentTypeError` that names the operator, what was given with shapes
and dtypes, what is wrong about it for the overload that comes nearest, and the signatures there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.dispatch.errors import describe
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.parameters import REFUSED, Parameter, element_of, keyword_of, parameters_of
from engine.lang.errors import ArgumentError, ArgumentTypeError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.schema import NO_DEFAULT
from engine.lang.types import BOOL, FLOAT, INT, NUMBER, STR, TENSOR, ListType, OptionalType, Type

_MOST_SIGNATURES: Final = 6
"""So many signatures are shown."""


def no_overload(
    name: str, candidates: Sequence[Op], args: tuple[Any, ...], kwargs: Mapping[str, Any], is_method: bool = False
) -> ArgumentError:
    """The error for arguments that none of the candidates takes."""
    if not candidates:
        known = (known.removeprefix("aten::") for known in table.names())
        return ArgumentTypeError(f"there is no operator '{name}'", hints=did_you_mean(name, known))
    given = ", ".join([*map(describe, args), *(f"{k}={describe(v)}" for k, v in kwargs.items())])
    writes = "out" in kwargs
    fitting = [op for op in candidates if ("method" in op.variants or not is_method) and writes == _is_out(op)]
    shown = fitting or list(candidates)
    nearest = sorted(shown, key=lambda op: _distance(op, args, kwargs, is_method))
    reason = next(_problems(nearest[0], args, kwargs, is_method), _Problem(0, "")).text
    forms = tuple(f"it takes {signature(op, is_method)}" for op in nearest[:_MOST_SIGNATURES])
    message = f"{name}() received an invalid combination of arguments: ({given})"
    return ArgumentTypeError(f"{message}: {reason}" if reason else message, hints=forms)


@dataclass(frozen=True, slots=True)
class _Problem:
    weight: int
    """The heavier, the less likely is this the overload that was meant."""
    text: str


def _is_out(op: Op) -> bool:
    return any(a.is_write and a.kwarg_only for a in op.schema.arguments)


def _distance(op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_method: bool) -> int:
    return sum(problem.weight for problem in _problems(op, args, kwargs, is_method))


def _problems(op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_method: bool) -> Iterator[_Problem]:
    """The reason why the overload does not take the arguments."""
    parameters = parameters_of(op)
    own = op.schema.index_of("self") if is_method else None
    if own:
        args = (*args[1 : own + 1], args[0], *args[own + 1 :])
    gathers = _gathers(parameters)
    positional = len(parameters) if gathers is not None else sum(not p.kwarg_only for p in parameters)
    hidden = own is not None
    if len(args) > positional and gathers is None:
        most = positional - hidden
        yield _Problem(3, f"{most} positional argument{'s' * (most != 1)} at most, not {len(args) - hidden}")
    for name in kwargs:
        yield from _keyword_problems(name, parameters, len(args))
    for i, parameter in enumerate(parameters):
        position = i + 1 - (own is not None and own < i)
        if i < len(args) and not parameter.kwarg_only:
            value = list(args[i:]) if i == gathers and not isinstance(args[i], (list, tuple)) else args[i]
            yield from _value_problems(parameter, value, f" (position {position})")
        elif (keyword := keyword_of(parameter, kwargs)) is not None:
            yield from _value_problems(parameter, kwargs[keyword], "")
        elif parameter.default is NO_DEFAULT:
            yield _Problem(3, f"argument '{parameter.name}' (position {position}) is missing")


def _gathers(parameters: Sequence[Parameter]) -> int | None:
    """The place of the list that numbers without brackets are taken for."""
    last = next((i for i, p in enumerate(parameters) if element_of(p.type) == INT), None)
    if last is None or parameters[last].broadcast_ints or any(not p.kwarg_only for p in parameters[last + 1 :]):
        return None
    return last


def _keyword_problems(name: str, parameters: Sequence[Parameter], given: int) -> Iterator[_Problem]:
    place = next((i for i, p in enumerate(parameters) if keyword_of(p, {name: None})), None)
    if place is None:
        near = "".join(f"; {hint}" for hint in did_you_mean(name, (p.name for p in parameters)))
        yield _Problem(3, f"there is no argument '{name}'{near}")
    elif place < given and not parameters[place].kwarg_only:
        yield _Problem(3, f"argument '{name}' is given by position and by keyword")


def _value_problems(parameter: Parameter, value: Any, position: str) -> Iterator[_Problem]:
    if parameter.lenient(value) is not REFUSED:
        return
    wanted, found = type_words(parameter.type, parameter.declared), type(value).__name__
    if element_of(parameter.type) is not None and isinstance(value, (list, tuple)):
        wrong = next((i for i, each in enumerate(value) if parameter.lenient([each]) is REFUSED), None)
        if wrong is not None:
            found = f"{found} with {type(value[wrong]).__name__} at position {wrong}"
    yield _Problem(2, f"argument '{parameter.name}'{position} must be {wanted}, not {found}")


# -- signatures as Python programs see them


def signature(op: Op, is_method: bool = False) -> str:
    """`sum(int[1]? dim, bool keepdim=False, *, dtype=None)`."""
    text = op.text.removeprefix("aten::")
    return text.replace("(Tensor self, ", "(", 1) if is_method else text


_WORDS: Final[dict[Type, str]] = {
    TENSOR: "Tensor", INT: "int", FLOAT: "float", BOOL: "bool", STR: "str", NUMBER: "a number",
}  # fmt: skip
_DECLARED: Final = {"ScalarType": "a dtype", "Layout": "a layout", "MemoryFormat": "a memory format"}


def type_words(type: Type, declared: str = "") -> str:
    """The type as messages name it: `tuple of ints`."""
    word = _DECLARED.get(declared.rstrip("?"))
    if word is not None:
        return word
    if isinstance(type, OptionalType):
        return f"{type_words(type.element)} or None"
    if isinstance(type, ListType):
        return f"tuple of {type_words(type.element)}s"
    return _WORDS.get(type, str(type))
