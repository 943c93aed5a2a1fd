"""Operators as Python functions that remember which overload a call went to.

In: an operator's name.  Out: a function of Python arguments.  Which overload runs, what is converted and what is filled
in follows from the types of the arguments (of lists, from those of their elements), so it is resolved once for each
combination of types (`calls` does that) and kept as a call plan; anything with a slot `impl` serves as one, and an
operator is its own plan where nothing has to be converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.aten.dispatch.call_plan import CallPlan, Implemented, PlanRefused
from engine.aten.values.hooks import HOOKS

Run = Callable[..., Any]
Resolve = Callable[[tuple[Any, ...], Mapping[str, Any], bool], tuple[Any, Implemented | None, bool]]
"""Calls without a plan: the result, a plan for such calls (if wanted), whether it depends on the elements of lists."""
_NESTED: Final = (list, tuple)
_NONE: Final[Any] = object()
"""No argument."""


class _InlineCache:
    """The plan that the function looks at first: that of the first call with one argument."""

    __slots__ = ("kind", "plan")

    def __init__(self) -> None:
        self.kind: Any = None
        self.plan: Implemented = _NO_PLAN


class _ByElements:
    """The plan that chooses another one by the types of elements of lists."""

    __slots__ = ("impl", "plans")

    def __init__(self) -> None:
        self.plans: dict[Any, Implemented] = {}
        self.impl = self._choose

    def _choose(self, *values: Any) -> Any:
        return self.plans.get(_kinds(values), _NO_PLAN).impl(*values)


_made: Final[list[tuple[dict[Any, Implemented], _InlineCache]]] = []
"""The plans of all functions."""


def forget_plans() -> None:
    """Let all calls be resolved anew: plans may hold the text of functions that serve no longer."""
    for plans, first in _made:
        first.kind, first.plan = None, _NO_PLAN
        plans.clear()


def cached(resolve: Resolve) -> Run:
    """The function that runs call plans, and `resolve` where there is none."""
    plans: dict[Any, Implemented] = {}
    find, given, hooks, first = plans.get, _given, HOOKS, _InlineCache()
    _made.append((plans, first))

    def call(
        _0: Any = _NONE, _1: Any = _NONE, _2: Any = _NONE, _3: Any = _NONE, _4: Any = _NONE, /, *more: Any, **named: Any
    ) -> Any:
        """Most calls have one to four arguments without names and at most two with, and go without a tuple of them."""
        try:
            if hooks.trace is not None:
                pass
            elif named:
                if _0 is _NONE or _2 is not _NONE or len(named) > 2:
                    args, values = given(_0, _1, _2, _3, _4, more), named.values()
                    if (plan := find((*map(type, args), *named, *map(type, values)))) is not None:
                        return plan.impl(*args, *values)
                elif len(named) == 2:
                    (name, other), (value, second) = named, named.values()
                    if _1 is _NONE:
                        if (plan := find((type(_0), name, other, type(value), type(second)))) is not None:
                            return plan.impl(_0, value, second)
                    elif (plan := find((type(_0), type(_1), name, other, type(value), type(second)))) is not None:
                        return plan.impl(_0, _1, value, second)
                else:
                    (name,), (value,) = named, named.values()
                    if _1 is _NONE:
                        if (plan := find((type(_0), name, type(value)))) is not None:
                            return plan.impl(_0, value)
                    elif (plan := find((type(_0), type(_1), name, type(value)))) is not None:
                        return plan.impl(_0, _1, value)
            elif _1 is _NONE:
                if type(_0) is first.kind:
                    return first.plan.impl(_0)
                if (plan := find(type(_0))) is not None:
                    return plan.impl(_0)
            elif _2 is _NONE:
                if (plan := find((type(_0), type(_1)))) is not None:
                    return plan.impl(_0, _1)
            elif _3 is _NONE:
                if (plan := find((type(_0), type(_1), type(_2)))) is not None:
                    return plan.impl(_0, _1, _2)
            elif _4 is _NONE:
                if (plan := find((type(_0), type(_1), type(_2), type(_3)))) is not None:
                    return plan.impl(_0, _1, _2, _3)
            elif (plan := find((type(_0), type(_1), type(_2), type(_3), type(_4), *map(type, more)))) is not None:
                return plan.impl(_0, _1, _2, _3, _4, *more)
        except PlanRefused:
            pass
        return miss(given(_0, _1, _2, _3, _4, more), named)

    def miss(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call whose overload is not known yet, or whose plan refused a value."""
        if hooks.trace is not None:
            return resolve(args, named, False)[0]
        result, plan, by_elements = resolve(args, named, True)
        key = type(args[0]) if len(args) == 1 and not named else (*map(type, args), *named, *map(type, named.values()))
        known = plans.get(key)
        if by_elements or isinstance(known, _ByElements):
            if not isinstance(known, _ByElements):
                known = plans[key] = _ByElements()
            known.plans[_kinds((*args, *named.values()))] = plan or _NO_PLAN
        else:
            plans[key] = plan or _NO_PLAN
            if first.kind is None and len(args) == 1 and not named and plan is not None:
                first.kind, first.plan = key, plan
        return result

    return call


def _given(_0: Any, _1: Any, _2: Any, _3: Any, _4: Any, more: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without names, as a tuple."""
    if _1 is _NONE:
        return () if _0 is _NONE else (_0,)
    if _2 is _NONE:
        return (_0, _1)
    return (*[each for each in (_0, _1, _2, _3, _4) if each is not _NONE], *more)


def _no_plan(*_: Any) -> Any:
    raise PlanRefused


_NO_PLAN: Final = CallPlan(_no_plan)


def _kinds(values: tuple[Any, ...]) -> Any:
    return tuple([_kind(v) for v in values])


def _kind(value: Any) -> Any:
    if not isinstance(value, _NESTED):
        return None
    kinds = frozenset(map(type, value))
    return kinds if kinds.isdisjoint(_NESTED) else frozenset(map(_kind, value))
