"""Every kind of reply, laid out as blocks.

In: a reply.  Out: the blocks that both back ends show.  What to say and in which order is decided here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from engine.lang.counts import byte_size, counted, duration
from tsrepl.render import plans, reports
from tsrepl.render.blocks import Block, CodeBlock, Column, Diff, Excerpt, FoldBlock, Span, TableBlock, TreeView, line
from tsrepl.render.diff import diff_lines
from tsrepl.render.printable import printable
from tsrepl.session.plan_replies import AutodiffReply, ExplainReply, GuardsReply, ProfileReply
from tsrepl.session.replies import (
    CodeReply,
    DataReply,
    DebugReply,
    DefinitionReply,
    ErrorReply,
    FileReply,
    GpuKernelsReply,
    GraphReply,
    GroupRow,
    HelpReply,
    InstructionsReply,
    KernelRow,
    KernelsReply,
    LaunchRow,
    ListingReply,
    ModuleNode,
    ModuleReply,
    PassesReply,
    PassStep,
    PlanRow,
    Reply,
    ReportReply,
    SchemaReply,
    SlotRow,
    SourceRow,
    TapReply,
    TextReply,
    TimeReply,
    TraceReply,
    TraceRow,
    TreeReply,
    ValueReply,
    WhoReply,
)

_PLAIN_TYPES = ("int", "float", "complex", "bool", "str", "NoneType")
_LEVELS = {"info": ("", "plain"), "done": ("", "good"), "warning": ("warning: ", "warning")}
MOST_DETAILS = 4
"""Lines of an error's details; a call that fits none of thirty overloads has a hundred."""
PAGE = 40
"""Lines of a module's tree, if nobody asks for more."""
NARROW = 64
"""Tables of many columns become paragraphs on pages narrower than this."""


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
    yield CodeBlock(reply.text.rstrip("\n"), "ir")


def _passes(reply: PassesReply) -> Iterator[Block]:
    yield FoldBlock(
        (Span(reply.title, "title"), Span("  before the first pass", "muted")),
        (CodeBlock(reply.start.rstrip("\n"), "ir"),),
    )
    yield from map(_pass_step, reply.steps)
    changed = sum(step.changed for step in reply.steps)
    seconds = sum(step.seconds for step in reply.steps)
    passes = counted(len(reply.steps), "pass", "passes")
    yield line(Span(f"{passes}, {changed or 'none'} changed the graph, {duration(seconds)}", "muted"))


def _pass_step(step: PassStep) -> Block:
    if not step.changed:
        return line(Span("= ", "muted"), Span(step.name, "muted"), Span("  no change", "muted"))
    added, removed = _size_of_change(step)
    heading = (
        Span("~ ", "warning"),
        Span(step.name, "title"),
        Span(f"  +{added} -{removed} lines, {duration(step.seconds)}", "muted"),
    )
    return FoldBlock(heading, (Diff(diff_lines(step.before, step.after), "ir"),))


def _size_of_change(step: PassStep) -> tuple[int, int]:
    marks = [each.mark for each in diff_lines(step.before, step.after, 0)]
    return marks.count("+"), marks.count("-")


def _code(reply: CodeReply) -> Iterator[Block]:
    yield CodeBlock(reply.text.rstrip("\n"), "python")
    for name, text in reply.constants:
        yield line(Span(f"CONSTANTS.{name}", "constant"), " = ", text)


def _tree(reply: TreeReply) -> Iterator[Block]:
    yield CodeBlock(reply.text, "tree")


def _instructions(reply: InstructionsReply) -> Iterator[Block]:
    yield CodeBlock(reply.text.rstrip("\n"), "instructions")


def _listing(reply: ListingReply) -> Iterator[Block]:
    columns = (
        Column("", "warning"), Column("", "muted", right=True), Column("", language="instructions"),
        Column("", "value"), Column("", "muted"),
    )  # fmt: skip
    here = any(row.is_here for row in reply.rows)
    rows = [("→" if row.is_here else " ", str(row.pc), row.text, row.variables, row.place) for row in reply.rows]
    shown = rows if here else [row[1:] for row in rows]
    yield TableBlock(columns if here else columns[1:], tuple(shown), header=False)


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
        yield FoldBlock(_heading(kernel), (CodeBlock(kernel.text.rstrip("\n"), language),))


