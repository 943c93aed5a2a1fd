"""Every kind of reply, laid out as blocks.

In: a reply.  Out: the blocks that both back ends show.  What to say and in which order is decided here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from engine.lang.counts import byte_size, counted, duration, some_of
from engine.lang.deferred import deferred
from tsrepl.render.blocks import (
    Block,
    CodeBlock,
    Column,
    Diff,
    Excerpt,
    FoldBlock,
    PlacedLine,
    PlacedLines,
    Span,
    Summary,
    TableBlock,
    View,
    fold,
    line,
)
from tsrepl.render.printable import printable
from tsrepl.session.plan_replies import AutodiffReply, CostReply, ExplainReply, GuardsReply, ProfileReply
from tsrepl.session.replies import (
    CodeReply,
    Counts,
    DataReply,
    DebugReply,
    DefinitionReply,
    EditReply,
    ErrorReply,
    FileReply,
    GpuKernelsReply,
    GraphReply,
    GroupRow,
    HelpReply,
    InstructionsReply,
    KernelRow,
    KernelsReply,
    Later,
    LaunchRow,
    LeaveReply,
    ListingReply,
    ModuleReply,
    PassesReply,
    PassReply,
    PipelineReply,
    PlanRow,
    Reply,
    ReportReply,
    SchemaReply,
    SourceRow,
    SystemReply,
    TapReply,
    TextReply,
    TimeReply,
    TraceReply,
    TraceRow,
    TreeReply,
    ValueReply,
    WhoReply,
)

if TYPE_CHECKING:
    from tsrepl.render import diff, modules, plans, reports
else:
    diff, modules = deferred("tsrepl.render.diff"), deferred("tsrepl.render.modules")
    plans, reports = deferred("tsrepl.render.plans"), deferred("tsrepl.render.reports")

_PLAIN_TYPES = ("int", "float", "complex", "bool", "str", "NoneType")
_LEVELS = {"info": ("", "plain"), "done": ("", "good"), "warning": ("warning: ", "warning")}
MOST_DETAILS = 4
"""Lines of an error's details; a call that fits none of thirty overloads has a hundred."""
_MOST_KINDS = 3
_MOST_COUNTS = 12


def blocks_of(reply: Reply) -> list[Block]:
    """The reply's blocks, from top to bottom."""
    return list(_LAYOUTS[type(reply)](printable(reply)))


def _value(reply: ValueReply) -> Iterator[Block]:
    if reply.type == "NoneType":
        return
    yield CodeBlock(reply.text, "" if "tensor(" in reply.text else "python")
    if reply.facts:
        yield line(Span(reply.facts, "muted"))
    elif reply.type not in _PLAIN_TYPES:
        yield line(Span(reply.type, "muted"))


def _definition(reply: DefinitionReply) -> Iterator[Block]:
    verb = "redefined" if reply.replaced else "defined"
    yield line(
        Span(verb, "warning" if reply.replaced else "good"), " ", Span(reply.kind, "muted"), " ", reply.signature
    )
    if reply.relinked:
        yield line(Span(f"{_listed(reply.relinked)} now {_calls(reply.relinked)} the new {reply.name}", "muted"))
    for name, reason in reply.broken:
        yield line(Span("warning: ", "warning"), f"{name} no longer compiles: {reason}")


def _graph(reply: GraphReply) -> Iterator[Block]:
    if reply.summary:
        yield Summary((line(Span(reply.title, "title")), *map(_counts, reply.summary)))
    if not reply.places:
        yield CodeBlock(reply.text.rstrip("\n"), "ir")
        return
    lines = zip(reply.text.rstrip("\n").split("\n"), reply.places, strict=True)
    yield PlacedLines(tuple(PlacedLine(text, place, language="ir") for text, place in lines))


def _counts(counts: Counts) -> Block:
    total = sum(count for _, count in counts.rows)
    most = [f"{name} {count:,}" for name, count in counts.rows]
    return line(Span(f"{total:,} {counts.title}  ", "muted"), some_of(most, _MOST_COUNTS))


