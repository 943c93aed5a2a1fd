"""A look at operators that are made of others: may kernels hold them, as far as can be told without arguments.

In: the graph of its text, and what is known of its arguments.  Out: True where each operator that may be met has
kernels.

Note [Composites]
An operator that is written in TorchScript (`Op.composite`) stays one node in groups, in what is shown of them and where
they run without a kernel.  Where a group is lowered (`from_graph`), what the text is made of comes in its place, for
the arguments of the call: branches are decided, lists come apart, and what asks for sizes has the answer guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from engine.aten.dispatch.op import Op
from engine.fuser.groups.numbers import is_of_numbers
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import op_of
from engine.lang.errors import EngineError

IF: Final = "prim::If"
_Known = dict[Value, Any]


def may_be_lowered(
    graph: Graph, arguments: Sequence[Any], structural: Mapping[str, Any], has_kernel: Callable[[Op], bool]
) -> bool:
    """True if a kernel may hold what the graph does with these arguments, of which some are NOT_CONSTANT."""

    def is_all_right(block: Block, known: _Known) -> bool:
        return all(may_be_met(node, known) for node in block.nodes())

    def may_be_met(node: Node, known: _Known) -> bool:
        if node.kind == IF:
            condition = known.get(node.inputs[0], NOT_CONSTANT)
            blocks = node.blocks if condition is NOT_CONSTANT else [node.blocks[0 if condition else 1]]
            return any(is_all_right(block, known) for block in blocks)
        op = op_of(node)
        if op is None or node.kind in structural:
            known.update((value, constant_value(value)) for value in node.outputs)
            return node.kind in structural or all(is_all_right(block, known) for block in node.blocks)
        if not is_of_numbers(op):
            return has_kernel(op)
        given = [known.get(value, NOT_CONSTANT) for value in node.inputs]
        if not any(each is NOT_CONSTANT for each in given):
            with suppress(EngineError, ArithmeticError):
                known[node.output] = op.run(*given)
        return True

    return is_all_right(graph.block, dict(zip(graph.inputs, arguments, strict=True)))
