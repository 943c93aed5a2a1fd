"""Files and reports about them, laid out as blocks.

In: a reply about one or two files.  Out: blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tsrepl.render.blocks import Block, CodeBlock, Column, Diff, DiffLine, Span, TableBlock, fold, line
from tsrepl.render.diff import diff_lines
from tsrepl.render.printable import safe_json
from tsrepl.session.replies import DataReply, FileReply, ReportReply, Section

_ROLES = {"": "title", "good": "good", "warning": "warning", "error": "error", "muted": "muted"}
_MARKS = {"": "", "good": "✓ ", "warning": "! ", "error": "✗ ", "muted": ""}


def file(reply: FileReply) -> Iterator[Block]:
    """`model.pt: a TorchScript archive`, the facts in a column, then what to do."""
    yield line(Span(reply.path, "title"), ": ", reply.what)
    if reply.facts:
        columns = (Column("", "muted"), Column(""))
        yield TableBlock(columns, tuple((f"  {label}", text) for label, text in reply.facts), header=False)
    if reply.advice:
        columns = (Column("", "good"), Column(""))
        yield TableBlock(columns, tuple(("  →", advice) for advice in reply.advice), header=False)


def report(reply: ReportReply) -> Iterator[Block]:
    """The sections, one below the other."""
    if reply.title:
        yield line(Span(reply.title, "title"))
    for section in reply.sections:
        yield from _section(section)


def _section(section: Section) -> Iterator[Block]:
    heading = Span(_MARKS[section.level] + section.heading, _ROLES[section.level])
    blocks = tuple(_body(section))
    if section.heading and blocks:
        yield fold((heading,), *blocks)
    elif section.heading:
        yield line(heading)
    else:
        yield from blocks


def _body(section: Section) -> Iterator[Block]:
    if section.rows:
        columns = tuple(
            Column(title.lstrip(">"), "plain" if index == 0 else "muted", right=title.startswith(">"))
            for index, title in enumerate(section.columns or ("",) * len(section.rows[0]))
        )
        rows = tuple((f"  {row[0]}", *row[1:]) for row in section.rows)
        header = any(column.title for column in columns)
        named = tuple(
            Column(f"  {c.title}" if i == 0 else c.title, c.role, right=c.right) for i, c in enumerate(columns)
        )
        yield TableBlock(named, rows, stacks=len(columns) > 3, header=header)
    if section.change is not None:
        yield Diff(_changes(*section.change), "python")
    if section.note:
        yield line(Span(f"  {section.note}", "muted"))


def _changes(before: str, after: str) -> tuple[DiffLine, ...]:
    """The changed lines; where there is no text on one side, all of the other."""
    if before and after:
        return diff_lines(before, after)
    mark, text = ("-", before) if before else ("+", after)
    return tuple(DiffLine(mark, each) for each in text.rstrip("\n").split("\n"))


def data(reply: DataReply) -> Iterator[Block]:
    yield CodeBlock(safe_json(json.dumps(reply.data, indent=2, ensure_ascii=False)))
