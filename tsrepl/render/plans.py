"""Replies about plans, laid out as blocks: profiles, guards, gradients, and the story of a plan.

In: a reply of `plan_replies`.  Out: blocks.  Lines of programs stand above what is said of them; the columns below have
the same widths everywhere in a reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from engine.executor.plans.explanation_text import plan_title
from engine.lang.counts import byte_size, counted, duration
from tsrepl.render.blocks import Block, CodeBlock, Column, Span, TableBlock, fold, line
from tsrepl.session.plan_replies import (
    AutodiffReply,
    CostReply,
    CostRow,
    DifferentiableRow,
    DifferentiatedPlan,
    ExplainReply,
    FailureRow,
    GuardedPlan,
    GuardRow,
    GuardsReply,
    ProfiledValue,
    ProfileReply,
    ProfileRow,
    SplitRow,
)

_INDENT: Final = "  "
_MOST_SEEN: Final = 3
Cells = tuple[str, ...]

# -- %profile


def profile(reply: ProfileReply) -> Iterator[Block]:
    """Each profile: its lines, what names of sizes stand for, and failures of guards."""
    for each in reply.profiles:
        yield from heading(each.function, each.arguments, _runs(each))
        columns = (Column("value"), Column("type", "type"), Column("use", "muted"))
        yield from _by_line(columns, [(line.place, line.text, [*map(_value, line.values)]) for line in each.lines])
        if not each.lines:
            yield line(Span(f"{_INDENT}{each.refusal or 'no operator took a tensor'}", "muted"))
        yield from _symbols(each)
        yield from _failures(each.failures)


def _runs(profile: ProfileRow) -> str:
    left = profile.wanted - profile.runs
    return counted(profile.runs, "run") + " profiled" + (f", {left} to go" if left > 0 else "")


def _value(value: ProfiledValue) -> Cells:
    type = value.type if value.count else "no tensor" if value.undefined else "not reached"
    times = _times(value.count) if value.count else ""
    undefined = f"{_times(value.undefined)} None" if value.undefined else ""
    use = ", ".join(filter(None, (times, undefined, f"in {', '.join(value.users)}")))
    return value.value, type, use if _tells_all(value) else f"{use}; {_some(value.seen)}"


def _tells_all(value: ProfiledValue) -> bool:
    """True if the type says which types were seen, by names of sizes that vary."""
    dtypes = {each.partition("(")[0] for each in value.seen}
    return not value.seen or ("*" not in value.type and len(dtypes) == 1)


def _some(texts: Sequence[str]) -> str:
    return ", then ".join(texts[:_MOST_SEEN]) + (" …" if len(texts) > _MOST_SEEN else "")


def _symbols(profile: ProfileRow) -> Iterator[Block]:
    if profile.symbols:
        rows = tuple(
            (f"{_INDENT}{name}", _some([str(size) for size, _ in groupby(sizes)])) for name, sizes in profile.symbols
        )
        yield line(Span("sizes that varied from run to run; those with one name were always equal", "muted"))
        yield TableBlock((Column("", "type"), Column("")), rows, header=False)


# -- %profile of time and memory


def costs(reply: CostReply) -> Iterator[Block]:
    """The whole call, then its modules, lines and nodes."""
    yield line(Span(reply.title, "title"), Span(f"  {reply.facts}", "muted"))
    for name, tier in reply.tiers:
        yield line(Span(f"{_INDENT}{name}  ", "muted"), tier)
    yield from _cost_table("by module", _MODULES, (_module(row, reply.seconds) for row in reply.modules))
    yield from _cost_table("by line", _LINES, (_cost_line(row, reply.seconds) for row in reply.lines))
    width = len(_NODES) if any(row.text for row in reply.nodes) else len(_NODES) - 1
    yield from _cost_table("by node", _NODES[:width], (_node(row, reply.seconds)[:width] for row in reply.nodes))
    if reply.left_out:
        rest = f"and {counted(reply.left_out, 'more node', 'more nodes')}, {duration(reply.left_seconds)}"
        yield line(Span(_INDENT + rest, "muted"))


def _cost_table(title: str, columns: tuple[Column, ...], rows: Iterable[Cells]) -> Iterator[Block]:
    if shown := tuple(rows):
        yield line(Span(title, "title"))
        yield TableBlock(columns, shown, stacks=columns is not _MODULES)


_MEMORY: Final = Column("memory", "muted", right=True)
_MODULES: Final = (
    Column(f"{_INDENT}module"), Column("total", right=True), Column("self", right=True), _MEMORY,
)  # fmt: skip
_LINES: Final = (
    Column(f"{_INDENT}line", "muted"), Column("source", language="python"), Column("time", right=True), _MEMORY,
    Column("runs as", "muted"),
)  # fmt: skip
_NODES: Final = (
    Column(f"{_INDENT}node"), Column("time", right=True), Column("times", "muted", right=True), _MEMORY,
    Column("line", "muted"), Column("module", "muted"),
)  # fmt: skip


def _time(seconds: float, whole: float) -> str:
    """The seconds and, where they count, their part of the whole."""
    part = f"{seconds / whole:.0%}" if seconds >= whole / 200 > 0 else ""
    return f"{duration(seconds)} {part:>4}"


def _module(row: CostRow, whole: float) -> Cells:
    depth = row.name.count(".") + 1 if row.name else 0
    name = row.name.rpartition(".")[2] or "the module"
    return (
        f"{_INDENT * (depth + 1)}{name}", _time(row.total, whole), duration(row.seconds),
        row.memory,
    )  # fmt: skip


def _cost_line(row: CostRow, whole: float) -> Cells:
    return (
        f"{_INDENT}{row.name}", row.text, _time(row.seconds, whole), row.memory, row.how,
    )  # fmt: skip


def _node(row: CostRow, whole: float) -> Cells:
    name = f"{row.name}: {row.how}" if row.how else row.name
    return (
        f"{_INDENT}{name}", _time(row.seconds, whole), f"{row.count:,}", row.memory,
        row.place, row.text,
    )  # fmt: skip


# -- %guards

_FATES: Final = {
    "kept": "checked before the use",
    "moved": "checked once, where the value comes from",
    "merged": "a guard before it checks the same",
    "eliminated": "certain without a check",
    "not inserted": "nothing there to check",
    "left out": "would be checked, were there fewer to check",
}


def guards(reply: GuardsReply) -> Iterator[Block]:
    """Each plan's guards, with the words for their fates explained once."""
    for each in reply.plans:
        yield from heading(each.function, each.arguments, f"no guards: {each.why}" if each.why else _guard_count(each))
        columns = (Column("value"), Column("type", "type"), Column("fate"), Column("why", "muted"))
        lines = [(line.place, line.text, [_guard(guard) for guard in line.guards]) for line in each.lines]
        yield from _by_line(columns, lines)
        yield from _failures(each.failures)
        if each.dropped:
            dropped = counted(each.dropped, "plan was", "plans were")
            yield line(
                Span(f"{_INDENT}{dropped} dropped for this, and the sizes that failed are profiled anew", "muted")
            )
    fates = dict.fromkeys(guard.fate for each in reply.plans for line in each.lines for guard in line.guards)
    if fates:
        rows = tuple((f"{_INDENT}{fate}", text) for fate, text in _FATES.items() if fate in fates)
        yield line(Span("a guard checks a value; where one fails, the interpreter goes on from there", "muted"))
        yield TableBlock((Column(""), Column("", "muted")), rows, header=False)