def _passes(reply: PassesReply) -> Iterator[Block]:
    heading = (Span(reply.title, "title"), Span(f"  {counted(reply.nodes, 'node')} before the first pass", "muted"))
    yield FoldBlock(heading, (_code_view("", reply.start),))


def _pass(reply: PassReply) -> Iterator[Block]:
    if not reply.changed:
        yield line(Span("= ", "muted"), Span(", ".join(reply.names), "muted"), Span("  no change", "muted"))
        return
    facts = f"  {_change(reply)}, {duration(reply.seconds)}"
    heading = (Span("~ ", "warning"), Span(reply.title or reply.names[0], "title"), Span(facts, "muted"))
    changes = View("diff", partial(_changes, reply), _changed_nodes(reply))
    yield FoldBlock(heading, (_code_view("before", reply.before), changes, _code_view("after", reply.after)), shown=1)


def _changes(reply: PassReply) -> tuple[Block, ...]:
    return (Diff(diff.diff_lines(reply.before.text, reply.after.text), "ir"),)


def _pipeline(reply: PipelineReply) -> Iterator[Block]:
    yield from _passes(reply.start)
    for each in reply.passes:
        yield from _pass(each)
    yield line(Span(reply.note, "muted"))


def _code_view(name: str, text: Later) -> View:
    return View(name, lambda: (CodeBlock(text.text.rstrip("\n"), "ir"),), text.length)


def _changed_nodes(reply: PassReply) -> int:
    return sum(abs(count) for _, count in reply.changes) + reply.altered


def _change(reply: PassReply) -> str:
    """`−12 nodes (aten::size 12), 3 changed`."""
    more = sum(count for _, count in reply.changes if count > 0)
    less = -sum(count for _, count in reply.changes if count < 0)
    totals = " ".join(f"{sign}{count:,}" for sign, count in (("+", more), ("−", less)) if count)
    signs = {True: "+", False: "−"} if more and less else {True: "", False: ""}
    kinds = [f"{kind} {signs[count > 0]}{abs(count):,}" for kind, count in reply.changes]
    nodes = f"{totals} {'node' if more + less == 1 else 'nodes'} ({some_of(kinds, _MOST_KINDS)})" if totals else ""
    altered = f"{reply.altered:,} changed" if reply.altered else ""
    return ", ".join(filter(None, (nodes, altered))) or "types or inputs changed"


def _code(reply: CodeReply) -> Iterator[Block]:
    if reply.numbers:
        columns = (Column("", "muted", right=True), Column("", language="python"))
        yield TableBlock(columns, tuple(zip(reply.numbers, reply.text.split("\n"), strict=True)), header=False)
        return
    yield CodeBlock(reply.text.rstrip("\n"), "python")
    for name, text in reply.constants:
        yield line(Span(f"CONSTANTS.{name}", "constant"), " = ", text)


def _system(reply: SystemReply) -> Iterator[Block]:
    yield line(Span(f"!{reply.command} is for the system's shell, which runs lines typed at a terminal", "warning"))


def _edit(reply: EditReply) -> Iterator[Block]:
    yield line(Span("no editor opens here", "warning"), ", only at the prompt of a terminal")
    if reply.text:
        yield CodeBlock(reply.text, "entry")


def _tree(reply: TreeReply) -> Iterator[Block]:
    yield CodeBlock(reply.text, "tree")


def _instructions(reply: InstructionsReply) -> Iterator[Block]:
    yield CodeBlock(reply.text.rstrip("\n"), "instructions")


def _listing(reply: ListingReply) -> Iterator[Block]:
    here = any(row.is_here for row in reply.rows)
    digits = max((len(str(row.pc)) for row in reply.rows), default=0)
    names = max((len(row.variables) for row in reply.rows), default=0)
    yield PlacedLines(
        tuple(
            PlacedLine(
                row.text, f"{row.variables:<{names}}  {row.place}".rstrip() if names else row.place,
                f"{('→ ' if row.is_here else '  ') if here else ''}{row.pc:>{digits}}  ", language="instructions",
            )
            for row in reply.rows
        )
    )  # fmt: skip


