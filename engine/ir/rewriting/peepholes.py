"""Replacing one node by something simpler, for the peephole passes.

In: rules, each a function from a node to the values that can stand for its outputs (or None).  Out: a graph to
whose nodes the rules were applied once, in order of the blocks.  Replaced nodes are left for dead code removal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.rewrites import allowed

Rule = Callable[[Node], Sequence[Value | None] | Value | None]
"""Gives what stands for the outputs; None keeps the node, or that output."""


def apply_rules(graph: Graph, rules: Mapping[str, Rule]) -> bool:
    """Apply the rule of each node's kind; True if anything was replaced."""
    return _apply_in(graph.block, graph, rules)


def _apply_in(block: Block, graph: Graph, rules: Mapping[str, Rule]) -> bool:
    changed = False
    for node in block.nodes():
        for inner in node.blocks:
            changed |= _apply_in(inner, graph, rules)
        rule = rules.get(node.kind)
        if rule is None:
            continue
        before = node.prev
        with graph.inserting_at(node, node.range):
            found = rule(node)
        if found is not None and _replace(node, found):
            changed = True
        else:
            _take_back(before, node)
    return changed


def _take_back(before: Node | None, node: Node) -> None:
    """Remove what a rule put between them for nothing."""
    while (made := node.prev) is not None and made is not before and not any(v.has_uses for v in made.outputs):
        made.destroy()


def _replace(node: Node, found: Sequence[Value | None] | Value) -> bool:
    replacements = [found] if isinstance(found, Value) else found
    pairs = [(o, v) for o, v in zip(node.outputs, replacements, strict=True) if v is not None and v is not o]
    if not pairs or not allowed(node, replacements):
        return False
    for output, value in pairs:
        output.replace_all_uses_with(value)
    return True