def _guard_count(plan: GuardedPlan) -> str:
    fates = [guard.fate for line in plan.lines for guard in line.guards]
    return f"{counted(fates.count('kept') + fates.count('moved'), 'guard')} for {counted(len(fates), 'use')} of tensors"


def _guard(guard: GuardRow) -> Cells:
    return guard.value, guard.type, guard.fate + (" ✗" if guard.failures else ""), guard.why


# -- %autodiff


def autodiff(reply: AutodiffReply) -> Iterator[Block]:
    """Each plan's differentiable graphs, then what is in none, and why."""
    for each in reply.plans:
        yield from heading(each.function, each.arguments, each.why and f"no differentiable graph: {each.why}")
        for group in each.groups:
            yield from _differentiable(group)
        yield from _outside(each)


def _differentiable(group: DifferentiableRow) -> Iterator[Block]:
    yield line(Span(group.name, "kind"), Span("" if group.splits else "  not split yet: it has not run", "muted"))
    yield TableBlock((Column("", "muted"), Column("", language="python")), _indented(group.lines), header=False)
    for split in group.splits:
        yield from _split(split)


def _split(split: SplitRow) -> Iterator[Block]:
    yield _graph(f"forward, of {', '.join(split.arguments)}", split.forward_runs, split.forward)
    rows = tuple(
        (f"{_INDENT}{each.value}", each.type, byte_size(each.bytes), "argument" if each.is_argument else "result")
        for each in split.captured
    )
    if rows:
        yield line(Span("captured for backward", "title"))
        columns = (Column(""), Column("", "type"), Column("", right=True), Column("", "muted"))
        yield TableBlock(columns, rows, header=False)
    for backward in split.backwards:
        yield _graph(f"backward, for gradients of {', '.join(split.required)}", split.backward_runs, backward)