def _kernels(reply: KernelsReply) -> Iterator[Block]:
    for plan in reply.plans:
        yield from plans.heading(plan.function, plan.arguments, plan.why)
        for group in plan.groups:
            yield from _group(group, reply.language)
        yield from _unfused(plan)


def _group(group: GroupRow, language: str) -> Iterator[Block]:
    yield line(Span(group.name, "kind"), Span("  no kernel yet" if not group.kernels else "", "muted"))
    yield TableBlock((Column("", "muted"), Column("", language="python")), group.lines, header=False)
    for kernel in group.kernels:
        yield fold(_heading(kernel), CodeBlock(kernel.text.rstrip("\n"), language))


def _heading(kernel: KernelRow) -> tuple[Span, ...]:
    return Span(kernel.name, "title"), Span(f"  {kernel.cost}  for {'; '.join(kernel.conditions)}", "muted")


def _unfused(plan: PlanRow) -> Iterator[Block]:
    if plan.unfused:
        columns = (Column("line", "muted"), Column("without a kernel"), Column("because", "muted"))
        yield TableBlock(columns, plan.unfused, stacks=True)


def _gpu_kernels(reply: GpuKernelsReply) -> Iterator[Block]:
    if not reply.kernels:
        yield line(Span(f"{reply.title} runs no kernels", "muted"))
    for kernel in reply.kernels:
        moved = f"  moves {byte_size(kernel.bytes)}" if kernel.bytes is not None else ""
        why = f"  {kernel.why}" if kernel.why else ""
        yield line(Span(kernel.name, "kind"), Span(f"  on {reply.target}{moved}{why}", "muted"))
        if kernel.launches:
            columns = (Column("launch"), *(Column(name, right=True) for name in _LAUNCH))
            yield TableBlock(columns, tuple(map(_launch, kernel.launches)), stacks=True)
        if kernel.text:
            yield CodeBlock(kernel.text.rstrip("\n"), reply.language)


_LAUNCH = ("blocks", "threads", "a row", "shared", "registers", "spilled", "occupancy")


def _launch(row: LaunchRow) -> tuple[str, ...]:
    known = (row.registers, None if row.spilled is None else byte_size(row.spilled))
    fits = "" if row.occupancy is None else f"{row.occupancy:.0%}"
    sizes = (row.blocks, row.threads, row.team, byte_size(row.shared))
    return (row.name, *map(str, sizes), *("" if each is None else str(each) for each in known), fits)


def _trace(reply: TraceReply) -> Iterator[Block]:
    """Each call under its name, each instruction above what it read and wrote."""
    for name, tier in reply.tiers:
        yield line(Span(name, "title"), f"  runs as {tier}")
    if reply.tiers:
        yield line(Span("below, the graphs of these plans run one instruction at a time", "muted"))
    if reply.note:
        yield line(Span(reply.note, "muted"))
    several = len({_call(row) for row in reply.rows}) > 1
    digits = max((len(str(row.pc)) for row in reply.rows), default=0)
    lines: list[PlacedLine] = []
    for at, row in enumerate(reply.rows):
        if reply.left_out and at == reply.head:
            lines.append(PlacedLine(f"… {reply.left_out:,} more, not kept", role="muted"))
        if several and (at == 0 or _call(row) != _call(reply.rows[at - 1]) or at == reply.head):
            lines.append(PlacedLine(_call(row), role="title"))
        lines.append(PlacedLine(row.instruction, row.place, f"{row.pc:>{digits + 2}}  ", language="instructions"))
        indent = " " * (digits + 6)
        lines += (PlacedLine(f"{indent}{text}") for text in _short_ones_together(row.reads))
        lines += (PlacedLine(f"{indent}→ {text}", role="good") for text in _short_ones_together(row.writes))
    if reply.left_out and reply.head == len(reply.rows):
        lines.append(PlacedLine(f"… {reply.left_out:,} more, not kept", role="muted"))
    yield from [PlacedLines(tuple(lines))] if lines else []
    yield line(Span("result ", "muted"), reply.result)


