"""Errors of running programs, with the calls that led to them.

In: whatever an instruction raised, and where each call under way stands.  Out: an `ExecutionError` (an `Error` for a
program's own `raise` or `assert`) that tells the TorchScript stack, calls that inlining removed included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from engine.aten.values.submodules import joined
from engine.ir.facts.program_text import called_module
from engine.ir.graph import Node
from engine.lang.errors import CallFrame, EngineError, Error, ExecutionDtypeError, ExecutionError

T = TypeVar("T")

_ADVICE: Final[dict[type[Exception], str]] = {
    MemoryError: "the program needs more memory than there is",
    RecursionError: "forks or values are nested too deeply",
    OverflowError: "a number is too large for its type",
    ZeroDivisionError: "check the divisor before dividing",
    IndexError: "check the index against the length first",
    KeyError: "test with `key in d` first, or use d.get(key)",
}
"""Hints for a Python error that an operator let through."""


MAX_SHOWN_CALLS: Final = 40
"""The middle of a deeper stack is left out."""


class CallSite(NamedTuple):
    """The position of a call under way: the function's name, and the node that runs."""

    function: str
    node: Node | None


def execution_error(error: Exception, calls: Iterable[CallSite]) -> ExecutionError:
    """The error as users see it; `calls` are the calls under way, outermost first."""
    calls = list(calls)
    *modules, inside = _modules(calls)
    placed = _shortened([*zip(calls, modules, strict=True)])
    frames = tuple(frame for call, module in placed for frame in _frames(call, module))
    if isinstance(error, ExecutionError) and error.frames:
        inner = (replace(each, module=joined(inside, each.module)) for each in error.frames)
        frames = tuple(_shortened([*frames, *inner]))
    range = frames[-1].range if frames else None
    if isinstance(error, Error):
        return Error(error.message, range, python_class=error.python_class, frames=frames)
    if isinstance(error, EngineError):
        message = error.message if isinstance(error, ExecutionError) or error.range is None else str(error)
        kind = ExecutionDtypeError if isinstance(error, NotImplementedError) else ExecutionError
        return kind(message, range, hints=error.hints, frames=frames)
    advice = next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "")
    return ExecutionError(_message(error, calls), range, hints=[advice] if advice else [], frames=frames)


def _shortened(calls: list[T]) -> list[T]:
    if len(calls) <= MAX_SHOWN_CALLS:
        return calls
    return calls[: MAX_SHOWN_CALLS // 2] + calls[-MAX_SHOWN_CALLS // 2 :]


def _message(error: Exception, calls: list[CallSite]) -> str:
    """Python's message and the operator that raised it: `KeyError: 3 (in aten::__getitem__)`."""
    text = str(error) or type(error).__name__
    if isinstance(error, AttributeError) and text.startswith("'NoneType' object"):
        text = "Expected a proper Tensor but got None (or an undefined Tensor in C++)"
    node = calls[-1].node if calls else None
    where = f" (in {node.kind})" if node else ""
    return (f"{type(error).__name__}: {text}" if isinstance(error, KeyError) else text) + where


def _modules(calls: Iterable[CallSite]) -> list[str]:
    """For each call the path of the module that it is in, then that of what the last one calls."""
    paths = [""]
    for call in calls:
        here = paths[-1]
        if call.node is not None:
            here = joined(joined(here, *(each.module for each in call.node.inlined_from)), called_module(call.node))
        paths.append(here)
    return paths


def _frames(call: CallSite, module: str) -> Iterator[CallFrame]:
    return frames_of_node(call.node, call.function, module) if call.node else iter(())


def frames_of_node(node: Node, function: str, module: str = "") -> Iterator[CallFrame]:
    """The node's place in `function`, and before it the calls through which it was inlined, outermost first; `module`
    is the path of the module that the function is a method of."""
    for inlined in node.inlined_from:
        if inlined.range:
            yield CallFrame(function, inlined.range.original(), module)
        function, module = inlined.function, joined(module, inlined.module)
    if node.range:
        yield CallFrame(function, node.range.original(), module)
