"""Golden cases are run: their programs before and after passes, on generated calls.

In: the graph of a case, the passes of its sections, its notes.  Out: each difference that `fuzz.meaning` finds; or why
there is none to be found.

Half of the calls have arguments that share memory.  Calls that an operator refuses are left out; those in which the
program itself raises an error are compared, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from engine.executor.bytecode.code import Code
from engine.ir.graph import Graph
from engine.lang.errors import EngineError
from tests.case_inputs import NoCallsError, arguments
from tests.fuzz.meaning import Arguments, Program, problems

CALLS: Final = 12
"""Calls of each kind that are compared."""
_ATTEMPTS: Final = 100
"""Calls of each kind that are tried for those."""


@dataclass(frozen=True)
class Notes:
    """What a case says of its calls: hints for arguments; that all raise; why they are not compared."""

    hints: Mapping[str, Any] = field(default_factory=dict)
    raises: bool = False
    reason: str = ""


def differences(name: str, graph: Graph, orders: Sequence[Sequence[str]], notes: Notes) -> list[str]:
    """What is wrong with the passes, or with the notes."""
    found = list(_differences(name, graph, orders, notes))
    if notes.reason:
        return [] if found else ["it can be compared: the case needs no [not compared]"]
    if not found and notes.hints and not list(_differences(name, graph, orders, replace(notes, hints={}))):
        return ["other arguments do as well: the case needs no [inputs]"]
    return found


def _differences(name: str, graph: Graph, orders: Sequence[Sequence[str]], notes: Notes) -> Iterator[str]:
    tried = Program(name, "", graph, [])
    try:
        for shares in (False, True):
            tried.calls += _calls(tried, notes, shares)
        yield from problems(tried, orders, excuses_nan=False)
    except (AssertionError, EngineError, NoCallsError) as error:
        yield f"the program is not run: {error}"


def _calls(tried: Program, notes: Notes, shares: bool) -> list[Arguments]:
    """Calls that are worth a comparison.  Raises NoCallsError where none of them, or not all, are as the case says."""
    code = Code(tried.graph, tried.name)
    finished: list[Arguments] = []
    raised: list[Arguments] = []
    errors: list[str] = []
    for number in range(_ATTEMPTS):
        make = partial(arguments, tried.graph, notes.hints, f"{tried.name} {number}", shares=shares)
        outcome = tried.outcome(code, make)
        errors.append(outcome.error)
        if not outcome.error:
            finished.append(make)
        elif notes.raises or outcome.raised:
            raised.append(make)
        if len(finished) == CALLS:
            break
    if bool(finished) == notes.raises:
        fault = "some give a result: the case needs no [raises]" if notes.raises else f"all fail: {errors[0]}"
        raise NoCallsError(f"of the calls{' that share memory' if shares else ''} {fault}")
    return [*finished, *raised[:CALLS]]
