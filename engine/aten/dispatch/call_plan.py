"""Plans: calls of operators as functions of just the arguments that such calls have.

In: an operator, and the arguments of a call that went to it.  Out: a `Plan` for all calls with arguments of these
types: what is converted and what is filled in is written down, nothing is looked up.

A plan's conversions look at values, too, and may refuse: `PlanRefused`; then the choice is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from engine.aten.dispatch.body import safe
from engine.aten.dispatch.compile import compiled, written
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.parameters import REFUSED, Parameter, is_identity, keyword_of, parameters_of, plain_element
from engine.aten.dispatch.results import python_result
from engine.lang.schema import NO_DEFAULT
from engine.lang.types import INT, ListType


class PlanRefused(Exception):
    """The types fit, a value does not."""


class Plan(NamedTuple):
    """A function of the values that were given by name after the others, in their order.

    Where it is one function with what the operator does, these are its `lines`, in terms of `_0`, `_1` ... and the
    names, and what they know.
    """

    run: Callable[..., Any]
    lines: Sequence[str] | None = None
    environment: Mapping[str, Any] = MappingProxyType({})


def plan_for(
    op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], lenient: bool, moved: int, gathered: int | None,
    for_python: bool,
) -> Plan | None:  # fmt: skip
    """The plan of a call that went to `op`; None where Python cannot spell it.

    `moved` is the place in the schema of a method's tensor; from position `gathered` on the arguments are a list.
    """
    keywords = list(kwargs)
    if not all(name.isidentifier() and name not in ("from", "lambda") for name in keywords):
        return None
    values = [(f"_{i}", value) for i, value in enumerate(args)]
    names = [name for name, _ in values]
    if moved:
        values = [*values[1 : moved + 1], values[0], *values[moved + 1 :]]
    made = _Made(lenient)
    passed: list[str] = []
    for i, parameter in enumerate(parameters_of(op)):
        if gathered is not None and i == gathered:
            if any(type(value) is not int for _, value in values[i:]):
                return None
            passed.append(f"[{', '.join(name for name, _ in values[i:])}]")
            values = values[:i]
        elif i < len(values):
            passed.append(made.converted(parameter, *values[i]))
        elif (keyword := keyword_of(parameter, kwargs)) is not None:
            passed.append(made.converted(parameter, keyword, kwargs[keyword]))
        elif parameter.default is NO_DEFAULT:
            return None
        else:
            made.environment[f"_default{i}"] = parameter.default
            passed.append(f"_default{i}")
    return _written(op, [*names, *keywords], made, passed, python_result(op) if for_python else None)


class _Made:
    """What a plan does before it runs the operator."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.lines: list[str] = []
        self.environment: dict[str, Any] = {"_Refused": PlanRefused, "_refused": REFUSED}

    def converted(self, parameter: Parameter, name: str, value: Any) -> str:
        """How the plan spells the argument; values of the declared type itself are passed as they are."""
        if is_identity(parameter.type, value):
            return name
        count = parameter.broadcast_ints
        if self.lenient and count and type(value) is int:
            return f"[{', '.join([name] * count)}]"
        made = f"_made_{name}"
        convert = f"_convert_{name}({name})"
        self.environment[f"_convert_{name}"] = parameter.lenient if self.lenient else parameter.strict
        plain = plain_element(parameter.type)
        if plain is not None and isinstance(value, (list, tuple)):
            self.environment[f"_only_{name}"] = frozenset({plain})
            convert = f"[*{name}] if _only_{name}.issuperset(map(type, {name})) else {convert}"
        self.lines += [f"{made} = {convert}", f"if {made} is _refused: raise _Refused"]
        return made


def _written(
    op: Op, parameters: list[str], made: _Made, passed: list[str], convert: Callable[[Any], Any] | None
) -> Plan:
    """The plan as a function, with what the operator does in it where that can be written there."""
    text = written(op) if convert is None else None
    if text is not None:
        assigned = [f"{', '.join(safe(a.name) for a in op.schema.arguments)} = {', '.join(passed)}"]
        lines = [*made.lines, *assigned, *text.lines]
        environment = {**text.environment, **made.environment}
        if parameters == passed and not made.lines:
            return Plan(op.run, lines, environment)
        return Plan(compiled("plan", parameters, lines, op, environment), lines, environment)
    if convert is None and parameters == passed and not made.lines:
        return Plan(op.run)
    made.environment["_run"] = op.run
    result = f"_run({', '.join(passed)})"
    if convert is not None:
        made.environment["_convert"] = convert
        result = f"_convert({result})"
    return Plan(compiled("plan", parameters, [*made.lines, f"return {result}"], op, made.environment))


def gathers_ints(op: Op) -> int | None:
    """Where the operator takes a list that may be spelled as several numbers, if it is a list of ints."""
    arguments = op.schema.arguments
    place = next((i for i, a in enumerate(arguments) if isinstance(a.type, ListType)), None)
    if place is None or any(not a.kwarg_only for a in arguments[place + 1 :]):
        return None
    type = arguments[place].type
    return place if isinstance(type, ListType) and type.element == INT else None