def _call(row: TraceRow) -> str:
    """The call that a row is in, as a heading: `layer1.0  Block.forward`."""
    kernel = f"in {row.kernel}" if row.kernel else ""
    return "  ".join(filter(None, (row.module, row.function or "the entry", kernel)))


_SHORT = 30
"""Characters of a value that shares its line with others."""


def _short_ones_together(pairs: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """The values one a line, but short ones in a row on one."""
    texts = [f"{register} = {value}" for register, value in pairs]
    for is_short, group in groupby(texts, lambda text: len(text) <= _SHORT):
        together = [*group]
        yield from ["   ".join(together)] if is_short else together


def _debug(reply: DebugReply) -> Iterator[Block]:
    if reply.error is not None:
        yield from blocks_of(reply.error)
    if reply.reason:
        yield line(Span(reply.reason, "warning"))
    thread = f"  thread {reply.thread}" if reply.thread else ""
    position = f"  position {reply.position}" if reply.position else ""
    yield line(Span(reply.title, "title"), Span(f"{thread}{position}", "muted"))
    if reply.source:
        rows = tuple((_mark(row), str(row.number), row.text) for row in reply.source)
        columns = (Column("", "warning"), Column("", "muted", right=True), Column("", language="python"))
        yield TableBlock(columns, rows, header=False)
    places = tuple((f"  {label}", text) for label, text in (("node", reply.node), ("runs", reply.instruction)) if text)
    if places:
        yield TableBlock((Column("", "muted"), Column("", language="ir")), places, header=False)
    if reply.variables:
        values = tuple((f"  {each.name}", each.type, each.summary) for each in reply.variables)
        yield TableBlock((Column("", "value"), Column("", "type"), Column("")), values, header=False)
    if reply.result:
        yield line(Span("result ", "muted"), reply.result)


def _mark(row: SourceRow) -> str:
    return ("●" if row.is_stop else " ") + ("→" if row.is_here else " ")


def _taps(reply: TapReply) -> Iterator[Block]:
    columns = (Column("place", "title"), Column("times", "muted", right=True), Column("value"))
    several = any(row.count > 1 for row in reply.rows)
    shown = columns if several else (columns[0], columns[2])
    every = ((row.place or "(the module)", f"{row.count:,}", row.value) for row in reply.rows)
    rows = tuple(row if several else (row[0], row[2]) for row in every)
    if rows:
        yield TableBlock(shown, rows, stacks=True)
    if reply.unreached:
        yield line(Span("warning: ", "warning"), f"the call never came to {_listed(reply.unreached)}")
    if reply.result:
        yield line(Span("result ", "muted"), reply.result)
    if reply.name:
        yield line(Span(f"{reply.name} is a dict of these values: {reply.name}[{reply.rows[0].place!r}]", "muted"))


def _schema(reply: SchemaReply) -> Iterator[Block]:
    yield CodeBlock("\n".join(reply.schemas), "ir")
    if reply.total > len(reply.schemas):
        yield line(Span(f"{len(reply.schemas)} of {reply.total}; a longer pattern finds fewer", "muted"))


def _who(reply: WhoReply) -> Iterator[Block]:
    if not reply.bindings:
        yield line(Span("nothing is defined yet", "muted"))
        return
    columns = (Column("name", "title"), Column("kind", "muted"), Column("type", "type"), Column("value"))
    rows = tuple((b.name, b.kind, b.type, b.summary) for b in reply.bindings)
    yield TableBlock(columns, rows, stacks=True)


def _time(reply: TimeReply) -> Iterator[Block]:
    runs = f"{counted(reply.loops, 'run')} × {reply.repeats}"
    yield line(Span(duration(reply.best), "title"), f" best, {duration(reply.mean)} mean", Span(f"  ({runs})", "muted"))
    if reply.compiled:
        yield line(Span(f"first run {duration(reply.first)}, {_COMPILED[reply.compiled]}", "muted"))


_COMPILED: Final = {"calls": "compilation included", "expression": "in which it is compiled, as whenever it is typed"}


def _text(reply: TextReply) -> Iterator[Block]:
    label, role = _LEVELS[reply.level]
    for text in reply.text.split("\n"):
        yield line(Span(label, role), Span(text, role if reply.level == "done" else "plain"))
        label = ""


def _error(reply: ErrorReply) -> Iterator[Block]:
    yield line(Span(f"{reply.kind}: ", "error"), Span(reply.message, "title"))
    for place in reply.places:
        yield line(Span(f"  {place.location}", "muted"))
        yield Excerpt(place.excerpt, 4)
    if reply.location:
        yield line(Span(f"  {reply.location}", "muted"))
    if reply.excerpt:
        yield Excerpt(reply.excerpt, 4)
    for hint in reply.hints:
        yield line(Span("hint: ", "good"), hint)
    lines = reply.details.split("\n") if reply.details else []
    if reply.is_whole or len(lines) <= MOST_DETAILS:
        yield from (line(Span(each)) for each in lines)
    else:
        yield line(Span(f"{lines[0].rstrip(':.')} … {reply.more} shows {len(lines) - 1} more lines", "muted"))


def _help(reply: HelpReply) -> Iterator[Block]:
    yield line(Span(reply.title, "title"))
    yield from (line(text) for text in reply.paragraphs)
    every = (*reply.start, *reply.topics)
    width = max((len(topic.usage) for topic in every), default=0)
    for group, topics in groupby(every, lambda topic: topic.group):
        if group:
            yield line(Span(group, "title"))
        rows = tuple((topic.usage, topic.summary) for topic in topics)
        yield TableBlock((Column("", "command", width=width), Column("")), rows, header=False)
    if reply.examples:
        yield line(Span("Examples", "muted"))
        yield CodeBlock("\n".join(f"  {example}" for example in reply.examples), "entry")


_LAYOUTS: dict[type[Any], Callable[[Any], Iterator[Block]]] = {
    ValueReply: _value,
    DefinitionReply: _definition,
    GraphReply: _graph,
    PassesReply: _passes,
    PassReply: _pass,
    PipelineReply: _pipeline,
    CodeReply: _code,
    EditReply: _edit,
    SystemReply: _system,
    LeaveReply: lambda reply: iter(()),
    TreeReply: _tree,
    InstructionsReply: _instructions,
    ListingReply: _listing,
    KernelsReply: _kernels,
    GpuKernelsReply: _gpu_kernels,
    CostReply: lambda reply: plans.costs(reply),
    ProfileReply: lambda reply: plans.profile(reply),
    GuardsReply: lambda reply: plans.guards(reply),
    AutodiffReply: lambda reply: plans.autodiff(reply),
    ExplainReply: lambda reply: plans.story(reply),
    TraceReply: _trace,
    DebugReply: _debug,
    TapReply: _taps,
    SchemaReply: _schema,
    WhoReply: _who,
    TimeReply: _time,
    TextReply: _text,
    ErrorReply: _error,
    ModuleReply: lambda reply: modules.tree(reply),
    FileReply: lambda reply: reports.file(reply),
    ReportReply: lambda reply: reports.report(reply),
    DataReply: lambda reply: reports.data(reply),
    HelpReply: _help,
}
"""The layout of each kind of reply; kinds that few dialogues see have theirs in modules that are loaded then."""


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _calls(names: tuple[str, ...]) -> str:
    return "calls" if len(names) == 1 else "call"
