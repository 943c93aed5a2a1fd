"""Which passes run on a graph before it is executed, in which order.

`REQUIRED` runs on every graph, whatever runs it: the reference does the same even when it is told not to optimize, and
it shows (a dead write is gone before it can fail; `x == x` is True).  `PRE_SPECIALISATION` runs on a copy for a plan,
before its inputs get their types: what calls do to them has to be seen, and what traces know of their examples in the
bodies of the calls has to be forgotten.  `PRE_DERIVATIVE` keeps the graph
differentiable; after it is where graphs that need gradients are to be split; `POST_DERIVATIVE` is for what need not be
differentiable any more.

Constants of mutable types are not folded: whoever gets such a value may write to it, and the next call would see that.
Loops are not unrolled: a loop of generated code costs less than what unrolling adds to every pass behind it.
"""

from __future__ import annotations

from typing import Final

REQUIRED: Final = (
    "erase_shape_information",
    "scalar_operands",
    "peephole",
    "constant_propagation_immutable_types",
    "dead_write_elimination",
)
PRE_SPECIALISATION: Final = ("inline", "erase_shape_information", "scalar_operands")
PRE_DERIVATIVE: Final = (
    "constant_propagation_immutable_types",
    "peephole",
    "cse",
    "lower_simple_tuples",
    "dead_write_elimination",
)
POST_DERIVATIVE: Final = ("constant_pooling", "dce")
