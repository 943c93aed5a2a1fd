"""Everything about one function, for a report.

In: the function's name, or a call of it.  Out: titled replies of the commands that look into functions, about what ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from engine.ir.unit import Function
from engine.lang.errors import EngineError
from engine.lang.source import Source
from tsrepl.session import costs, explaining, inspection, kernels, learning, passing
from tsrepl.session.called import called
from tsrepl.session.commands import MAIN, Run
from tsrepl.session.files import name_from_path, open_archive, read_text
from tsrepl.session.programs import is_text, read_inputs
from tsrepl.session.replies import Reply, TextReply
from tsrepl.session.workspace import Workspace


class Chapter(NamedTuple):
    """A part of a report."""

    title: str
    replies: tuple[Reply, ...]


def chapters(workspace: Workspace, text: str) -> Iterator[Chapter]:
    """The chapters about a function, or about a call, which runs once.  Raises EngineError."""
    target = called(workspace, text)
    yield _chapter("In short", explaining.story, workspace, text)
    graphs = (inspection.graph_reply(target.name(each), each, with_lines=True) for each in target.functions)
    yield Chapter("Graph", tuple(graphs))
    name = target.functions[0].name
    known = name if target.call is not None and workspace.is_target(name) else text
    for title, view in _VIEWS.items():
        yield _chapter(title, view, workspace, known)


_VIEWS: Final = {
    "Passes that ran": passing.passes,
    "Guards and recompilations": learning.guards,
    "Profile": costs.profile,
    "Kernels": kernels.kernels,
    "Gradients": explaining.autodiff,
}


def _chapter(title: str, view: Run, workspace: Workspace, text: str) -> Chapter:
    """The replies of the command; where it has none, the reason."""
    try:
        return Chapter(title, tuple(passing.gathered(view(workspace, text))))
    except EngineError as error:
        return Chapter(title, (TextReply(error.message),))


def program_call(path: str, method: str | None, inputs: Sequence[str]) -> tuple[Workspace, str, tuple[TextReply, ...]]:
    """A workspace with the program of a file, the text of a call of it with these inputs, and what opening it told.

    Without inputs for what it takes, the text is its name alone, and nothing runs.  Raises EngineError, OSError.
    """
    workspace = Workspace()
    told: tuple[TextReply, ...] = ()
    if is_text(path):
        workspace.define_all(read_text(path), path)
        target = method or MAIN
    else:
        (module, told), name = open_archive(path), name_from_path(path)
        workspace.bind(name, module, module.type)
        target = f"{name}.{method}" if method else name
    function = workspace.target(target)
    takes = function.schema.arguments[function.is_method :]
    args, kwargs = read_inputs(inputs, function)
    given = {**dict(zip((each.name for each in takes), args, strict=False)), **kwargs}
    if any(not each.has_default and each.name not in given for each in takes):
        return workspace, target, told
    types = {each.name: each.type for each in takes}
    for name, value in given.items():
        workspace.bind(name, value, types[name])
    return workspace, f"{target}({', '.join(f'{name}={name}' for name in given)})", told


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
