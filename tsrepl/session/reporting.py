"""Everything about one function, for a report.

In: the function's name, or a call of it.  Out: titled replies of the commands that look into functions, about what ran.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.ir.unit import Function
from engine.lang.errors import EngineError
from engine.lang.source import Source
from tsrepl.session import explaining, inspection, kernels, learning
from tsrepl.session.called import called
from tsrepl.session.replies import Reply, TextReply
from tsrepl.session.workspace import Workspace


class Chapter(NamedTuple):
    """A part of a report."""

    title: str
    replies: tuple[Reply, ...]


def chapters(workspace: Workspace, text: str) -> Iterator[Chapter]:
    """The chapters about a function, or about a call, which runs once.  Raises EngineError."""
    target = called(workspace, text)
    yield Chapter("In short", tuple(explaining.story(workspace, text)))
    functions = target.functions
    name = text if target.call is None else functions[0].name
    graphs = tuple(inspection.graph_reply(target.name(each), each, with_lines=True) for each in functions)
    yield Chapter("Graph", graphs)
    views = {
        "Passes that ran": inspection.passes,
        "Guards and recompilations": learning.guards,
        "Profile": learning.profile,
        "Kernels": kernels.kernels,
        "Gradients": explaining.autodiff,
    }
    known = name if workspace.is_target(name) else text
    for title, view in views.items():
        try:
            yield Chapter(title, tuple(view(workspace, known)))
        except EngineError as error:
            yield Chapter(title, (TextReply(error.message),))


def source_of(workspace: Workspace, text: str) -> list[tuple[str, int, str]]:
    """(file, first line, text) of the sources that the functions of the report were written in."""
    found: dict[Source, None] = {}
    for function in called(workspace, text).functions:
        found.update(dict.fromkeys(_sources(function)))
    return [(source.filename.strip("<>"), source.first_line, source.text) for source in found]


def _sources(function: Function) -> Iterator[Source]:
    for node in function.graph.all_nodes():
        range = node.range.original() if node.range is not None else None
        if range is not None and range.source.text.strip():
            yield range.source
