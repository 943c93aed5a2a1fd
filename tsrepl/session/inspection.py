"""Looking inside a function: graph, code, tree, instructions, schema.

In: the name of a function or method, or an expression.  Out: replies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from textwrap import dedent
from typing import TYPE_CHECKING, Final

from engine.aten.dispatch import table
from engine.executor.plans.executor import code_of
from engine.executor.plans.source_lines import line_of
from engine.executor.plans.source_places import Places
from engine.ir.printer import graph_lines
from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.errors import EngineError, did_you_mean
from engine.lang.source import SourceRange
from tsrepl.session.failures import UsageError
from tsrepl.session.graph_counts import graph_summary
from tsrepl.session.instruction_rows import instruction_rows
from tsrepl.session.modules import without_scopes
from tsrepl.session.replies import (
    CodeReply,
    GraphReply,
    ListingReply,
    Reply,
    SchemaReply,
    TreeReply,
)
from tsrepl.session.trees import tree_text
from tsrepl.session.values import summary
from tsrepl.session.workspace import Workspace

if TYPE_CHECKING:
    from engine.serialize.code import python_text, source_export
else:
    python_text = deferred("engine.serialize.code.python_text")
    source_export = deferred("engine.serialize.code.source_export")

_OPERATOR_PREFIXES: Final = (
    "torch.ops.aten.",
    "torch.nn.functional.",
    "torch.linalg.",
    "torch.",
    "aten::",
    "prim::",
    "",
)


def graph(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%graph [--full] [--no-lines] f`."""
    name, flags = flags_of(argument, "graph", (_FULL, _NO_LINES))
    yield graph_reply(name, workspace.target(name), with_lines=_NO_LINES not in flags, is_full=_FULL in flags)


def flags_of(argument: str, command: str, known: Sequence[str]) -> tuple[str, set[str]]:
    """The argument without the flags in front of it, and these.  Raises UsageError."""
    found = set[str]()
    while argument.startswith("--"):
        flag, _, argument = argument.partition(" ")
        if flag not in known:
            raise UsageError(f"%{command} has no option {flag}", hints=(f"it has {', '.join(known)}",))
        found.add(flag)
        argument = argument.strip()
    return argument, found


def code(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%code f`."""
    yield code_reply(argument, workspace.target(argument))


def tree(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%tree f`."""
    yield TreeReply(argument, tree_text(workspace.tree_of(argument)))


def instructions(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%instructions [--no-lines] f`."""
    name, flags = flags_of(argument, "instructions", (_NO_LINES,))
    yield ListingReply(name, instruction_rows(code_of(workspace.target(name)), with_lines=_NO_LINES not in flags))


def schema(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%schema f`: what the session knows by that name, else the operators of that name."""
    if workspace.is_target(argument):
        yield SchemaReply(argument, (signature(workspace.target(argument)),))
        return
    texts = operator_schemas(argument)
    if not texts:
        known = [b.name for b in workspace.bindings()] + [name.partition("::")[2] for name in table.names()]
        raise UsageError(f"nothing is called '{argument}'", hints=did_you_mean(argument.rpartition(".")[2], known))
    yield SchemaReply(argument, texts)


def signature(function: Function) -> str:
    """The schema without `self`, whose type says nothing new.  Raises CompileError where only the body tells it."""
    schema = function.signature
    if function.is_method:
        schema = replace(schema, arguments=schema.arguments[1:], _index={})
    return without_scopes(str(schema))


_NO_LINES: Final = "--no-lines"
_FULL: Final = "--full"


def graph_reply(title: str, function: Function, *, with_lines: bool = False, is_full: bool = True) -> GraphReply:
    """The graph's canonical text, with each node's place in the author's file beside it if that is wanted; the names of
    classes have their modules in front if it `is_full`."""
    if not with_lines:
        text = str(function.graph)
        shown = text if is_full else without_scopes(text)
        return GraphReply(title, shown, summary=graph_summary(function.graph), graph=function.graph)
    lines = [*graph_lines(function.graph)]
    places = Places(line_of(node.range) for _, node in lines if node is not None)
    text = "\n".join(text for text, _ in lines)
    beside = tuple(places.text(line_of(node.range)) if node is not None else "" for _, node in lines)
    shown = text if is_full else without_scopes(text)
    return GraphReply(title, shown, beside, graph_summary(function.graph), function.graph)


def code_reply(title: str, function: Function) -> CodeReply:
    """The printed text, and what its `CONSTANTS.cN` are; of a function that does not compile, its archive's text."""
    try:
        function.ensure_defined()
    except EngineError:
        if function.written is None:
            raise
        return CodeReply(title, _as_written(function.written))
    constants = python_text.ConstantTable()
    printer = source_export.SourcePrinter(lambda _type, name: name, constants)
    printer.function(function, typed_self=not function.is_method)
    return CodeReply(
        title, str(printer.body), tuple((f"c{i}", summary(value)) for i, value in enumerate(constants.values))
    )


def _as_written(range: SourceRange) -> str:
    """The text of a definition, as far to the left as others."""
    text = range.source.text
    indent = text[text.rfind("\n", 0, range.start) + 1 : range.start]
    return dedent(f"{indent}{range.text.rstrip()}\n")


def operator_schemas(name: str) -> tuple[str, ...]:
    """The schemas of the operator `torch.add`, `aten::add`, `aten::add.Tensor` or `add`; none when there is none."""
    entry = table.find(name)
    if entry is not None:
        return (entry.text,)
    for prefix in _OPERATOR_PREFIXES:
        if name.startswith(prefix):
            rest = name.removeprefix(prefix)
            namespaces = [prefix] if prefix.endswith("::") else ["aten::", "prim::"]
            found = [entry.text for namespace in namespaces for entry in table.overloads(namespace + rest)]
            if found:
                return tuple(found)
    return ()
