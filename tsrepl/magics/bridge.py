"""Names that Python and the session share.

In: the notebook's namespace and the text of a cell.  Out: what the cell needs from Python is known to the session, and
what the cell made is known to Python: functions as callables, values as Python sees them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from typing import Any

import numpy as np

from engine.aten.values.tensor import from_numpy
from engine.executor.conversion.from_python import from_python, unwrapped
from engine.executor.conversion.to_python import to_python
from engine.ir.constants import type_of
from engine.ir.unit import Function
from engine.lang.types import Type
from engine.torch.jit import ScriptFunction
from tsrepl.session.replies import DefinitionReply, Reply
from tsrepl.session.session import Session
from tsrepl.session.workspace import LAST

Namespace = MutableMapping[str, Any]
_NAME = re.compile(r"[A-Za-z_]\w*")


def take_from_python(session: Session, text: str, namespace: Namespace) -> None:
    """Let the session know the names of the text that Python has a TorchScript value for."""
    for name in dict.fromkeys(_NAME.findall(text)):
        if name in namespace and not name.startswith("_"):
            _take(session, name, namespace[name])


def give_to_python(session: Session, replies: Iterable[Reply], before: set[int], namespace: Namespace) -> None:
    """Put the functions that the replies tell of, and the variables that are new or changed, into the namespace."""
    functions = session.functions()
    for reply in replies:
        if isinstance(reply, DefinitionReply):
            for name in (reply.name, *reply.relinked):
                if name in functions:
                    namespace[name] = ScriptFunction(functions[name])
    for name, value, type in session.variables():
        if id(value) not in before and name.isidentifier() and not name.startswith("_"):
            namespace[name] = _seen_from_python(value, type)


def last_value(session: Session, before: set[int]) -> Any:
    """The result that the session calls `_`, as Python sees it, if it is new; else None."""
    last = next(((value, type) for name, value, type in session.variables() if name == LAST), None)
    return None if last is None or id(last[0]) in before else _seen_from_python(*last)


def identities(session: Session) -> set[int]:
    """The identities of the session's values, which tell the new ones after a cell."""
    return {id(value) for _, value, _ in session.variables()}


def _take(session: Session, name: str, value: Any) -> None:
    if isinstance(value, ScriptFunction):
        function = value._function
        assert isinstance(function, Function)
        session.functions()[name] = function
        return
    typed = _typed(value)
    if typed is not None:
        session.bind(name, *typed)


def _typed(value: Any) -> tuple[Any, Type] | None:
    """The value as a program has it, and its type; None for what no program can hold."""
    inner = unwrapped(value)
    if inner is not None:
        return inner, inner.type
    if isinstance(value, (np.ndarray, np.generic)):
        value = from_numpy(np.asarray(value))
    try:
        type = type_of(value)
        return from_python(type)(value), type
    except Exception:  # a value of any class may stand in a notebook; only those that convert are shared
        return None


def _seen_from_python(value: Any, type: Type) -> Any:
    convert = to_python(type)
    return convert(value) if convert else value
