"""Operators as Python functions that remember how they were called.

In: an operator's name.  Out: a function of Python arguments.  Which overload runs, what is converted and what is filled
in follows from the types of the arguments (of lists, from those of their elements), so it is found out once for each
combination of types (`calls` does that) and written as a function of just these arguments: a `Plan`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from engine.aten.dispatch.body import indented
from engine.aten.dispatch.call_plan import Plan, PlanRefused
from engine.aten.dispatch.compile import define
from engine.aten.values.hooks import HOOKS

Run = Callable[..., Any]
Slow = Callable[[tuple[Any, ...], Mapping[str, Any], bool], tuple[Any, Plan | None, bool]]
"""Calls without a plan: what comes out, a plan for such calls (if wanted), whether it depends on what is in lists."""
_NESTED: Final = (list, tuple)


def caller(slow: Slow) -> Run:
    """The function that runs plans, and `slow` where there is none."""
    plans: dict[Any, Run] = {}
    hooks = HOOKS

    def call_any(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if hooks.trace is not None:
            return slow(args, kwargs, False)[0]
        if kwargs:
            key: Any = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        else:
            key = type(args[0]) if len(args) == 1 else (*map(type, args),)
        known = plans.get(key)
        try:
            if known is not None:
                return known(*args, *kwargs.values())
        except PlanRefused:
            pass
        result, plan, by_elements = slow(args, kwargs, True)
        kinds = _kinds(*args, *kwargs.values()) if by_elements else None
        _remember(plans, key, _no_plan if plan is None else plan.run, kinds)
        if plan is not None and known is None and kinds is None:
            learner.learn(plan, args, kwargs)
        return result

    learner = _Learner(plans, call_any)
    return learner.call


# ------------------------------------------------------------------ the function that programs call

_NONE: Final[Any] = object()
"""No argument."""
_PLACES: Final = ("_0", "_1", "_2", "_3", "_4")
"""Arguments without names, as the function calls them; most calls have one to five, and those go without a tuple."""
_MOST: Final = 3
"""So many plans a function learns."""
_LEARNING: Final = threading.Lock()
"""Of what calls in several threads teach, one is learnt after the other."""


class _Learner:
    """Writes the function.

    Note [Callers that learn]
    Most calls of an operator in a program look alike, and calls of functions are what costs.  So the function is
    written anew for its first few plans: it compares the types of its arguments with theirs before it looks further,
    and what the first plan does stands in the function itself.  Programs hold on to the function, so it is its code
    that is replaced.
    """

    def __init__(self, plans: Mapping[Any, Run], call_any: Run) -> None:
        self._environment: dict[str, Any] = {
            "hooks": HOOKS, "_none": _NONE, "_find": plans.get, "_any": call_any, "_Refused": PlanRefused,
        }  # fmt: skip
        self._learnt: list[tuple[list[str], list[str]]] = []
        self._keywords: dict[str, Any] = {}
        self.call = self._written()

    def learn(self, plan: Plan, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Take in the plan of such a call."""
        with _LEARNING:
            self._learn(plan, args, kwargs)

    def _learn(self, plan: Plan, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        number = len(self._learnt)
        if number == _MOST or len(args) > len(_PLACES):
            return
        given = dict(zip(_PLACES, args, strict=False)) | dict(kwargs)
        more: dict[str, Any] = {f"_type{number}_{name}": type(value) for name, value in given.items()}
        if number == 0 and plan.lines is not None:
            more |= {**plan.environment, **self._environment}
            lines = [*plan.lines]
        else:
            more[f"_plan{number}"] = plan.run
            lines = [f"return _plan{number}({', '.join(given)})"]
        if not (more | self._environment).keys().isdisjoint(kwargs):
            return
        self._environment |= more
        self._keywords |= dict.fromkeys(kwargs, _NONE)
        self._learnt.append(([f"type({name}) is _type{number}_{name}" for name in given], lines))
        self.call.__kwdefaults__ = dict(self._keywords)
        self.call.__code__ = self._written().__code__

    def _written(self) -> Run:
        named = "".join(f"{name}=_none, " for name in self._keywords)
        parameters = [*(f"{name}=_none" for name in _PLACES), "/", f"*_more, {named}**_named"]
        is_named = "".join(f" or {name} is not _none" for name in self._keywords)
        find = "{**_named}" if not self._keywords else f"_with_names(_named, {', '.join(self._keywords)})"
        lines = [
            "try:",
            "    if hooks.trace is None and not _named:",
            *(f"        {line}" for line in self._guarded()),
            f"        if _more or _0 is _none{is_named}: pass",
            *(f"        {line}" for line in _found_by_types()),
            "except _Refused: pass",
            f"return _any((*[_each for _each in ({', '.join(_PLACES)}) if _each is not _none], *_more), {find})",
        ]
        names = (*self._keywords,)
        self._environment["_with_names"] = lambda named, *values: _with_names(named, names, values)
        return define("call", parameters, lines, self._environment)

    def _guarded(self) -> list[str]:
        """For each plan the question whether the arguments are like those that it is for, and what happens then."""
        lines: list[str] = []
        for types, then in self._learnt:
            given = {each.partition("(")[2].partition(")")[0] for each in types}
            places = [name for name in _PLACES if name not in given]
            absent = [f"{places[0]} is _none" if places else "not _more"]
            absent += [f"{name} is _none" for name in self._keywords if name not in given]
            lines += [f"if {' and '.join([*types, *absent])}:", *indented(then)]
        return lines


def _found_by_types() -> Iterator[str]:
    """The plan for arguments of these types, for each count of them."""
    for count in range(1, len(_PLACES) + 1):
        given = _PLACES[:count]
        types = "type(_0)" if count == 1 else f"({', '.join(f'type({name})' for name in given)})"
        is_last = count == len(_PLACES)
        yield "else:" if is_last else f"elif {_PLACES[count]} is _none:"
        yield f"    if (_plan := _find({types})) is not None: return _plan({', '.join(given)})"


def _with_names(more: dict[str, Any], names: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    """Keyword arguments, those that the function has names for among them."""
    return {**{n: v for n, v in zip(names, values, strict=True) if v is not _NONE}, **more}


# ------------------------------------------------------------------ what is remembered


def _remember(plans: dict[Any, Run], key: Any, plan: Run, elements: Any) -> None:
    """Once a plan depends on what is in the lists, all for such calls do."""
    if elements is None and not hasattr(plans.get(key), "by_elements"):
        plans[key] = plan
        return
    if not hasattr(plans.get(key), "by_elements"):
        plans[key] = _by_elements({})
    plans[key].by_elements[elements] = plan  # type: ignore[attr-defined]


def _no_plan(*_: Any) -> Any:
    raise PlanRefused


def _by_elements(plans: dict[Any, Run]) -> Run:
    """The plan that chooses another one by what is in the lists."""

    def choose(*values: Any) -> Any:
        plan: Run = plans.get(_kinds(*values), _no_plan)
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