def _heading(kernel: KernelRow) -> tuple[Span, ...]:
    rates = [
        f"{amount / kernel.seconds / 1e9:.3g} {unit}"
        for amount, unit in ((kernel.bytes, "GB/s"), (kernel.operations, "Gop/s"))
        if amount
    ]
    facts = ", ".join((f"{duration(kernel.seconds)} a call", *rates, f"compiled in {duration(kernel.compiled)}"))
    return Span(kernel.name, "title"), Span(f"  {facts}  for {'; '.join(kernel.conditions)}", "muted")


def _unfused(plan: PlanRow) -> Iterator[Block]:
    if plan.unfused:
        columns = (Column("line", "muted"), Column("without a kernel"), Column("because", "muted"))
        yield TableBlock(columns, plan.unfused, stack_below=NARROW)


def _gpu_kernels(reply: GpuKernelsReply) -> Iterator[Block]:
    if not reply.kernels:
        yield line(Span(f"{reply.title} runs no kernels", "muted"))
    for kernel in reply.kernels:
        moved = f"  moves {byte_size(kernel.bytes)}" if kernel.bytes is not None else ""
        why = f"  {kernel.why}" if kernel.why else ""
        yield line(Span(kernel.name, "kind"), Span(f"  on {reply.target}{moved}{why}", "muted"))
        if kernel.launches:
            columns = (Column("launch"), *(Column(name, right=True) for name in _LAUNCH))
            yield TableBlock(columns, tuple(map(_launch, kernel.launches)), stack_below=NARROW)
        if kernel.text:
            yield CodeBlock(kernel.text.rstrip("\n"), reply.language)


_LAUNCH = ("blocks", "threads", "a row", "shared", "registers", "spilled", "occupancy")


def _launch(row: LaunchRow) -> tuple[str, ...]:
    known = (row.registers, None if row.spilled is None else byte_size(row.spilled))
    fits = "" if row.occupancy is None else f"{row.occupancy:.0%}"
    sizes = (row.blocks, row.threads, row.team, byte_size(row.shared))
    return (row.name, *map(str, sizes), *("" if each is None else str(each) for each in known), fits)


def _trace(reply: TraceReply) -> Iterator[Block]:
    columns = (
        Column("pc", "muted", right=True),
        Column("instruction", language="instructions"),
        Column("reads"),
        Column("writes", "good"),
        Column("line", "muted"),
    )
    several = len({row.function for row in reply.rows}) > 1
    rows = [_trace_row(row, several) for row in reply.rows]
    if reply.note:
        yield line(Span(reply.note, "muted"))
    if reply.left_out:
        text = f"{reply.left_out:,} more, not kept"
        rows.insert(reply.head, ("…", text, "", "", ""))
    places = any(row.place for row in reply.rows)
    yield TableBlock(columns[: 4 + places], tuple(row[: 4 + places] for row in rows), stack_below=NARROW)
    yield line(Span("result ", "muted"), reply.result)


def _trace_row(row: TraceRow, several: bool) -> tuple[str, ...]:
    pc = f"{row.function} {row.pc}" if several else str(row.pc)
    return pc, row.instruction, _registers(row.reads), _registers(row.writes), row.place


def _debug(reply: DebugReply) -> Iterator[Block]:
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
        yield TableBlock(shown, rows, stack_below=NARROW)
    if reply.unreached:
        yield line(Span("warning: ", "warning"), f"the call never came to {_listed(reply.unreached)}")
    if reply.result:
        yield line(Span("result ", "muted"), reply.result)
    if reply.name:
        yield line(Span(f"{reply.name} is a dict of these values: {reply.name}[{reply.rows[0].place!r}]", "muted"))


def _registers(pairs: tuple[tuple[str, str], ...]) -> str:
    return "\n".join(f"{register} = {value}" for register, value in pairs)


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
    yield TableBlock(columns, rows, stack_below=NARROW)


