"""The lines of programs that nodes of a plan are from.

In: nodes and source ranges.  Out: `SourceLine`s.  It stands alone since explanations of plans and profiles share it.
"""

from __future__ import annotations

from engine.ir.facts.program_text import own_range
from engine.ir.graph import Node
from engine.lang.records import dataclass
from engine.lang.source import SourceRange


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a program; the file is "" for text without one."""

    file: str
    number: int
    text: str


def line_of(range: SourceRange | None) -> SourceLine | None:
    """The line in the author's text at which the range begins."""
    if range is None:
        return None
    place = range.original()
    return SourceLine(place.filename, place.line, place.source.line_text(place.line - place.source.first_line).strip())


def line_of_node(node: Node) -> SourceLine | None:
    """The line of the program that a node is from; None for constants, which stand at no line."""
    return None if node.kind == "prim::Constant" else line_of(own_range(node))
