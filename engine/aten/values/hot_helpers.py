"""Small steps that calls of operators take, by the names that written functions know them by.

In: Python's definitions, and environments of functions in which their names stand.  Out: the same environments, in
which something else may stand for a name later, everywhere at once: the layer that compiles puts machine code in
Python's place, since these steps are most of what a call on a small tensor costs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

_Step = TypeVar("_Step", bound=Callable[..., Any])
DEFINITIONS: Final[dict[str, Callable[..., Any]]] = {}
"""Python's."""
_current: Final[dict[str, Callable[..., Any]]] = {}
_environments: Final[dict[int, dict[str, Any]]] = {}
"""By their `id`; they are environments of functions, which stay."""
_lock: Final = threading.Lock()


def primitive(function: _Step) -> _Step:
    """Decorates the definition of a step."""
    DEFINITIONS[function.__name__] = _current[function.__name__] = function
    return function


def join(environment: dict[str, Any]) -> None:
    """Let the names of steps in an environment stand for what they do elsewhere."""
    with _lock:
        found = [name for name in DEFINITIONS if _stands_for(environment, name)]
        environment.update((name, _current[name]) for name in found)
        if found:
            _environments[id(environment)] = environment


def replace(name: str, step: Callable[..., Any]) -> None:
    """From now on this is done for that name; it has to do what the definition does."""
    with _lock:
        for environment in _environments.values():
            if _stands_for(environment, name):
                environment[name] = step
        _current[name] = step


def _stands_for(environment: dict[str, Any], name: str) -> bool:
    value = environment.get(name)
    return value is not None and (value is DEFINITIONS[name] or value is _current[name])
