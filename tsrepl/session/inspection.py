"""Looking inside a function: graph, passes, code, tree, instructions, schema.

In: the name of a function or method, or an expression.  Out: replies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from engine.aten.dispatch import table
from engine.executor.plans.executor import code_of
from engine.executor.plans.explanation import explain
from engine.executor.plans.history import PassRun
from engine.ir.clone import copy_graph
from engine.ir.printer import graph_text
from engine.ir.unit import Function
from engine.lang.errors import did_you_mean
from engine.passes.pipeline import ALIASES, OPTIMIZE, PIPELINES, PassEvent, run_pipeline
from engine.passes.pipeline import names as pass_names
from engine.serialize.code.python_text import ConstantTable
from engine.serialize.code.source_export import SourcePrinter, is_method
from tsrepl.session.called import called, compiled_at_once
from tsrepl.session.failures import UsageError
from tsrepl.session.instruction_rows import instruction_rows
from tsrepl.session.modules import without_scopes
from tsrepl.session.replies import (
    CodeReply,
    GraphReply,
    ListingReply,
    PassesReply,
    PassStep,
    Reply,
    SchemaReply,
    TreeReply,
)
from tsrepl.session.trees import tree_text
from tsrepl.session.values import summary
from tsrepl.session.workspace import Workspace

_OPERATOR_PREFIXES: Final = (
    "torch.ops.aten.",
    "torch.nn.functional.",
    "torch.linalg.",
    "torch.",
    "aten::",
    "prim::",
    "",
)

_TOO_LONG: Final = "# a graph too long to be kept"


def graph(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%graph [--lines] f`."""
    name = argument.removeprefix(_LINES).strip()
    yield graph_reply(name, workspace.target(name), with_lines=argument.startswith(_LINES))


def passes(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%passes f [pass ...]`: the passes are the words at the end, with blanks or commas between them.

    Without such words, those that made the plans of earlier calls, or of this one, if there was any.
    """
    words = argument.split()
    count = next((n for n in range(len(words), 0, -1) if workspace.is_target(" ".join(words[:n]))), len(words))
    target = " ".join(words[:count])
    typed = " ".join(words[count:]).replace(",", " ").split()
    chosen = tuple(name for word in typed for name in _pass_names(word))
    made = [] if chosen else list(_passes_of_plans(workspace, target))
    yield from made or [passes_reply(target, workspace.target(target), chosen or OPTIMIZE)]


def _passes_of_plans(workspace: Workspace, text: str) -> Iterator[PassesReply]:
    target = called(workspace, text)
    if target.call is not None:
        with compiled_at_once():
            target.call()
    for function in target.functions:
        for plan in explain(function).plans[-1:]:
            steps = tuple(map(_step, plan.passes))
            yield PassesReply(f"{target.name(function)}{plan.arguments}", steps[0].before if steps else "", steps)


def _step(run: PassRun) -> PassStep:
    before, after = str(run.before or _TOO_LONG), str(run.after or _TOO_LONG)
    return PassStep(run.name, run.changed, run.seconds, before, after, (run.before, run.after))


def _pass_names(word: str) -> tuple[str, ...]:
    """The pass, or the passes of the pipeline, of that name.  Raises UsageError."""
    if word in PIPELINES:
        return PIPELINES[word]
    known = {*pass_names(), *ALIASES, *PIPELINES}
    if word not in known:
        raise UsageError(f"there is no pass '{word}'", hints=did_you_mean(word, known))
    return (word,)


def code(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%code f`."""
    yield code_reply(argument, workspace.target(argument))


def tree(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%tree f`."""
    yield TreeReply(argument, tree_text(workspace.tree_of(argument)))


def instructions(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%instructions f`."""
    yield ListingReply(argument, instruction_rows(code_of(workspace.target(argument))))


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
    """The schema without `self`, whose type says nothing new."""
    schema = function.schema
    if is_method(function):
        schema = replace(schema, arguments=schema.arguments[1:], _index={})
    return str(schema)


_LINES: Final = "--lines"


def graph_reply(title: str, function: Function, *, with_lines: bool = False) -> GraphReply:
    """The graph's canonical text, with the place of each node in the author's file behind it if that is wanted."""
    if not with_lines:
        return GraphReply(title, str(function.graph), function.graph)
    return GraphReply(title, without_scopes(graph_text(function.graph, source_comments=True)), function.graph)


def passes_reply(title: str, function: Function, names: Iterable[str]) -> PassesReply:
    """The passes over a copy of the graph; the function itself stays as it is."""
    changing = copy_graph(function.graph)
    start, steps = str(changing), []

    def listen(event: PassEvent) -> None:
        after = copy_graph(event.graph) if event.changed else event.before
        graphs = (event.before, after)
        steps.append(PassStep(event.name, event.changed, event.seconds, event.before_text, event.after_text, graphs))

    run_pipeline(names, changing, listen)
    return PassesReply(title, start, tuple(steps))


def code_reply(title: str, function: Function) -> CodeReply:
    """The printed text, and what its `CONSTANTS.cN` are."""
    constants = ConstantTable()
    printer = SourcePrinter(lambda _type, name: name, constants)
    printer.function(function, typed_self=not is_method(function))
    return CodeReply(
        title, str(printer.body), tuple((f"c{i}", summary(value)) for i, value in enumerate(constants.values))
    )


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
