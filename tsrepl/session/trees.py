"""Syntax trees as text.

In: trees.  Out: s-expressions of several lines.
"""

from __future__ import annotations

from typing import Final

from engine.frontend.syntax.tree import Tree

WIDTH: Final = 88


def tree_text(tree: Tree, width: int = WIDTH) -> str:
    """The s-expression over several lines: what fits on one stays on one."""
    return "\n".join(_lines(tree, 0, width))


def _lines(tree: Tree, indent: int, width: int) -> list[str]:
    pad = " " * indent
    whole = str(tree)
    if len(whole) + indent <= width or not tree.trees:
        return [pad + whole]
    lines = [f"{pad}({tree.kind}"]
    for child in tree.children:
        if len(lines) == 1 and (isinstance(child, str) or not child.trees):
            lines[0] += f" {child}"
        elif isinstance(child, Tree):
            lines += _lines(child, indent + 2, width)
    lines[-1] += ")"
    return lines