def _graph(title: str, note: str, text: str) -> Block:
    code = "\n".join(f"{_INDENT}{each}" for each in text.rstrip("\n").split("\n"))
    return fold((Span(title, "title"),), line(Span(f"{_INDENT}{note}", "muted")), CodeBlock(code, "ir"))


def _outside(plan: DifferentiatedPlan) -> Iterator[Block]:
    if plan.outside:
        yield line(Span("outside, recorded one by one", "muted"))
        columns = (Column("", "muted"), Column(""), Column("", "muted"))
        yield TableBlock(columns, _indented(plan.outside), header=False)


# -- %explain


def story(reply: ExplainReply) -> Iterator[Block]:
    """The calls, then each plan's facts in a column."""
    for summary in reply.summaries:
        yield line(summary)
    for each in reply.plans:
        yield from heading(each.function, each.arguments)
        facts = tuple((f"{_INDENT}{label}", text) for label, text in each.facts)
        yield TableBlock((Column("", "muted"), Column("")), facts, header=False)


# -- all


def heading(function: str, arguments: str, note: str = "") -> Iterator[Block]:
    """The line above a plan, `f(x: Float(*))`, and a note below it."""
    yield line(Span(plan_title(function, arguments), "title"))
    if note:
        yield line(Span(f"{_INDENT}{note}", "muted"))


def _indented(rows: Iterable[Cells]) -> tuple[Cells, ...]:
    return tuple((f"{_INDENT}{first}", *rest) for first, *rest in rows)


def _failures(failures: Sequence[FailureRow]) -> Iterator[Block]:
    if failures:
        yield line(Span("guards that failed", "warning"), Span(", and when, since profiling began", "muted"))
        columns = (Column("line", "muted"), Column("value"), Column("guard"), Column("when", "muted"))
        yield TableBlock(columns, _indented(map(_failure, failures)), header=False, stacks=True)


def _failure(row: FailureRow) -> Cells:
    times = f"{_times(row.count)}, {duration(row.seconds)}"
    return row.place, row.value, f"expected {row.expected}, got {row.actual}", times


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _by_line(columns: Sequence[Column], lines: Sequence[tuple[str, str, list[Cells]]]) -> Iterator[Block]:
    """A table below each line of the program, all with the same widths."""
    tables = [(place, text, _indented(here)) for place, text, here in lines if here]
    cells = [*zip(*(row for *_, rows in tables for row in rows), strict=True)]
    sized = tuple(
        replace(
            column,
            width=max(map(len, texts)),
            least=max((len(word) for text in texts for word in text.split()), default=0),
        )
        for column, texts in zip(columns, cells, strict=False)
    )
    for place, text, rows in tables:
        yield TableBlock((Column("", "muted"), Column("", language="python")), ((place, text),), header=False)
        yield TableBlock(sized, rows, header=False, stacks=True)
