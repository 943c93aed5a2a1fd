"""Call plans: calls of operators as functions of just the arguments that such calls have.

In: an operator, and the arguments of a call that went to it.  Out: a plan for all calls with arguments of these types:
conversions and defaults are written down, nothing is looked up.

A plan's conversions look at values, too, and may refuse: `PlanRefused`; then the choice is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from engine.aten.dispatch.compile import safe
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.parameters import (
    REFUSED,
    Parameter,
    is_identity,
    keyword_of,
    parameters_of,
    plain_element,
)
from engine.aten.dispatch.results import python_result
from engine.lang.generated import define
from engine.lang.schema import NO_DEFAULT
from engine.lang.types import INT, ListType


class PlanRefused(Exception):
    """The types fit, a value does not."""


class Implemented(Protocol):
    """A call plan, or an operator: `impl` takes the values given by position, then those given by name."""

    @property
    def impl(self) -> Callable[..., Any]: ...


class CallPlan:
    """The function of calls with arguments of certain types; it reads the operator's slot each time."""

    __slots__ = ("impl",)

    def __init__(self, impl: Callable[..., Any]) -> None:
        self.impl = impl


def plan_for(
    op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], lenient: bool, moved: int, gathered: int | None,
    for_python: bool,
) -> Implemented | None:  # fmt: skip
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
    made = _Conversions(lenient)
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


class _Conversions:
    """The lines of a plan before it runs the operator."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.lines: list[str] = []
        self.environment: dict[str, Any] = {"_Refused": PlanRefused, "_refused": REFUSED}

    def converted(self, parameter: Parameter, name: str, value: Any) -> str:
        """The argument as the plan passes it; values of the declared type are passed unchanged."""
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
    op: Op, parameters: list[str], made: _Conversions, passed: list[str], convert: Callable[[Any], Any] | None
) -> Implemented:
    """The plan as a function; the operator itself where there is nothing to convert."""
    if convert is None and parameters == passed and not made.lines:
        return op
    environment = made.environment | {"op": op, "_convert": convert}
    file = f"<{op.qualified_name}>"
    op.run  # noqa: B018  (which settles whether its text is there)
    if convert is None and op.inline is not None:
        assigned = f"{', '.join(safe(a.name) for a in op.schema.arguments)} = {', '.join(passed)}"
        lines = [*made.lines, assigned, *op.inline.lines]
        return CallPlan(define("plan", parameters, lines, {**op.inline.environment, **environment}, file))
    result = f"op.impl({', '.join(passed)})"
    result = result if convert is None else f"_convert({result})"
    return CallPlan(define("plan", parameters, [*made.lines, f"return {result}"], environment, file))


def gathers_ints(op: Op) -> int | None:
    """The place of the list that may be spelled as several numbers, if the operator takes one of ints."""
    arguments = op.schema.arguments
    place = next((i for i, a in enumerate(arguments) if isinstance(a.type, ListType)), None)
    if place is None or any(not a.kwarg_only for a in arguments[place + 1 :]):
        return None
    type = arguments[place].type
    return place if isinstance(type, ListType) and type.element == INT else None
