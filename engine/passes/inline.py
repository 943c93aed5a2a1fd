"""Puts the bodies of functions and methods in place of their calls.

    %f : Function = prim::Constant[name="twice"]()        %f : Function = prim::Constant[name="twice"]()
    %2 : Tensor = prim::CallFunction(%f, %x)        →     %3 : int = prim::Constant[value=2]()
                                                          %2 : Tensor = aten::mul(%x, %3)

Calls inside the bodies are inlined, too, and every node remembers the calls it came through, for tracebacks.
Before that a copy of the body is simplified, as PyTorch does it: so its constants come in another order.  Plans inline
with simplify=False, bodies as they are, and simplify the whole later: so more nodes come in than with the pass alone.
The function constant is left for `dce`.  Calls of interfaces, and of functions that only have a name or do not compile,
stay.
"""

from __future__ import annotations

from typing import Final

from engine.ir.clone import copy_graph, inline_graph
from engine.ir.facts.program_text import called_module
from engine.ir.graph import Graph, InlinedFrom, Node
from engine.ir.match import callee_of
from engine.ir.rewrites import allowed
from engine.ir.unit import Function
from engine.passes.pipeline import find_pass, run_pipeline

_SIMPLIFY: Final = ("constant_propagation_immutable_types", "constant_pooling")
MAX_NODES: Final = 50_000
"""Nodes that are copied in all; then calls stay calls.  Thirty functions that call each other twice fill any memory."""


class _Bodies(dict[Function, Graph]):
    """Functions met so far: their bodies, with their own calls inlined; how many nodes were copied."""

    copied = 0
    simplify = True


def inline(graph: Graph, *, simplify: bool = True) -> bool:
    """Inline all calls whose callee is known; without `simplify` bodies go in as they are."""
    bodies = _Bodies()
    bodies.simplify = simplify
    return _inline_calls(graph, bodies, ())


def _inline_calls(graph: Graph, bodies: _Bodies, callers: tuple[Function, ...]) -> bool:
    calls = [(node, callee) for node in graph.all_nodes() if (callee := callee_of(node)) is not None]
    # A function that calls itself cannot be inlined to the end: its inner calls stay.
    calls = [(node, callee) for node, callee in calls if callee not in callers]
    changed = False
    for node, callee in calls:
        if bodies.copied < MAX_NODES and callee.body is not None and allowed(node, callee.name):
            body = _body(callee, bodies, callers)
            if bodies.copied >= MAX_NODES:  # what it calls has filled it
                continue
            bodies.copied += sum(1 for _ in body.all_nodes())
            _inline_call(node, callee, body)
            changed = True
    return changed


def _body(callee: Function, bodies: _Bodies, callers: tuple[Function, ...]) -> Graph:
    if callee not in bodies:
        body = copy_graph(callee.graph)
        _inline_calls(body, bodies, (*callers, callee))
        if bodies.simplify:
            # A trace's shapes are those of its example: nothing may be concluded from them.
            find_pass("peephole")(body, shapes=False)
            run_pipeline(_SIMPLIFY, body)
        bodies[callee] = body
    return bodies[callee]


def _inline_call(node: Node, callee: Function, body: Graph) -> None:
    graph = node.graph
    inputs = node.inputs[1:] if node.kind == "prim::CallFunction" else node.inputs
    with graph.inserting_at(node):
        results = inline_graph(graph, body, inputs, InlinedFrom(callee.name, node.range, called_module(node)))
    for output, result in zip(node.outputs, results, strict=True):
        name = output.name
        output.replace_all_uses_with(result)
        output.set_debug_name("")
        if name and result not in inputs:
            result.set_debug_name(name)
    node.destroy()
