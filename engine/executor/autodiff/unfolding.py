"""Operators made of others, by what they call.

In: an operator whose row says that it `unfolds`, and arguments.  Out: its result, for which each operator that its body
calls was done by a function of the caller, who may write them down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS

Call = Callable[[Op, tuple[Any, ...]], Any]


def run_unfolded(op: Op, arguments: Sequence[Any], call: Call) -> Any:
    """The operator's result, where `call` does what the body calls, less what unfolds itself."""
    thread, is_inside = get_ident(), False

    def hook(inner: Op, given: tuple[Any, ...], run: Callable[..., Any]) -> Any:
        nonlocal is_inside
        if get_ident() != thread or is_inside:
            return run(*given)
        if inner.unfolds:
            return inner.compiled.body(*given)  # the library would do it as a whole
        is_inside = True
        try:
            return call(inner, given)
        finally:
            is_inside = False

    HOOKS.step_in(hook, innermost=True)
    try:
        return op.compiled.body(*arguments)
    finally:
        HOOKS.step_out(hook)
