"""Lets a gradient formula run only if there is a gradient to begin with.

    %da : Tensor = prim::GradOf[name="mul"](%d)           %any : bool = prim::AutogradAnyNonZero(%d)
      block0():                                           %da : Tensor = prim::If(%any)
        %1 : Tensor = aten::mul(%d, %b)             →       block0():
        -> (%1)                                               %1 : Tensor = aten::mul(%d, %b)
                                                              -> (%1)
                                                            block1():
                                                              %zero : Tensor = prim::AutogradZero()
                                                              -> (%zero)

`specialize_autogradzero` settles before that what is known when compiling.
"""

from __future__ import annotations

from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed
from engine.lang.types import BOOL


def lower_grad_of(graph: Graph) -> bool:
    """Replace every `prim::GradOf`, inner ones too."""
    found = [node for node in graph.find_all_nodes("prim::GradOf") if allowed(node, "prim::If")]
    for node in reversed(found):
        _lower(node)
    return bool(found)


def _lower(node: Node) -> None:
    graph = node.graph
    with graph.inserting_at(node, node.range):
        condition = graph.append("prim::AutogradAnyNonZero", node.inputs, [BOOL]).output
        choice = graph.append("prim::If", [condition], [value.type for value in node.outputs])
    formula, nothing = choice.add_block(), choice.add_block()
    for inner in node.blocks[0].nodes():
        inner.remove_from_block()
        formula.append(inner)
    with graph.inserting_at(nothing, node.range):
        zero = graph.append("prim::AutogradZero").output
    for value in node.blocks[0].outputs:
        formula.register_output(value)
        nothing.register_output(zero)
    _replace(node, choice)


def _replace(node: Node, choice: Node) -> None:
    for old, new in zip(node.outputs, choice.outputs, strict=True):
        name = old.name
        old.replace_all_uses_with(new)
        old.set_debug_name("")
        new.set_debug_name(name)
    node.destroy()
