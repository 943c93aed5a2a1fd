"""Timing of expressions.

In: an expression.  Out: a `TimeReply`.  The expression is compiled once; rounds are long enough for the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, Final

from tsrepl.session.replies import Reply, TimeReply
from tsrepl.session.workspace import Workspace

ROUND_SECONDS: Final = 0.2
REPEATS: Final = 5
LONG_RUN: Final = 2.0
"""An expression that takes longer is not repeated."""


def time(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%time expression`."""
    begin = perf_counter()
    function, arguments = workspace.compile_expression(argument)
    workspace.run(function, arguments)
    first = perf_counter() - begin
    once = _seconds(lambda: workspace.run(function, arguments), 1)
    loops = max(1, int(ROUND_SECONDS / max(once, 1e-9)))
    repeats = 1 if once > LONG_RUN else REPEATS
    rounds = [_seconds(lambda: workspace.run(function, arguments), loops) / loops for _ in range(repeats)]
    yield TimeReply(argument, first, min(rounds), sum(rounds) / len(rounds), loops, repeats)


def _seconds(run: Callable[[], Any], times: int) -> float:
    begin = perf_counter()
    for _ in range(times):
        run()
    return perf_counter() - begin