def _time(reply: TimeReply) -> Iterator[Block]:
    runs = f"{counted(reply.loops, 'run')} × {reply.repeats}"
    yield line(Span(duration(reply.best), "title"), f" best, {duration(reply.mean)} mean", Span(f"  ({runs})", "muted"))
    yield line(Span(f"first run {duration(reply.first)}, compilation included", "muted"))


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
        yield line(Span(f"{lines[0].rstrip(':.')} … %more shows {len(lines) - 1} more lines", "muted"))


def _module(reply: ModuleReply) -> Iterator[Block]:
    deepest = _height(reply.root)
    depth = reply.depth if reply.depth is not None else _fitting(reply.root, deepest)
    yield _module_tree(reply.root, depth)
    if depth < deepest:
        yield line(Span(f"shown to depth {depth} of {deepest}: %modules {reply.title} {deepest} shows all", "muted"))


def _height(node: ModuleNode) -> int:
    return 1 + max(map(_height, node.children), default=-1)


def _fitting(root: ModuleNode, deepest: int) -> int:
    """The greatest depth at which the tree fits a page; at least one level."""
    depths = [depth for depth in range(1, deepest + 1) if _lines(root, depth) <= PAGE]
    return max(depths, default=min(1, deepest))


def _lines(node: ModuleNode, depth: int) -> int:
    if depth == 0 and node.children:
        return 1
    return 1 + bool(node.methods) + len(node.slots) + sum(_lines(child, depth - 1) for child in node.children)


def _module_tree(node: ModuleNode, depth: int) -> TreeView:
    """The module with those inside it; deeper ones are counted."""
    if node.same_as is not None:
        same = f"  the same module as {node.same_as or 'the whole'}"
        return TreeView((Span(node.name, "title"), Span(" "), Span(node.type, "type"), Span(same, "muted")))
    total = f"{counted(node.parameters, 'parameter')}, {byte_size(node.bytes)}" if node.bytes else "no parameters"
    inside = f", {counted(_count(node) - 1, 'module')} inside" if depth == 0 and node.children else ""
    label = (Span(node.name, "title"), Span(" "), Span(node.type, "type"), Span(f"  {total}{inside}", "muted"))
    if inside:
        return TreeView(label)
    methods = [TreeView((Span("methods ", "muted"), Span(", ".join(node.methods), "kind")))] if node.methods else []
    slots = [TreeView(_slot_label(slot)) for slot in node.slots]
    return TreeView(label, (*methods, *slots, *(_module_tree(child, depth - 1) for child in node.children)))


def _count(node: ModuleNode) -> int:
    return 1 + sum(map(_count, node.children))


def _slot_label(slot: SlotRow) -> tuple[Span, ...]:
    if slot.shape is None:
        return Span(slot.name), Span(f": {slot.type}", "type"), Span(f" = {slot.text}" if slot.text else "", "constant")
    sizes = " × ".join(map(str, slot.shape)) or "scalar"
    kind = "" if slot.kind == "parameter" else f"  {slot.kind}"
    return (
        Span(slot.name),
        Span(f": {slot.dtype} ", "type"),
        Span(sizes, "constant"),
        Span(f"  {byte_size(slot.bytes)}{kind}", "muted"),
    )


def _help(reply: HelpReply) -> Iterator[Block]:
    yield line(Span(reply.title, "title"))
    yield from (line(text) for text in reply.paragraphs)
    width = max((len(topic.usage) for topic in reply.topics), default=0)
    for group, topics in groupby(reply.topics, lambda topic: topic.group):
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
    CodeReply: _code,
    TreeReply: _tree,
    InstructionsReply: _instructions,
    ListingReply: _listing,
    KernelsReply: _kernels,
    GpuKernelsReply: _gpu_kernels,
    ProfileReply: plans.profile,
    GuardsReply: plans.guards,
    AutodiffReply: plans.autodiff,
    ExplainReply: plans.story,
    TraceReply: _trace,
    DebugReply: _debug,
    TapReply: _taps,
    SchemaReply: _schema,
    WhoReply: _who,
    TimeReply: _time,
    TextReply: _text,
    ErrorReply: _error,
    ModuleReply: _module,
    FileReply: reports.file,
    ReportReply: reports.report,
    DataReply: reports.data,
    HelpReply: _help,
}


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _calls(names: tuple[str, ...]) -> str:
    return "calls" if len(names) == 1 else "call"
