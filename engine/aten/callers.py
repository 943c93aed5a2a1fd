"""Operators as Python functions that remember how they were called.

In: an operator's name.  Out: a function of Python arguments.  Which overload runs, what is converted and what is filled
in follows from the types of the arguments (of lists, from those of their elements), so it is found out once for each
combination of types (`calls` does that) and written as a function of just these arguments: a `Plan`.

A plan's conversions look at values, too, and may refuse: `PlanRefused`; then the choice is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.aten.dispatch import HOOKS
from engine.aten.op import Op
from engine.aten.parameters import REFUSED, Parameter, is_identity, keyword_of, parameters_of
from engine.aten.results import python_result
from engine.lang.schema import NO_DEFAULT
from engine.lang.types import INT, ListType

Plan = Callable[..., Any]
"""Takes the values that were given by name after the others, in their order."""
Slow = Callable[[tuple[Any, ...], Mapping[str, Any], bool], tuple[Any, Plan | None, bool]]
"""Calls without a plan: what comes out, a plan for such calls (if wanted), whether it depends on what is in lists."""
_NESTED: Final = (list, tuple)
_NONE: Final[Any] = object()
"""No argument."""


class PlanRefused(Exception):
    """The types fit, a value does not."""


def caller(slow: Slow) -> Callable[..., Any]:
    """The function that runs plans, and `slow` where there is none."""
    plans: dict[Any, Plan] = {}
    find, hooks = plans.get, HOOKS

    def call(a: Any = _NONE, b: Any = _NONE, c: Any = _NONE, /, *more: Any, **kwargs: Any) -> Any:
        # Most calls have one to three arguments without names; those go without a tuple of them.
        try:
            if more or kwargs or a is _NONE or hooks.trace is not None:
                pass
            elif b is _NONE:
                if (plan := find(type(a))) is not None:
                    return plan(a)
            elif c is _NONE:
                if (plan := find((type(a), type(b)))) is not None:
                    return plan(a, b)
            elif (plan := find((type(a), type(b), type(c)))) is not None:
                return plan(a, b, c)
        except PlanRefused:
            pass
        return call_any((*(each for each in (a, b, c) if each is not _NONE), *more), kwargs)

    def call_any(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if hooks.trace is not None:
            return slow(args, kwargs, False)[0]
        if kwargs:
            key: Any = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        else:
            key = type(args[0]) if len(args) == 1 else (*map(type, args),)
        plan = find(key)
        try:
            if plan is not None:
                return plan(*args, *kwargs.values())
        except PlanRefused:
            pass
        result, found, by_elements = slow(args, kwargs, True)
        _remember(plans, key, found or _no_plan, _kinds(*args, *kwargs.values()) if by_elements else None)
        return result

    return call


def _remember(plans: dict[Any, Plan], key: Any, plan: Plan, elements: Any) -> None:
    """Once a plan depends on what is in the lists, all for such calls do."""
    if elements is None and not hasattr(plans.get(key), "by_elements"):
        plans[key] = plan
        return
    if not hasattr(plans.get(key), "by_elements"):
        plans[key] = _by_elements({})
    plans[key].by_elements[elements] = plan  # type: ignore[attr-defined]


def _no_plan(*_: Any) -> Any:
    raise PlanRefused


def _by_elements(plans: dict[Any, Plan]) -> Plan:
    """The plan that chooses another one by what is in the lists."""

    def choose(*values: Any) -> Any:
        plan: Plan = plans.get(_kinds(*values), _no_plan)
        return plan(*values)

    choose.by_elements = plans  # type: ignore[attr-defined]
    return choose


def _kinds(*values: Any) -> Any:
    return tuple([_kind(v) for v in values])


def _kind(value: Any) -> Any:
    if not isinstance(value, _NESTED):
        return None
    kinds = frozenset(map(type, value))
    return kinds if kinds.isdisjoint(_NESTED) else frozenset(map(_kind, value))


def plan_for(
    op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], lenient: bool, moved: int, gathered: int | None,
    for_python: bool,
) -> Plan | None:  # fmt: skip
    """The plan of a call that went to `op`; None where Python cannot spell it.

    `moved` is the place in the schema of a method's tensor; from position `gathered` on the arguments are a list.
    """
    names = [f"_{i}" for i in range(len(args))]
    if not all(name.isidentifier() and name not in ("from", "lambda") for name in kwargs):
        return None
    values = list(zip(names, args, strict=True))
    if moved:
        values = [*values[1 : moved + 1], values[0], *values[moved + 1 :]]
    environment: dict[str, Any] = {"_run": op.run, "_Refused": PlanRefused, "_refused": REFUSED}
    lines: list[str] = []
    passed: list[str] = []
    for i, parameter in enumerate(parameters_of(op)):
        if gathered is not None and i == gathered:
            if any(type(value) is not int for _, value in values[i:]):
                return None
            passed.append(f"[{', '.join(name for name, _ in values[i:])}]")
            values = values[:i]
        elif i < len(values):
            passed.append(_converted(parameter, *values[i], lenient, lines, environment))
        elif (keyword := keyword_of(parameter, kwargs)) is not None:
            passed.append(_converted(parameter, keyword, kwargs[keyword], lenient, lines, environment))
        elif parameter.default is NO_DEFAULT:
            return None
        else:
            environment[f"_default{i}"] = parameter.default
            passed.append(f"_default{i}")
    return _written(op, names, list(kwargs), lines, passed, environment, python_result(op) if for_python else None)


def _written(
    op: Op, names: list[str], keywords: list[str], lines: list[str], passed: list[str], environment: dict[str, Any],
    convert: Callable[[Any], Any] | None,
) -> Plan:  # fmt: skip
    if convert is None and names == passed and not lines:
        return op.run
    result = f"_run({', '.join(passed)})"
    if convert is not None:
        environment["_convert"] = convert
        result = f"_convert({result})"
    text = "\n    ".join([f"def plan({', '.join([*names, *keywords])}):", *lines, f"return {result}"])
    exec(compile(text, f"<{op.qualified_name} call>", "exec"), environment)
    plan: Plan = environment["plan"]
    return plan


def _converted(
    parameter: Parameter, name: str, value: Any, lenient: bool, lines: list[str], environment: dict[str, Any]
) -> str:
    """How the plan spells the argument; values of the declared type itself are passed as they are."""
    if is_identity(parameter.type, value):
        return name
    count = parameter.broadcast_ints
    if lenient and count and type(value) is int:
        return f"[{', '.join([name] * count)}]"
    environment[f"_convert_{name}"] = parameter.lenient if lenient else parameter.strict
    lines += [f"{name} = _convert_{name}({name})", f"if {name} is _refused: raise _Refused"]
    return name


def gathers_ints(op: Op) -> int | None:
    """Where the operator takes a list that may be spelled as several numbers, if it is a list of ints."""
    arguments = op.schema.arguments
    place = next((i for i, a in enumerate(arguments) if isinstance(a.type, ListType)), None)
    if place is None or any(not a.kwarg_only for a in arguments[place + 1 :]):
        return None
    type = arguments[place].type
    return place if isinstance(type, ListType) and type.element == INT else None
