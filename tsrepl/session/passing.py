"""`%passes`: what each pass changes in a graph.

In: a function or an expression, and names of passes.  Out: a `PassesReply` for the graph as it is at first, then a
`PassReply` for each pass as soon as it has run.  Texts of graphs are made when somebody looks at them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from engine.executor.plans.executor import executor_of
from engine.executor.plans.history import PassRun, PlanHistory
from engine.fuser.backend.tiering import without_kernels
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.match import callees_in
from engine.ir.unit import Function
from engine.lang.counts import counted, duration
from engine.lang.errors import did_you_mean
from engine.passes.pipeline import ALIASES, OPTIMIZE, PIPELINES
from engine.passes.pipeline import names as pass_names
from tsrepl.session.called import Called, called, compiled_at_once
from tsrepl.session.failures import UsageError
from tsrepl.session.graph_counts import altered_nodes
from tsrepl.session.replies import Later, PassesReply, PassReply, PipelineReply, Reply, TextReply
from tsrepl.session.workspace import Workspace

_LONG: Final = 200
"""Nodes of a call from which on its plan is made without it."""
_TOO_LONG: Final = "# a graph too long to be kept with its plan; name passes, and they run on it here"


def passes(workspace: Workspace, argument: str) -> Iterator[Reply]:
    """`%passes f [pass ...]`: the passes are the words at the end, with blanks or commas between them.

    Without such words, those that made the plans of earlier calls, or of this one, if there was any.
    """
    words = argument.split()
    count = next((n for n in range(len(words), 0, -1) if workspace.is_target(" ".join(words[:n]))), len(words))
    target = " ".join(words[:count])
    typed = " ".join(words[count:]).replace(",", " ").split()
    chosen = tuple(name for word in typed for name in _pass_names(word))
    about = None if chosen else called(workspace, target)
    if about is not None and about.call is not None and _length(about.functions) >= _LONG:
        yield TextReply(f"{target} is not called, but planned: these are the passes that make its plan")
    made = [] if about is None else list(_plans(about))
    for title, runs in made:
        yield from _told(title, runs[0].before if runs else None, runs)
    if not made:
        yield from passes_replies(target, workspace.target(target), chosen or OPTIMIZE)


def passes_replies(title: str, function: Function, names: Iterable[str]) -> Iterator[Reply]:
    """The passes over a copy of the graph; the function itself stays as it is."""
    start, changing = copy_graph(function.graph), copy_graph(function.graph)
    history = PlanHistory(most_kept=sys.maxsize)
    history.begin(start)
    return _told(title, start, (_run(history, name, changing) for name in names))


def _run(history: PlanHistory, name: str, graph: Graph) -> PassRun:
    history.run((name,), graph)
    return history.passes[-1]


def _length(functions: Iterable[Function]) -> int:
    """The number of nodes in the functions and in all that they call."""
    found = [*functions]
    for function in found:
        found += [each for each in callees_in(function.graph) if each not in found and each.body is not None]
    return sum(1 for function in found for _ in function.graph.all_nodes())


def _plans(target: Called) -> Iterator[tuple[str, tuple[PassRun, ...]]]:
    """The newest plan of each function that the command is about: its title, and the passes that made it."""
    if target.plan is not None:
        with compiled_at_once(), without_kernels():
            target.plan()
    for function in target.functions:
        for plan in [*executor_of(function).plans][-1:]:
            plan.catch_up()
            yield f"{target.name(function)}{plan.spec}", tuple(plan.history.passes)


def _told(title: str, start: Graph | None, runs: Iterable[PassRun]) -> Iterator[Reply]:
    text = _text(start)
    yield PassesReply(title, text.length, text)
    count, changed, seconds = 0, 0, 0.0
    for is_change, group in groupby(runs, lambda run: run.changed):
        for some in ([run] for run in group) if is_change else [list(group)]:
            count, changed = count + len(some), changed + is_change
            seconds += sum(run.seconds for run in some)
            yield _reply(some)
    what = counted(count, "pass", "passes")
    yield TextReply(f"{what}, {changed or 'none'} changed the graph, {duration(seconds)}")


def gathered(replies: Iterable[Reply]) -> Iterator[Reply]:
    """The replies, with a graph and its passes as one."""
    coming = iter(replies)
    for reply in coming:
        if not isinstance(reply, PassesReply):
            yield reply
            continue
        passes, after = list[PassReply](), None
        for after in coming:
            if not isinstance(after, PassReply):
                break
            passes.append(after)
        yield PipelineReply(reply, tuple(passes), after.text if isinstance(after, TextReply) else "")
        if after is not None and not isinstance(after, (TextReply, PassReply)):
            yield after


def _reply(runs: list[PassRun]) -> PassReply:
    first, seconds = runs[0], sum(run.seconds for run in runs)
    is_kept = first.changed and first.before is not None and first.after is not None
    altered = altered_nodes(first.before, first.after) if is_kept else 0  # type: ignore[arg-type]
    names, texts = tuple(run.name for run in runs), (_text(first.before), _text(first.after))
    return PassReply(names, first.changed, seconds, first.changes, altered, *texts, title=first.title)


def _text(graph: Graph | None) -> Later:
    if graph is None:
        return Later(lambda: _TOO_LONG, 1)
    return Later(lambda: str(graph), sum(1 for _ in graph.all_nodes()), graph)


def _pass_names(word: str) -> tuple[str, ...]:
    """The pass, or the passes of the pipeline, of that name.  Raises UsageError."""
    if word in PIPELINES:
        return PIPELINES[word]
    known = {*pass_names(), *ALIASES, *PIPELINES}
    if word not in known:
        raise UsageError(f"there is no pass '{word}'", hints=(*did_you_mean(word, known), "%help passes lists them"))
    return (word,)
