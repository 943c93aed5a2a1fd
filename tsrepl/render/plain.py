"""Replies for a pipe or a file: plain lines, unbroken.

In: a reply.  Out: its text.  That of lines and of code is all that there is to show; what stands in columns or hangs on
a tree is laid out as for a terminal without colours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.deferred import deferred
from tsrepl.render.blocks import Block, CodeBlock, Line
from tsrepl.render.layout import blocks_of
from tsrepl.session.replies import Reply

if TYPE_CHECKING:
    from tsrepl.render import terminal
else:
    terminal = deferred("tsrepl.render.terminal")

_LONGEST = 4_000
"""Longer lines are left to what breaks them."""


def to_text(reply: Reply) -> str:
    """The reply without any colour, each line ended by a newline; "" when there is nothing to show."""
    blocks = blocks_of(reply)
    lines = [line.rstrip() for block in blocks for line in _text_of(block).split("\n")]
    if all(isinstance(block, (Line, CodeBlock)) for block in blocks) and all(map(_is_simple, lines)):
        return "".join(f"{line}\n" for line in lines)
    return terminal.to_text(reply)


def _text_of(block: Block) -> str:
    if isinstance(block, CodeBlock):
        return block.text
    return "".join(span.text for span in block.spans) if isinstance(block, Line) else ""


def _is_simple(line: str) -> bool:
    return line.isprintable() and len(line) < _LONGEST
