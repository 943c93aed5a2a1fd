"""First calls that run before there is a plan for them.

In: the graph of a function.  Out: True if the interpreter runs it once in much less time than a plan takes to make: it
has no loops but over dimensions, and is long, what it calls counted as often as it is called.  A program that is
loaded, called once and left never pays for its plan; one that is called again has it made beside, from its second call
on, or in that call where other things are being compiled (`GraphExecutor`).  What is known
to run once, as an entry at a prompt, need not be long, but leaves what it calls to the plans of that, unless the
process ends with it, too.
"""

from __future__ import annotations

from typing import Final

from engine.executor.plans.switches import is_leaving
from engine.fuser.backend import tiering
from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Value
from engine.ir.match import callee_of
from engine.ir.unit import Function
from engine.lang.types import INT, ListType

LONG: Final = 200
"""Nodes from which on a plan takes tens of milliseconds."""
FEW: Final = 64
"""Rounds of a loop that are soon done."""
LIST_OF_INTS: Final = ListType(INT)
_SUMS: Final = frozenset({"aten::add", "aten::sub", "aten::floordiv", "aten::__range_length"})


def runs_before_plan(graph: Graph, *, once: bool = False) -> bool:
    """True if the first call is the interpreter's; `once` if it is the only one, too."""
    is_last = is_leaving()
    if tiering.mode() != "background" or (once and not is_last and any(map(callee_of, graph.all_nodes()))):
        return False
    length = _length(graph, {})
    return length is not None and (once or is_last or length >= LONG)


def _length(graph: Graph, known: dict[Function, int | None]) -> int | None:
    """The number of nodes; None where some may run many times."""
    total = 0
    for node in graph.all_nodes():
        callee = callee_of(node)
        if callee is not None and callee not in known:
            known[callee] = None  # for a function that calls itself
            known[callee] = _length(callee.graph, known)
        length = 1 if callee is None else known[callee]
        if length is None or (node.kind == "prim::Loop" and not _is_small(node.inputs[0])):
            return None
        total += length
    return total


def _is_small(count: Value) -> bool:
    """True for the number of dimensions of a tensor, small constants, and what is computed of them."""
    node, constant = count.node, constant_value(count)
    if type(constant) is int:
        return constant <= FEW
    if node.kind == "aten::len":
        return node.input.type == LIST_OF_INTS
    return node.kind == "aten::dim" or (node.kind in _SUMS and all(map(_is_small, node.inputs)))
